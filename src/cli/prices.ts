import type { Environment } from '../config.ts';
import { type PriceHistory, priceHistory } from '../store/prices.ts';
import { CommandFailure, UsageFailure } from './failure.ts';
import { openWriteTier } from './write-tier.ts';

export async function pricesCommand(
  env: Environment,
  text: string,
  options: { json?: boolean },
): Promise<void> {
  const id = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(id <= 2_147_483_647))
    throw new UsageFailure(`"${text}" is no machine id; give the number that /v1/machines shows`);
  const { config, tier } = openWriteTier(env);
  await using _ = tier;
  const history = await priceHistory(tier.store.sql, id);
  if (!history) throw new CommandFailure(`there is no machine ${id}`);
  if (options.json) console.log(JSON.stringify(history, null, 2));
  else process.stdout.write(priceChart(history, config.settings.CATALOGUE_CURRENCY));
}

const WIDTH = 40;

/** One bar a price, newest first, the dearest as wide as the chart: what changed is seen before it is read. */
export function priceChart(history: PriceHistory, currency: string): string {
  const { name, region, provider, excludedReason, prices } = history;
  const title = `${name} @ ${region}, ${provider}, ${currency} per hour${excludedReason ? ` (not published: ${excludedReason})` : ''}`;
  if (prices.length === 0) return `${title}\nit never had a price\n`;
  const dearest = Math.max(...prices.map(({ price }) => price ?? 0));
  const rows = prices.map(({ price, from, to, sourceAmount, sourcePer, sourceCurrency }) => {
    const width = dearest > 0 ? Math.round(((price ?? 0) / dearest) * WIDTH) : 0;
    const shown = price === null ? 'no rate' : String(Number((price * 60).toPrecision(5)));
    const until = to === null ? 'now' : day(to);
    return `${day(from)} – ${until.padEnd(16)}  ${shown.padStart(9)}  ${'█'.repeat(width).padEnd(WIDTH)}  ${sourceAmount} ${sourceCurrency}/${sourcePer}`;
  });
  return `${title}\n${rows.map((row) => `${row.trimEnd()}\n`).join('')}`;
}

function day(instant: string): string {
  return instant.slice(0, 16).replace('T', ' ');
}

import type { Environment } from '../config/config.ts';
import { storedCurrency } from '../db/reads/currency.ts';
import { type PriceHistory, priceHistory } from '../db/reads/prices.ts';
import { readId } from './arguments.ts';
import { CommandFailure } from './failure.ts';
import { openReadOnly } from './open-read-only.ts';
import { printJson, printText } from './print.ts';

export async function pricesCommand(
  env: Environment,
  text: string,
  options: { json?: boolean },
): Promise<void> {
  const id = readId(text, 'machine id', '/v1/machines shows');
  await using register = openReadOnly(env);
  const { sql, settings } = register;
  const history = await priceHistory(sql, id);
  if (!history) throw new CommandFailure(`there is no machine ${id}`);
  if (options.json) return printJson(history);
  const currency = (await storedCurrency(sql)) ?? settings.CATALOGUE_CURRENCY;
  printText(priceChart(history, currency));
}

const WIDTH = 40;

/** One bar a price, newest first, the dearest as wide as the chart: what changed is seen before it is read. */
export function priceChart(history: PriceHistory, currency: string): string {
  const { name, region, provider, excludedReason, prices } = history;
  const title = `${name} @ ${region}, ${provider}, ${currency} per hour${excludedReason ? ` (not published: ${excludedReason})` : ''}`;
  if (prices.length === 0) return `${title}\nit never had a price\n`;
  const dearest = Math.max(...prices.map(({ price }) => price ?? 0));
  const rows = prices.map((row) => {
    const until = row.to === null ? 'now' : day(row.to);
    return `${day(row.from)} – ${until.padEnd(16)}  ${shownPrice(row, dearest)}`;
  });
  return `${title}\n${rows.map((row) => `${row.trimEnd()}\n`).join('')}`;
}

const WITHDRAWN = { zero_price: 'is free of charge', no_exchange_rate: 'has no exchange rate' } as const;

/** The price with its bar, or why readers saw the machine withdrawn in that time. */
function shownPrice(row: PriceHistory['prices'][number], dearest: number): string {
  const { price, withdrawn, sourceAmount, sourceCurrency, sourcePer } = row;
  const source = `${sourceAmount} ${sourceCurrency}/${sourcePer}`;
  if (withdrawn !== null) return `withdrawn  ${source} ${WITHDRAWN[withdrawn]}`;
  const bar = '█'.repeat(Math.round(((price ?? 0) / dearest) * WIDTH)).padEnd(WIDTH);
  return `${String(Number(((price ?? 0) * 60).toPrecision(5))).padStart(9)}  ${bar}  ${source}`;
}

function day(instant: string): string {
  return instant.slice(0, 16).replace('T', ' ');
}

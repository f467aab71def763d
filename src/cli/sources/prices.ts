import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import type { Environment } from '../../config/config.ts';
import type { Database } from '../../db/connection/client.ts';
import { storedCurrency } from '../../db/prices/currency.ts';
import { machinesNamed, type PriceHistory, priceHistory } from '../../db/prices/prices.ts';
import { readPlace } from '../../domain/text/names.ts';
import { hourly } from '../../domain/text/quantities.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { openDatabase } from '../terminal/open.ts';
import { add, type Json, readId } from '../terminal/options.ts';
import { show, terminalWidth, wrapped } from '../terminal/output.ts';

export function define(program: Command, { env }: CommandContext): void {
  add(program, 'prices', 'show the price history of a machine')
    .argument('<machine>', 'name@region, e.g. cx22@fsn1, or the id that `machines` shows')
    .action((machine: string, options) => pricesCommand(env(), machine, options));
}

export async function pricesCommand(env: Environment, text: string, options: Json): Promise<void> {
  const place = readPlace(text);
  const given = place
    ? undefined
    : readId(text, 'machine: give name@region, or an id', '`fleetbook machines` shows');
  await using database = openDatabase(env);
  const { db, settings } = database;
  const id = given ?? (await machineId(db, place?.name ?? '', place?.region ?? ''));
  const history = await priceHistory(db, id);
  if (!history) throw new CommandFailure(`there is no machine ${id}`);
  const currency = (await storedCurrency(db)) ?? settings.CATALOGUE_CURRENCY;
  show(options, history, () => priceLines(history, currency, terminalWidth()));
}

/** @throws CommandFailure if no machine has the name; UsageFailure if several providers have it */
async function machineId(db: Database, name: string, region: string): Promise<number> {
  const [found, ...others] = await machinesNamed(db, name, region);
  if (found === undefined) {
    throw new CommandFailure(
      `no region "${region}" has a machine "${name}"; to find it: fleetbook machines ${name}`,
    );
  }
  if (others.length === 0) return found.id;
  const ids = [found, ...others].map(({ id, provider }) => `${id} (${provider})`).join(', ');
  throw new UsageFailure(`several providers have "${name}@${region}"; give an id: ${ids}`);
}

/** Returns a line for each price, newest first. */
export function priceLines(
  history: PriceHistory,
  currency: string,
  width = Number.POSITIVE_INFINITY,
): string {
  const { name, region, provider, excludedReason, prices } = history;
  const title = `${name} @ ${region}, ${provider}, ${currency} per hour${excludedReason ? ` (not published: ${excludedReason})` : ''}`;
  const head = wrapped(title, width);
  if (prices.length === 0) return `${head}no price is stored\n`;
  const rows = prices.map((row) => {
    const until = row.to === null ? 'now' : day(row.to);
    return `${day(row.from)} – ${until.padEnd(16)}  ${shownPrice(row)}\n`;
  });
  return head + rows.join('');
}

const sourcePrice = ({ sourceAmount, sourceCurrency, sourcePer }: PriceHistory['prices'][number]) =>
  `${sourceAmount} ${sourceCurrency}/${sourcePer}`;

const WITHDRAWN = { zero_price: 'is free of charge', no_exchange_rate: 'has no exchange rate' } as const;

/** Returns the price, or why readers saw the machine as withdrawn in that time. */
function shownPrice(row: PriceHistory['prices'][number]): string {
  const { price, withdrawn } = row;
  const source = sourcePrice(row);
  if (withdrawn !== null) return `withdrawn  ${source} ${WITHDRAWN[withdrawn]}`;
  return `${hourly(price ?? 0, 5).padStart(9)}  ${source}`;
}

function day(instant: string): string {
  return instant.slice(0, 16).replace('T', ' ');
}

import type { RateChange } from '../../domain/changes.ts';
import type { ReferenceRates } from '../../domain/rates.ts';
import type { Database } from '../connect.ts';
import { alias, eq, sql } from '../drizzle.ts';
import { exchangeRates } from '../schema.ts';
import { array, insertInto, nameOf } from '../statements.ts';

const { currency, perEuro, asOf } = exchangeRates;
const given = alias(exchangeRates, 'excluded');

/** The newest reference rates that were stored; undefined before the first. */
export async function storedRates(db: Database): Promise<ReferenceRates | undefined> {
  const rows = await db
    .select()
    .from(exchangeRates)
    .where(eq(asOf, sql`(select max(${asOf}) from ${exchangeRates})`));
  const [first] = rows;
  if (!first) return undefined;
  return { asOf: first.asOf, perEuro: Object.fromEntries(rows.map((row) => [row.currency, row.perEuro])) };
}

export interface RatesWritten {
  readonly added: number;
  readonly changed: number;
  /** Those that are others now; one that only another day says again is not among them. */
  readonly rates: readonly RateChange[];
}

/** Stores the rates of a day, unless those of a later day are there already: a stale mirror takes nothing back. */
export async function writeRates(db: Database, rates: ReferenceRates): Promise<RatesWritten> {
  const currencies = Object.keys(rates.perEuro);
  const units = Object.values(rates.perEuro);
  const before = await ratesByCurrency(db);
  const rows = await db.execute<{ isNew: boolean; currency: string; perEuro: string }>(sql`
    ${insertInto(exchangeRates, { currency: sql`w.currency`, perEuro: sql`w.per_euro`, asOf: rates.asOf })}
    from unnest(${array(currencies, 'text')}, ${array(units, 'numeric')}) w (currency, per_euro)
    where not exists (select from ${exchangeRates} where ${asOf} > ${rates.asOf})
    on conflict (${nameOf(currency)}) do update
    set ${nameOf(perEuro)} = ${given.perEuro}, ${nameOf(asOf)} = ${given.asOf}
    where (${perEuro}, ${asOf}) is distinct from (${given.perEuro}, ${given.asOf})
    returning xmax = 0 as "isNew", ${currency}, ${perEuro}::text as "perEuro"`);
  const added = rows.filter((row) => row.isNew).length;
  const changes = rows
    .map((row) => ({ currency: row.currency, before: before.get(row.currency) ?? null, after: row.perEuro }))
    .filter((change) => change.before === null || Number(change.before) !== Number(change.after))
    .toSorted((one, other) => (one.currency < other.currency ? -1 : 1));
  return { added, changed: rows.length - added, rates: changes };
}

async function ratesByCurrency(db: Database): Promise<Map<string, string>> {
  const rows = await db.select({ currency, perEuro }).from(exchangeRates);
  return new Map(rows.map((row) => [row.currency, row.perEuro]));
}

import type { ReferenceRates } from '../../domain/rates.ts';
import type { SessionSql, Sql } from '../connect.ts';

/** The newest reference rates that were stored; undefined before the first. */
export async function storedRates(sql: Sql): Promise<ReferenceRates | undefined> {
  const rows = await sql<{ currency: string; perEuro: string; asOf: string }[]>`
    select currency, per_euro::text as "perEuro", to_char(as_of, 'YYYY-MM-DD') as "asOf" from exchange_rates
    where as_of = (select max(as_of) from exchange_rates)`;
  const [first] = rows;
  if (!first) return undefined;
  return { asOf: first.asOf, perEuro: Object.fromEntries(rows.map((row) => [row.currency, row.perEuro])) };
}

export interface RatesWritten {
  readonly added: number;
  readonly changed: number;
}

/** Stores the rates of a day, unless those of a later day are there already: a stale mirror takes nothing back. */
export async function writeRates(sql: SessionSql, rates: ReferenceRates): Promise<RatesWritten> {
  const currencies = Object.keys(rates.perEuro);
  const units = Object.values(rates.perEuro);
  const rows = await sql<{ isNew: boolean }[]>`
    insert into exchange_rates as r (currency, per_euro, as_of)
    select currency, per_euro, ${rates.asOf}::date
    from unnest(${currencies}::text[], ${units}::numeric[]) w (currency, per_euro)
    where not exists (select from exchange_rates where as_of > ${rates.asOf}::date)
    on conflict (currency) do update set per_euro = excluded.per_euro, as_of = excluded.as_of
    where (r.per_euro, r.as_of) is distinct from (excluded.per_euro, excluded.as_of)
    returning xmax = 0 as "isNew"`;
  const added = rows.filter((row) => row.isNew).length;
  return { added, changed: rows.length - added };
}

import type { Sql } from '../client.ts';

/** The currency of every published price; undefined while it is not known, see queries/currency.ts. */
export async function storedCurrency(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<{ currency: string | null }[]>`select currency from lineage`;
  return row?.currency ?? undefined;
}

/** Returns the currencies of all stated prices. Reads every machine. */
export async function statedCurrencies(sql: Sql): Promise<string[]> {
  const rows = await sql<{ currency: string }[]>`
    select distinct source_currency as currency from machines where retired_at is null and source_currency is not null
    union select source_currency from disk_types`;
  return rows.map(({ currency }) => currency);
}

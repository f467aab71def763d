import type { Sql } from '../client.ts';

/** The currency of every published price; undefined while it is not known, see queries/currency.ts. */
export async function storedCurrency(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<{ currency: string | null }[]>`select currency from lineage`;
  return row?.currency ?? undefined;
}

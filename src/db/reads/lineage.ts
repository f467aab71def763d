import type { Sql } from '../client.ts';

/** The id of this database's history. */
export async function readLineage(sql: Sql): Promise<string> {
  const [row] = await sql<{ id: string }[]>`select id from lineage`;
  if (!row) throw new Error('the database has no lineage; run `fleetbook migrate`');
  return row.id;
}

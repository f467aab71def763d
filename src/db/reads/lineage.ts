import type { Sql } from '../client.ts';
import type { HistoryLook } from '../history.ts';

/** The id of this database's history. */
export async function readLineage(sql: Sql): Promise<string> {
  const [row] = await sql<{ id: string }[]>`select id from lineage`;
  return present(row).id;
}

/** The lineage, and what shows whether the database is still in it: in one statement, of one instant. */
export async function readHistory(sql: Sql): Promise<HistoryLook> {
  const [row] = await sql<(Omit<HistoryLook, 'written'> & { written: string | null })[]>`
    select l.id as lineage, l.database_identity as began, h.identity, h.written
    from lineage l cross join database_history() h`;
  const { written, ...look } = present(row);
  return { ...look, written: written === null ? null : Number(written) };
}

function present<T>(row: T | undefined): T {
  if (!row) throw new Error('the database has no lineage; run `fleetbook migrate`');
  return row;
}

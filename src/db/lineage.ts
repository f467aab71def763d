/** Reads the lineage of the database, and where it began. Readers load this file at their start, so it imports no tables. */
import type { Sql } from './connection/client.ts';
import type { Database } from './connection/connect.ts';
import { sql } from './connection/drizzle.ts';

// Each reader reads the lineage every second. PostgreSQL plans a prepared statement of postgres.js once a connection, and a
// statement of Drizzle each time.

export async function readLineage(sql: Sql): Promise<string> {
  const [row] = await sql<{ id: string }[]>`select id from lineage`;
  return present(row).id;
}

/**
 * Names this database among all that share a Redis. A new lineage and a failover keep the name. A copy on another server, and a
 * second database on the same one, have another.
 */
export async function databaseName(db: Database): Promise<string> {
  const [row] = await db.execute<{ name: string }>(sql`
    select left(md5(concat_ws(' ', l.deployment, split_part(i.identity, ' ', 1), split_part(i.identity, ' ', 3))), 12) as name
    from lineage l cross join database_identity() i (identity)`);
  return present(row).name;
}

export interface LineageState {
  readonly lineage: string;
  /** `database_identity()` when the lineage began; null until the first publication. */
  readonly began: string | null;
  /** `database_identity()` now; null on a standby. */
  readonly identity: string | null;
}

export async function readLineageState(sql: Sql): Promise<LineageState> {
  const [row] = await sql<LineageState[]>`
    select id as lineage, database_identity as began, case when not pg_is_in_recovery() then database_identity() end as identity
    from lineage`;
  return present(row);
}

/** Returns true if the lineage began in another database: a restored dump, a copy, a recovery, or a promoted standby has it. */
export function beganElsewhere({ began, identity }: LineageState): boolean {
  if (began === null || identity === null) return false;
  const parts = identity.split(' ');
  // `-` is a part that a server does not reveal.
  return !began.split(' ').every((part, i) => part === parts[i] || part === '-' || parts[i] === '-');
}

function present<T>(row: T | undefined): T {
  if (!row) throw new Error('the database has no lineage; run `fleetbook migrate`');
  return row;
}

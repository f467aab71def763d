import type { Sql } from './client.ts';

/** How far a server is in the log of its database. */
export interface LogPosition {
  /** What it has written, as a primary; what it has replayed, as a standby. */
  readonly position: bigint;
  readonly isStandby: boolean;
  /** When the last transaction that a standby has replayed was committed, in milliseconds; null of none. */
  readonly replayedTo: number | null;
  readonly lineage: string;
}

/** Bytes that a page of the log begins with. */
const PAGE_HEADER = 24n;
const PAGE = 8192n;

/** By one statement, so that the lineage is that of the position or a later one. */
export async function readLogPosition(sql: Sql): Promise<LogPosition> {
  const [row] = await sql<
    { position: string; isStandby: boolean; replayedTo: number | null; lineage: string }[]
  >`
    select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end - '0/0'
        as position,
      pg_is_in_recovery() as "isStandby",
      extract(epoch from pg_last_xact_replay_timestamp())::float8 * 1000 as "replayedTo",
      id as lineage
    from lineage`;
  if (!row) throw new Error('the database has no lineage; run `fleetbook migrate`');
  const position = BigInt(row.position);
  // A primary counts a page's head as soon as it has begun the page, a standby only with what follows it.
  const isAtHead = position % PAGE === PAGE_HEADER;
  return { ...row, position: isAtHead ? position - PAGE_HEADER : position };
}

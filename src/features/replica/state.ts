import type { Sql } from '../../db/connection/client.ts';

/** The state of a replica. */
export interface ReplicaState {
  readonly lineage: string;
  /** False once it was promoted. */
  readonly isStandby: boolean;
  /** When the last transaction that it has replayed was committed, in milliseconds; null before the first one. */
  readonly replayedTo: number | null;
}

export async function readReplicaState(sql: Sql): Promise<ReplicaState> {
  const [row] = await sql<ReplicaState[]>`
    select id as lineage, pg_is_in_recovery() as "isStandby",
      extract(epoch from pg_last_xact_replay_timestamp())::float8 * 1000 as "replayedTo"
    from lineage`;
  if (!row) throw new Error('the database has no lineage; run `fleetbook migrate`');
  return row;
}

import type { Sql } from '../../db/connection/client.ts';

export interface ReplicaState {
  readonly lineage: string;
  /** False for a primary, such as a promoted replica. */
  readonly isStandby: boolean;
  /** Commit time of its last transaction, in milliseconds; null before the first one. */
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

interface ServerState {
  readonly state: ReplicaState;
  /** The setting that names its address. */
  readonly setting: string;
}

/** Returns why the primary cannot be read for documents that the replica lacks, and the remedy; undefined if it can. */
export function misfitOf(replica: ServerState, primary: ServerState): string | undefined {
  if (primary.state.isStandby)
    return `${primary.setting} leads to a replica as well; name the primary in ${primary.setting}`;
  if (primary.state.lineage !== replica.state.lineage)
    return `${replica.setting} leads to a replica of another database than ${primary.setting}, or to one that is far behind; name a replica of the same database, and check that it follows its primary`;
  return undefined;
}

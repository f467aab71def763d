import { type Configured, readerDatabase, readerPrimary } from '../../app/connections.ts';
import { type Finding, ok, problem, problemOf } from '../../cli/doctor/finding.ts';
import { type ClientDatabase, executePrepared } from '../../db/connection/client.ts';
import { openStore } from '../../db/connection/connect.ts';
import { sql } from '../../db/connection/drizzle.ts';
import { postgresProblem, type ServerSetting } from '../../db/connection/server-problem.ts';
import { lineage } from '../../db/schema.ts';
import { messageOf } from '../../domain/errors.ts';

const CHECK = 'replica';

export async function checkReplica(config: Configured): Promise<Finding[]> {
  if (config.settings.READER_DATABASE_URL === undefined) return [];
  const replica = await stateOf(readerDatabase(config));
  if ('check' in replica) return [replica];
  if (!replica.state.isStandby) return [];
  const primaryServer = readerPrimary(config);
  if (!primaryServer) {
    const found = `${replica.setting} leads to a replica, and no primary is configured for what the replica does not have yet`;
    return [problem(CHECK, found, 'name the primary in DATABASE_URL')];
  }
  const primary = await stateOf(primaryServer);
  if ('check' in primary) return [primary];
  const why = findProblem(replica, primary);
  if (why !== undefined) return [problemOf(CHECK, why)];
  return [ok(CHECK, `readers read a replica, and ${primary.setting} for what it does not have yet`)];
}

async function stateOf({ setting, url }: ServerSetting) {
  await using store = openStore({ url, role: 'reader', connections: 1 });
  try {
    return { setting, state: await readReplicaState(store.db) };
  } catch (error) {
    const why = postgresProblem(error, { setting, url });
    if (why !== undefined) return problemOf(CHECK, why);
    const remedy = 'read the log of PostgreSQL, which has the cause';
    return problem(CHECK, `${setting} could not be checked: ${messageOf(error)}`, remedy);
  }
}

export interface ReplicaState {
  readonly lineage: string;
  /** False for a primary, such as a promoted replica. */
  readonly isStandby: boolean;
  /** Commit time of its last transaction, in milliseconds; null before the first one. */
  readonly replayedTo: number | null;
}

export async function readReplicaState(db: ClientDatabase): Promise<ReplicaState> {
  const [row] = await executePrepared<ReplicaState>(
    db,
    sql`select ${lineage.id} as lineage, pg_is_in_recovery() as "isStandby",
      extract(epoch from pg_last_xact_replay_timestamp())::float8 * 1000 as "replayedTo" from ${lineage}`,
  );
  if (!row) throw new Error('the database has no lineage; run `fleetbook migrate`');
  return row;
}

interface ServerState {
  readonly state: ReplicaState;
  /** The setting that names its address. */
  readonly setting: string;
}

/** Returns why the primary cannot be read for documents that the replica lacks, and the remedy; undefined if it can. */
export function findProblem(replica: ServerState, primary: ServerState): string | undefined {
  if (primary.state.isStandby)
    return `${primary.setting} leads to a replica as well; name the primary in ${primary.setting}`;
  if (primary.state.lineage !== replica.state.lineage)
    return `${replica.setting} leads to a replica of another database than ${primary.setting}, or to one that is far behind; name a replica of the same database, and check that it follows its primary`;
  return undefined;
}

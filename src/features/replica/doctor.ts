import { type Configured, readerDatabase, readerPrimary } from '../../app/connections.ts';
import { type Finding, ok, problem, problemOf } from '../../cli/doctor/finding.ts';
import { openStore } from '../../db/connection/connect.ts';
import { postgresProblem, type ServerSetting } from '../../db/connection/server-problem.ts';
import { messageOf } from '../../domain/errors.ts';
import { misfitOf, readReplicaState } from './state.ts';

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
  const misfit = misfitOf(replica, primary);
  if (misfit !== undefined) return [problemOf(CHECK, misfit)];
  return [ok(CHECK, `readers read a replica, and ${primary.setting} for what it does not have yet`)];
}

async function stateOf({ setting, url }: ServerSetting) {
  await using store = openStore({ url, role: 'reader', connections: 1 });
  try {
    return { setting, state: await readReplicaState(store.sql) };
  } catch (error) {
    const why = postgresProblem(error, { setting, url });
    if (why !== undefined) return problemOf(CHECK, why);
    const remedy = 'read the log of PostgreSQL, which has the cause';
    return problem(CHECK, `${setting} could not be checked: ${messageOf(error)}`, remedy);
  }
}

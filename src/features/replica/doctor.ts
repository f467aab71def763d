import { type Configured, readerDatabase, readerPrimary } from '../../app/connections.ts';
import { type Finding, ok, problem, problemOf } from '../../cli/doctor/finding.ts';
import { openStore } from '../../db/connection/connect.ts';
import { postgresProblem, type ServerSetting } from '../../db/connection/server-problem.ts';
import { messageOf } from '../../lib/driver-error.ts';
import { type ReplicaState, readReplicaState } from './state.ts';

const CHECK = 'replica';

/** Whether readers on a replica can read from its primary what the replica lacks. */
export async function checkReplica(config: Configured): Promise<Finding[]> {
  if (config.settings.READER_DATABASE_URL === undefined) return [];
  const replica = readerDatabase(config);
  const ofReplica = await stateOf(replica);
  if ('check' in ofReplica) return [ofReplica];
  if (!ofReplica.isStandby) return [];
  const primary = readerPrimary(config);
  if (!primary)
    return [
      problem(
        CHECK,
        `${replica.setting} leads to a replica, and no primary is configured for what the replica does not have yet`,
        'name the primary in DATABASE_URL',
      ),
    ];
  const ofPrimary = await stateOf(primary);
  if ('check' in ofPrimary) return [ofPrimary];
  if (ofPrimary.isStandby)
    return [
      problem(
        CHECK,
        `${primary.setting} leads to a replica as well`,
        `name the primary in ${primary.setting}`,
      ),
    ];
  if (ofPrimary.lineage !== ofReplica.lineage)
    return [
      problem(
        CHECK,
        `${replica.setting} leads to a replica of another database than ${primary.setting}, or to one that is far behind`,
        'name a replica of the same database, and check that it follows its primary',
      ),
    ];
  return [ok(CHECK, `readers read a replica, and ask ${primary.setting} for what it does not have yet`)];
}

async function stateOf({ setting, url }: ServerSetting): Promise<ReplicaState | Finding> {
  await using store = openStore({ url, role: 'reader', connections: 1 });
  try {
    return await readReplicaState(store.sql);
  } catch (error) {
    const why = postgresProblem(error, { setting, url });
    return why === undefined
      ? problem(
          CHECK,
          `${setting} could not be checked: ${messageOf(error)}`,
          'read the log of PostgreSQL, which names the cause',
        )
      : problemOf(CHECK, why);
  }
}

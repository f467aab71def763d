import { type Configured, databaseUrls, readerDatabase, readerPrimary } from '../../app/connections.ts';
import { BadSetting } from '../../config/settings.ts';
import { openStore } from '../../db/connection/connect.ts';
import { type PostgresFacts, postgresFacts } from '../../db/connection/postgres-misfit.ts';
import { postgresProblem, type ServerSetting } from '../../db/connection/server-problem.ts';
import { messageOf } from '../../domain/driver-error.ts';
import { postgresAddress } from '../../domain/postgres-address.ts';
import { type Finding, ok, problem, problemOf } from './finding.ts';

/** What stands between here and PostgreSQL, and whether readers on a replica can ask its primary. */
export async function checkConnections(config: Configured): Promise<Finding[]> {
  return [...(await checkPooler(config)), ...(await checkReplica(config))];
}

async function checkPooler(config: Configured): Promise<Finding[]> {
  const check = 'pooler';
  let urls: ReturnType<typeof databaseUrls>;
  try {
    urls = databaseUrls(config);
  } catch (error) {
    if (!(error instanceof BadSetting)) throw error;
    return [problemOf(check, error.message)];
  }
  const isPooled = postgresAddress(urls.url).isPooled;
  const isDirect = config.settings.DIRECT_DATABASE_URL !== undefined;
  const setting = isDirect ? 'DIRECT_DATABASE_URL' : 'DATABASE_URL';
  const found = await ask(check, { setting, url: urls.directUrl });
  if ('check' in found) return [found];
  if (found.isPooler)
    return [
      problem(
        check,
        `${setting} leads to a pooler`,
        isDirect
          ? 'give the address of the server itself'
          : 'add pool_mode=transaction to DATABASE_URL, and name the server itself in DIRECT_DATABASE_URL',
      ),
    ];
  return isPooled ? [ok(check, 'sessions go to the server itself, by DIRECT_DATABASE_URL')] : [];
}

async function checkReplica(config: Configured): Promise<Finding[]> {
  if (config.settings.READER_DATABASE_URL === undefined) return [];
  const check = 'replica';
  const reader = readerDatabase(config);
  const found = await ask(check, reader, 'reader');
  if ('check' in found) return [found];
  if (!found.isStandby) return [];
  const primary = readerPrimary(config);
  if (!primary)
    return [
      problem(
        check,
        `${reader.setting} leads to a replica, and no primary is configured for what the replica does not have yet`,
        'name the primary in DATABASE_URL',
      ),
    ];
  const behind = await ask(check, primary, 'reader');
  if ('check' in behind) return [behind];
  if (behind.isStandby)
    return [
      problem(
        check,
        `${primary.setting} leads to a replica as well`,
        `name the primary in ${primary.setting}`,
      ),
    ];
  if (behind.lineage !== found.lineage)
    return [
      problem(
        check,
        `${reader.setting} leads to a replica of another database than ${primary.setting}, or to one that is far behind`,
        'name a replica of the same database, and check that it follows its primary',
      ),
    ];
  return [ok(check, `readers read a replica, and ask ${primary.setting} for what it does not have yet`)];
}

interface Seen extends PostgresFacts {
  readonly lineage: string | undefined;
}

async function ask(
  check: string,
  { setting, url }: ServerSetting,
  role: 'owner' | 'reader' = 'owner',
): Promise<Seen | Finding> {
  await using store = openStore({ url, role, connections: 1 });
  try {
    const facts = await postgresFacts(store.sql);
    const [row] = await store.sql<{ lineage: string }[]>`select id as lineage from lineage`;
    return { ...facts, lineage: row?.lineage };
  } catch (error) {
    const why = postgresProblem(error, { setting, url });
    return why === undefined
      ? problem(
          check,
          `${setting} could not be checked: ${messageOf(error)}`,
          'read the log of PostgreSQL, which names the cause',
        )
      : problemOf(check, why);
  }
}

import { type Configured, databaseUrls } from '../../app/connections.ts';
import { BadSetting } from '../../config/settings.ts';
import { openStore } from '../../db/connection/connect.ts';
import { type PostgresFacts, postgresFacts } from '../../db/connection/postgres-misfit.ts';
import { postgresProblem, type ServerSetting } from '../../db/connection/server-problem.ts';
import { messageOf } from '../../domain/errors.ts';
import { postgresAddress } from '../../domain/servers/postgres-address.ts';
import { type Finding, ok, problem, problemOf } from './finding.ts';

/** Checks whether a pooler is between this machine and PostgreSQL. */
export async function checkConnections(config: Configured): Promise<Finding[]> {
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
  const found = await readFacts(check, { setting, url: urls.directUrl });
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

async function readFacts(check: string, { setting, url }: ServerSetting): Promise<PostgresFacts | Finding> {
  await using store = openStore({ url, role: 'owner', connections: 1 });
  try {
    return await postgresFacts(store.sql);
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

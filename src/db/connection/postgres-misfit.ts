/** Checks at the start whether PostgreSQL is what its setting expects. */
import { OLDEST_POSTGRES } from '../../domain/servers/oldest-servers.ts';
import { postgresAddress } from '../../domain/servers/postgres-address.ts';
import type { Misfit } from '../../redis/misfit.ts';
import type { Sql } from './client.ts';
import type { ServerSetting } from './server-problem.ts';

export interface PostgresFacts {
  readonly version: string;
  readonly role: string;
  readonly isStandby: boolean;
  readonly isReadOnly: boolean;
  readonly isPooler: boolean;
}

export async function postgresFacts(sql: Sql): Promise<PostgresFacts> {
  const rows = await sql<(Omit<PostgresFacts, 'isPooler'> & { pid: number })[]>`
    select split_part(current_setting('server_version'), ' ', 1) as version, current_user as role, pg_is_in_recovery() as "isStandby", pg_backend_pid() as pid,
      current_setting('transaction_read_only') = 'on' as "isReadOnly"`;
  const [row] = rows;
  if (!row) throw new Error('PostgreSQL returned no row');
  const { pid, ...facts } = row;
  // A pooler invents the process id that a client uses to cancel.
  return { ...facts, isPooler: (rows as unknown as { state?: { pid: number } }).state?.pid !== pid };
}

export function versionMisfit(
  { version }: Pick<PostgresFacts, 'version'>,
  setting: string,
): Misfit | undefined {
  if (Number.parseInt(version, 10) >= OLDEST_POSTGRES) return undefined;
  return {
    what: `it is PostgreSQL ${version}`,
    remedy: `upgrade it to PostgreSQL ${OLDEST_POSTGRES} or newer, or name another server in ${setting}`,
  };
}

export function writerMisfit(facts: PostgresFacts, server: ServerSetting): Misfit | undefined {
  const { setting } = server;
  const old = versionMisfit(facts, setting);
  if (old) return old;
  if (facts.isStandby)
    return {
      what: 'it is a standby, which takes no writes',
      remedy: `name the primary in ${setting}`,
    };
  if (facts.isReadOnly)
    return {
      what: 'it is set to read only',
      remedy: `set its default_transaction_read_only to off, or name another server in ${setting}`,
    };
  return roleMisfit(facts, 'fleetbook_worker', server);
}

/** Checks the readers' server. @param hasPrimary true if readers also know the primary of a standby */
export function readerMisfit(
  facts: PostgresFacts,
  server: ServerSetting,
  hasPrimary: boolean,
): Misfit | undefined {
  const old = versionMisfit(facts, server.setting);
  if (old) return old;
  if (facts.isStandby && !hasPrimary)
    return {
      what: 'it is a standby, and readers do not know its primary, which has the latest data',
      remedy: 'name it in READER_DATABASE_URL, and the primary in DATABASE_URL',
    };
  return roleMisfit(facts, 'fleetbook_reader', server);
}

/** Row-level security depends on the role. */
function roleMisfit({ role }: PostgresFacts, wanted: string, { setting }: ServerSetting): Misfit | undefined {
  if (role === wanted) return undefined;
  return {
    what: `statements act as ${role} and not as ${wanted}`,
    remedy: `configure the pooler to pass on \`role\`, or add pool_mode=transaction to ${setting}`,
  };
}

/** Finds an undeclared pooler. Session mode works; transaction mode does not. */
export function poolerMisfit(
  { isPooler }: PostgresFacts,
  { setting, url }: ServerSetting,
): Misfit | undefined {
  if (!isPooler || postgresAddress(url).isPooled) return undefined;
  return {
    what: 'it is a pooler',
    remedy:
      setting === 'DIRECT_DATABASE_URL'
        ? 'give the address of the server itself'
        : `add pool_mode=transaction to ${setting}, and name the server itself in DIRECT_DATABASE_URL`,
  };
}

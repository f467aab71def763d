/** A PostgreSQL that answers and is not what its setting takes it for: found at the start rather than by failing statements. */
import { OLDEST_POSTGRES } from '../../lib/oldest-servers.ts';
import { postgresAddress } from '../../lib/postgres-address.ts';
import type { Misfit } from '../../redis/misfit.ts';
import type { Sql } from './client.ts';
import type { ServerSetting } from './server-problem.ts';

/** What a server says of itself and of this connection. */
export interface PostgresFacts {
  /** E.g. `15.20`. */
  readonly version: string;
  /** The role that statements are carried out as. */
  readonly role: string;
  /** It is a standby. */
  readonly isStandby: boolean;
  /** It refuses writes: as a standby does, or since it is set to. */
  readonly isReadOnly: boolean;
  /** Something that shares connections stands there. */
  readonly isPooler: boolean;
}

/** @throws what PostgreSQL fails with */
export async function postgresFacts(sql: Sql): Promise<PostgresFacts> {
  const rows = await sql<(Omit<PostgresFacts, 'isPooler'> & { pid: number })[]>`
    select split_part(current_setting('server_version'), ' ', 1) as version, current_user as role, pg_is_in_recovery() as "isStandby", pg_backend_pid() as pid,
      current_setting('transaction_read_only') = 'on' as "isReadOnly"`;
  const [row] = rows;
  if (!row) throw new Error('PostgreSQL answers nothing');
  const { pid, ...facts } = row;
  // A pooler makes up the number by which a client would cancel.
  return { ...facts, isPooler: (rows as unknown as { state?: { pid: number } }).state?.pid !== pid };
}

/** Of any server. @param setting that names it */
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

/** Of the server that is written to. */
export function writerMisfit(facts: PostgresFacts, server: ServerSetting): Misfit | undefined {
  const { setting } = server;
  const old = versionMisfit(facts, setting);
  if (old) return old;
  if (facts.isStandby)
    return {
      what: 'it is a standby, which takes no writes',
      remedy: `name the primary in ${setting}, or all hosts, with target_session_attrs=read-write`,
    };
  if (facts.isReadOnly)
    return {
      what: 'it is set to read only',
      remedy: `set its default_transaction_read_only to off, or name another server in ${setting}`,
    };
  return roleMisfit(facts, 'fleetbook_worker', server);
}

/** Of the server that readers read. @param hasPrimary whether another one can be asked for what a standby lacks */
export function readerMisfit(
  facts: PostgresFacts,
  server: ServerSetting,
  hasPrimary: boolean,
): Misfit | undefined {
  const old = versionMisfit(facts, server.setting);
  if (old) return old;
  if (facts.isStandby && !hasPrimary)
    return {
      what: 'it is a standby, and nobody can be asked for what it does not have yet',
      remedy: 'name it in READER_DATABASE_URL, and the primary in DATABASE_URL',
    };
  return roleMisfit(facts, 'fleetbook_reader', server);
}

/** Row-level security holds a role, and whoever acts as another one passes it. */
function roleMisfit({ role }: PostgresFacts, wanted: string, { setting }: ServerSetting): Misfit | undefined {
  if (role === wanted) return undefined;
  return {
    what: `statements act as ${role} and not as ${wanted}`,
    remedy: `let the pooler that stands there pass \`role\` on, or add pool_mode=transaction to ${setting}`,
  };
}

/** A pooler that nobody has told of. One whose sessions are sessions may do; one in transaction mode does not. */
export function poolerMisfit(
  { isPooler }: PostgresFacts,
  { setting, url }: ServerSetting,
): Misfit | undefined {
  if (!isPooler || postgresAddress(url).isPooled) return undefined;
  return {
    what: 'a pooler stands there',
    remedy:
      setting === 'DIRECT_DATABASE_URL'
        ? 'give the address of the server itself'
        : `add pool_mode=transaction to ${setting}, and name the server itself in DIRECT_DATABASE_URL`,
  };
}

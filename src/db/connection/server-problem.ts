/** Messages about unusable servers, from their errors and from their states. They name the setting, the server and what to do, and contain no password. */
import { driverError } from '../../domain/errors.ts';
import { OLDEST_POSTGRES, postgresAddress } from '../../domain/servers/postgres-address.ts';
import type { ClientDatabase } from './client.ts';
import { codeOf } from './errors.ts';

export interface ServerSetting {
  readonly setting: string;
  readonly url: string;
}

export interface Problem {
  readonly what: string;
  readonly remedy: string;
}

export function hostOf(url: string): string {
  const [, hosts = ''] = /^[a-z+]+:\/\/(?:[^/?#]*@)?([^@/?#]*)/i.exec(url) ?? [];
  const port = portOf(url);
  return hosts
    .split(',')
    .map((host) => (/:\d+$/.test(host) ? host : `${host || 'localhost'}:${port}`))
    .join(',');
}

function portOf(url: string): number {
  if (/^rediss?\+sentinel:/i.test(url)) return 26_379;
  return /^rediss?(?:\+cluster)?:/i.test(url) ? 6379 : 5432;
}

export function describeDatabase(url: string): string {
  const [, name = ''] = /^[a-z]+:\/\/[^/?#]*\/([^?#]*)/i.exec(url) ?? [];
  return `database ${decodeURIComponent(name) || 'of the user’s name'} at ${hostOf(url)}`;
}

/** Returns the message for operators; undefined for an error that does not concern the connection to PostgreSQL. */
export function postgresProblem(error: unknown, { setting, url }: ServerSetting): string | undefined {
  const { code, message } = facts(error);
  const problem = inPostgres(code, message, setting) ?? inNetwork(code, message, setting, 'sslmode');
  return problem && `PostgreSQL at ${hostOf(url)} ${problem.what}: ${problem.remedy}`;
}

export function redisProblem(error: unknown, { setting, url }: ServerSetting): string | undefined {
  const { code, message } = facts(error);
  const problem = inRedis(message, setting) ?? inNetwork(code, message, setting, 'redis:// or rediss://');
  return problem && `Redis at ${hostOf(url)} ${problem.what}: ${problem.remedy}`;
}

function inPostgres(code: string, message: string, setting: string): Problem | undefined {
  switch (code) {
    case '28P01':
      return { what: `refuses the password (${message})`, remedy: `correct it in ${setting}` };
    case '28000':
      return {
        what: `does not let the user in (${message})`,
        remedy: `correct the user, or sslmode, in ${setting}, or allow it in the server's pg_hba.conf`,
      };
    case '3D000':
      return {
        what: `has no such database (${message})`,
        remedy: `create it, or correct its name in ${setting}`,
      };
    case '53300':
      return { what: 'has no connection left', remedy: 'raise its max_connections, or run fewer processes' };
    case '57P03':
      return { what: `is not ready (${message})`, remedy: 'wait for it, and try again' };
    case '25006':
      return {
        what: `takes no writes (${message})`,
        remedy: `name the primary in ${setting}`,
      };
    case '08P01':
      return /startup parameter/.test(message)
        ? {
            what: `is a pooler, which does not take what a session begins with (${message})`,
            remedy: `add pool_mode=transaction to ${setting}, and name the server itself in DIRECT_DATABASE_URL`,
          }
        : undefined;
    case '22023':
    case '42P01':
    case '42703':
    case '42883':
      return code === '22023' && !/role "fleetbook_/.test(message)
        ? undefined
        : { what: `is not migrated to this release (${message})`, remedy: 'run `fleetbook migrate`' };
    case '42501':
      return /set role/.test(message)
        ? {
            what: `does not let its user act as another role (${message})`,
            remedy: `grant fleetbook_worker and fleetbook_reader to the user of ${setting}`,
          }
        : undefined;
    default:
      return undefined;
  }
}

function inRedis(message: string, setting: string): Problem | undefined {
  if (/^(?:WRONGPASS|NOAUTH|ERR AUTH|ERR Client sent AUTH)/.test(message))
    return {
      what: `refuses the user or the password (${message})`,
      remedy: `correct it in ${setting}, as redis://user:password@host or redis://:password@host`,
    };
  if (/cluster support disabled/.test(message))
    return { what: 'is no node of a Redis Cluster', remedy: `write ${setting} as redis://host:port` };
  if (/^MOVED /.test(message))
    return {
      what: 'is a node of a Redis Cluster, which has only a part of the keys',
      remedy: `write ${setting} as redis+cluster://host:port,host:port`,
    };
  if (/READONLY You can/.test(message))
    return {
      what: 'is a replica, which takes no writes',
      remedy: `give the address of its master in ${setting}`,
    };
  if (/^CLUSTERDOWN/.test(message))
    return {
      what: `belongs to a Redis Cluster that is down (${message})`,
      remedy: 'restart the masters of its slots, or let replicas take over; see CLUSTER INFO',
    };
  if (/^ERR DB index|^ERR invalid DB/.test(message))
    return {
      what: 'has no database of that number',
      remedy: `correct the number after the host in ${setting}`,
    };
  return undefined;
}

/** Finds problems before the server's first answer. */
function inNetwork(code: string, message: string, setting: string, tls: string): Problem | undefined {
  switch (code) {
    case 'ECONNREFUSED':
      return { what: 'refuses connections', remedy: `start it, or correct host and port in ${setting}` };
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return { what: 'cannot be found, its name does not resolve', remedy: `correct the host in ${setting}` };
    case 'CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return {
        what: 'does not answer',
        remedy: `check that it runs, that this machine can reach it, and that ${tls} in ${setting} is right`,
      };
    case 'ECONNRESET':
    case 'EPIPE':
    case 'CONNECTION_CLOSED':
    case 'CONNECTION_ENDED':
    case 'CONNECTION_DESTROYED':
      return {
        what: 'closes the connection',
        remedy: `check its log, and whether it requires TLS (${tls} in ${setting})`,
      };
    default:
      return /CERT|SELF_SIGNED|^ERR_TLS|^ERR_SSL|^EPROTO/.test(code)
        ? {
            what: `and Fleetbook cannot agree on TLS (${message.split('\n')[0]})`,
            remedy: `correct ${tls} in ${setting}, or give the certificate's authority in NODE_EXTRA_CA_CERTS`,
          }
        : undefined;
  }
}

/** Node wraps the errors of several addresses. */
function facts(error: unknown): { code: string; message: string } {
  const cause = driverError(error);
  const first: unknown = cause instanceof AggregateError && cause.message === '' ? cause.errors[0] : cause;
  return first instanceof Error
    ? { code: codeOf(first) ?? '', message: first.message }
    : { code: '', message: '' };
}

export interface PostgresFacts {
  readonly version: string;
  readonly role: string;
  readonly isStandby: boolean;
  readonly isReadOnly: boolean;
  readonly isPooler: boolean;
}

export async function postgresFacts({ $client }: ClientDatabase): Promise<PostgresFacts> {
  const rows = await $client<(Omit<PostgresFacts, 'isPooler'> & { pid: number })[]>`
    select split_part(current_setting('server_version'), ' ', 1) as version, current_user as role, pg_is_in_recovery() as "isStandby", pg_backend_pid() as pid,
      current_setting('transaction_read_only') = 'on' as "isReadOnly"`;
  const [row] = rows;
  if (!row) throw new Error('PostgreSQL returned no row');
  const { pid, ...facts } = row;
  // A pooler invents the process id that a client uses to cancel.
  return { ...facts, isPooler: (rows as unknown as { state?: { pid: number } }).state?.pid !== pid };
}

export function checkVersion(
  { version }: Pick<PostgresFacts, 'version'>,
  setting: string,
): Problem | undefined {
  if (Number.parseInt(version, 10) >= OLDEST_POSTGRES) return undefined;
  return {
    what: `it is PostgreSQL ${version}`,
    remedy: `upgrade it to PostgreSQL ${OLDEST_POSTGRES} or newer, or name another server in ${setting}`,
  };
}

export function checkWriter(facts: PostgresFacts, server: ServerSetting): Problem | undefined {
  const { setting } = server;
  const old = checkVersion(facts, setting);
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
  return checkRole(facts, 'fleetbook_worker', server);
}

/** Checks the readers' server. @param hasPrimary true if readers also know the primary of a standby */
export function checkReader(
  facts: PostgresFacts,
  server: ServerSetting,
  hasPrimary: boolean,
): Problem | undefined {
  const old = checkVersion(facts, server.setting);
  if (old) return old;
  if (facts.isStandby && !hasPrimary)
    return {
      what: 'it is a standby, and readers do not know its primary, which has the latest data',
      remedy: 'name it in READER_DATABASE_URL, and the primary in DATABASE_URL',
    };
  return checkRole(facts, 'fleetbook_reader', server);
}

/** Row-level security depends on the role. */
function checkRole({ role }: PostgresFacts, wanted: string, { setting }: ServerSetting): Problem | undefined {
  if (role === wanted) return undefined;
  return {
    what: `statements act as ${role} and not as ${wanted}`,
    remedy: `configure the pooler to pass on \`role\`, or add pool_mode=transaction to ${setting}`,
  };
}

/** Finds an undeclared pooler. Session mode works; transaction mode does not. */
export function checkPooler(
  { isPooler }: PostgresFacts,
  { setting, url }: ServerSetting,
): Problem | undefined {
  if (!isPooler || postgresAddress(url).isPooled) return undefined;
  return {
    what: 'it is a pooler',
    remedy:
      setting === 'DIRECT_DATABASE_URL'
        ? 'give the address of the server itself'
        : `add pool_mode=transaction to ${setting}, and name the server itself in DIRECT_DATABASE_URL`,
  };
}

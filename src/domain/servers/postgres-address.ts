/** The oldest version and the URL of PostgreSQL: one server, or a pooler in front of it. */

/** The oldest supported major version, which the tests run on and every process checks at its start. The schema needs its `nulls not distinct`. */
export const OLDEST_POSTGRES = 15;

export interface PostgresAddress {
  /** True for a pooler in transaction mode. */
  readonly isPooled: boolean;
  /** For the driver: without the options of this module. */
  readonly url: string;
}

const HOSTS = /^postgres(?:ql)?:\/\/(?:[^@/?#]*@)?([^@/?#]*)/;

const FAILOVER =
  'a failover is the job of the address, such as the service of CloudNativePG, a proxy in front of Patroni, or the endpoint of a managed service';

/** @throws Error with the problem and an accepted form. It never contains a part of the URL that may be secret. */
export function postgresAddress(url: string): PostgresAddress {
  const [, hosts = ''] = HOSTS.exec(url) ?? [];
  if (/,|%2c/i.test(hosts)) throw new Error(`must name one host: ${FAILOVER}`);
  const parsed = HOSTS.test(url) ? URL.parse(url) : null;
  if (!parsed)
    throw new Error(
      'must be a URL that starts with postgres:// or postgresql://, such as postgres://user:password@host:5432/database',
    );
  // The driver would wait forever for a server of that kind.
  if (parsed.searchParams.has('target_session_attrs'))
    throw new Error(`must not have target_session_attrs: ${FAILOVER}`);
  // As in libpq, the last one counts.
  const isPooled = isPooledBy(parsed.searchParams.getAll('pool_mode').at(-1));
  parsed.searchParams.delete('pool_mode');
  return { isPooled, url: parsed.href };
}

function isPooledBy(given: string | undefined): boolean {
  if (given === undefined || given === 'session') return false;
  if (given === 'transaction') return true;
  throw new Error('must have transaction or session as pool_mode: no other mode is supported');
}

/** Where PostgreSQL is, as its URL says: one server, or several of which one is chosen by what it is. */

export interface PostgresHost {
  readonly host: string;
  readonly port: number;
}

/** Which of several servers is wanted, in libpq's words. */
export const SESSION_TARGETS = [
  'any',
  'read-write',
  'read-only',
  'primary',
  'standby',
  'prefer-standby',
] as const;

export type SessionTarget = (typeof SESSION_TARGETS)[number];

export interface PostgresAddress {
  readonly hosts: readonly PostgresHost[];
  readonly target: SessionTarget;
  /** True where a server has to be chosen: there are several, or the only one has to be of a kind. */
  readonly isChosen: boolean;
  /** A pooler in transaction mode stands there (`pool_mode=transaction`): nothing lasts longer than a transaction. */
  readonly isPooled: boolean;
  /** The same with the first host alone and without the options that are read here: what the driver gets. */
  readonly url: string;
}

const URL_PARTS = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^@/?#]*)((?:\/[^?#]*)?(?:\?[^#]*)?)$/;

/** @throws Error that says what is wrong with it and what would do, without any part of it that may be secret */
export function postgresAddress(url: string): PostgresAddress {
  const [, before, hostList = '', after = ''] = URL_PARTS.exec(url) ?? [];
  const parts = hostList.split(',');
  const first = before === undefined ? null : URL.parse(`${before}${parts[0]}${after}`);
  if (!first) throw new Error(`must be ${POSTGRES_URLS}`);
  const taken = (name: string) => {
    // The last one counts, as in libpq.
    const value = first.searchParams.getAll(name).at(-1);
    first.searchParams.delete(name);
    return value;
  };
  const target = targetOf(taken('target_session_attrs'), parts.length);
  const isPooled = isPooledBy(taken('pool_mode'));
  const isChosen = parts.length > 1 || target !== 'any';
  // One server is left to the driver, which also knows sockets.
  return { hosts: isChosen ? parts.map(hostOf) : [], target, isChosen, isPooled, url: first.href };
}

/** The same hosts with the primary as the wanted one; undefined for one host. */
export function primaryAmong(url: string): string | undefined {
  if (postgresAddress(url).hosts.length < 2) return undefined;
  return `${url}${url.includes('?') ? '&' : '?'}target_session_attrs=primary`;
}

const POSTGRES_URLS =
  'a URL that starts with postgres:// or postgresql://, such as postgres://user:password@host:5432/database, or with several hosts postgres://user:password@host:5432,host:5432/database';

function targetOf(given: string | undefined, hosts: number): SessionTarget {
  if (given === undefined) return hosts > 1 ? 'read-write' : 'any';
  const target = SESSION_TARGETS.find((each) => each === given);
  if (target === undefined)
    throw new Error(`must have one of ${SESSION_TARGETS.join(', ')} as target_session_attrs`);
  return target;
}

function isPooledBy(given: string | undefined): boolean {
  if (given === undefined || given === 'session') return false;
  if (given === 'transaction') return true;
  throw new Error(
    'must have transaction or session as pool_mode: what a pooler does otherwise cannot be used',
  );
}

function hostOf(text: string): PostgresHost {
  const [, host = '', port = '5432'] = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s%]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const number = Number(port);
  if (host === '' || number < 1 || number > 65_535)
    throw new Error('must name its hosts as host:port,host:port');
  return { host: host.replace(/^\[|\]$/g, ''), port: number };
}

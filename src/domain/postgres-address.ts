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

const URL_PARTS = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^@/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/;

/** @throws Error that says what is wrong with it and what would do, without any part of it that may be secret */
export function postgresAddress(url: string): PostgresAddress {
  const [, before, hostList, path = '', query] = URL_PARTS.exec(url) ?? [];
  if (before === undefined || hostList === undefined) throw new Error(`must be ${POSTGRES_URLS}`);
  const parts = hostList.split(',');
  const options = query?.split('&').filter((option) => option !== '') ?? [];
  const target = targetOf(options, parts.length);
  const isPooled = isPooledBy(options);
  const driverOptions = options.filter((option) => !/^(?:target_session_attrs|pool_mode)=/.test(option));
  const rest = `${path}${driverOptions.length === 0 ? '' : `?${driverOptions.join('&')}`}`;
  const driverUrl = `${before}${parts[0]}${rest}`;
  if (!URL.canParse(driverUrl)) throw new Error(`must be ${POSTGRES_URLS}`);
  const isChosen = parts.length > 1 || target !== 'any';
  // One server is left to the driver, which also knows sockets.
  const hosts = isChosen ? parts.map(hostOf) : [];
  return { hosts, target, isChosen, isPooled, url: driverUrl };
}

/** The same hosts, of which the primary is wanted; undefined where only one is named. */
export function primaryAmong(url: string): string | undefined {
  const { hosts } = postgresAddress(url);
  if (hosts.length < 2) return undefined;
  const [address = '', query = ''] = url.split('?', 2);
  const options = query
    .split('&')
    .filter((option) => option !== '' && !option.startsWith('target_session_attrs='));
  return `${address}?${[...options, 'target_session_attrs=primary'].join('&')}`;
}

const POSTGRES_URLS =
  'a URL that starts with postgres:// or postgresql://, such as postgres://user:password@host:5432/database, or with several hosts postgres://user:password@host:5432,host:5432/database';

function targetOf(options: readonly string[], hosts: number): SessionTarget {
  const given = lastOf(options, 'target_session_attrs');
  if (given === undefined) return hosts > 1 ? 'read-write' : 'any';
  const target = SESSION_TARGETS.find((each) => each === given);
  if (target === undefined)
    throw new Error(`must have one of ${SESSION_TARGETS.join(', ')} as target_session_attrs`);
  return target;
}

function isPooledBy(options: readonly string[]): boolean {
  const given = lastOf(options, 'pool_mode');
  if (given === undefined || given === 'session') return false;
  if (given === 'transaction') return true;
  throw new Error(
    'must have transaction or session as pool_mode: what a pooler does otherwise cannot be used',
  );
}

function lastOf(options: readonly string[], name: string): string | undefined {
  return options.findLast((option) => option.startsWith(`${name}=`))?.slice(name.length + 1);
}

function hostOf(text: string): PostgresHost {
  const [, host = '', port = '5432'] = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s%]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const number = Number(port);
  if (host === '' || number < 1 || number > 65_535)
    throw new Error('must name its hosts as host:port,host:port');
  return { host: host.replace(/^\[|\]$/g, ''), port: number };
}

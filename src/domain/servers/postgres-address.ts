/** The URL of PostgreSQL: one server, or several; the client chooses one by its role. */
import { type ServerHost, serverHost } from './server-host.ts';

export const SERVER_TARGETS = [
  'any',
  'read-write',
  'read-only',
  'primary',
  'standby',
  'prefer-standby',
] as const;

export type ServerTarget = (typeof SERVER_TARGETS)[number];

export interface PostgresAddress {
  readonly hosts: readonly ServerHost[];
  readonly target: ServerTarget;
  /** True for several servers, or for one server with a wanted role. */
  readonly isChosen: boolean;
  readonly isPooled: boolean;
  /** For the driver: the first host only, without the options of this module. */
  readonly url: string;
}

const URL_PARTS = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^@/?#]*)((?:\/[^?#]*)?(?:\?[^#]*)?)$/;

/** @throws Error with the problem and an accepted form. It never contains a part of the URL that may be secret. */
export function postgresAddress(url: string): PostgresAddress {
  const [, before, hostList = '', after = ''] = URL_PARTS.exec(url) ?? [];
  const parts = hostList.split(',');
  const first = before === undefined ? null : URL.parse(`${before}${parts[0]}${after}`);
  if (!first) throw new Error(`must be ${POSTGRES_URLS}`);
  const takeOption = (name: string) => {
    // As in libpq, the last one counts.
    const value = first.searchParams.getAll(name).at(-1);
    first.searchParams.delete(name);
    return value;
  };
  const target = targetOf(takeOption('target_session_attrs'), parts.length);
  const isPooled = isPooledBy(takeOption('pool_mode'));
  const isChosen = parts.length > 1 || target !== 'any';
  // The driver opens a single server itself: it also supports sockets.
  const hosts = isChosen ? parts.map((part) => serverHost(part, 5432)) : [];
  return { hosts, target, isChosen, isPooled, url: first.href };
}

/** Returns the URL with the primary as the wanted server; undefined for a single host. */
export function primaryAmong(url: string): string | undefined {
  if (postgresAddress(url).hosts.length < 2) return undefined;
  return `${url}${url.includes('?') ? '&' : '?'}target_session_attrs=primary`;
}

const POSTGRES_URLS =
  'a URL that starts with postgres:// or postgresql://, such as postgres://user:password@host:5432/database, or with several hosts postgres://user:password@host:5432,host:5432/database';

function targetOf(given: string | undefined, hosts: number): ServerTarget {
  if (given === undefined) return hosts > 1 ? 'read-write' : 'any';
  const target = SERVER_TARGETS.find((each) => each === given);
  if (target === undefined)
    throw new Error(`must have one of ${SERVER_TARGETS.join(', ')} as target_session_attrs`);
  return target;
}

function isPooledBy(given: string | undefined): boolean {
  if (given === undefined || given === 'session') return false;
  if (given === 'transaction') return true;
  throw new Error('must have transaction or session as pool_mode: no other mode is supported');
}

/** The oldest version and the URL of Redis: one server, a Redis Cluster, or servers behind Sentinels. */
/** A server of a URL with several. */
export interface ServerHost {
  readonly host: string;
  readonly port: number;
}

interface Entry {
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** True for `rediss…`. */
  readonly tls: boolean;
}

export type RedisAddress =
  /** One server. ioredis parses the URL. */
  | { readonly kind: 'server'; readonly url: string }
  /** `redis+cluster://[user:password@]host:port,host:port` with some of its nodes. They name the others. */
  | (Entry & { readonly kind: 'cluster'; readonly hosts: readonly ServerHost[] })
  /** `redis+sentinel://[user:password@]host:port,host:port/MASTER` with the Sentinels and the master's name. */
  | (Entry & {
      readonly kind: 'sentinel';
      readonly hosts: readonly ServerHost[];
      readonly master: string;
      /** Credentials of the Sentinels themselves (`?sentinel_user=…&sentinel_password=…`). */
      readonly sentinelUsername: string | undefined;
      readonly sentinelPassword: string | undefined;
    });

const ENGINE = /^(rediss?)\+(cluster|sentinel):\/\/(?:([^@/?#]*)@)?([^@/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/;

const REDIS_URLS =
  'redis://host:6379, redis+cluster://host:6379,host:6379 or redis+sentinel://host:26379,host:26379/MASTER; by TLS rediss…';

/** @throws Error with the problem and an accepted form. It never contains a part of the URL that may be secret. */
export function redisAddress(url: string): RedisAddress {
  if (/^rediss?:\/\//.test(url) && URL.canParse(url)) return { kind: 'server', url };
  const match = ENGINE.exec(url);
  if (!match) throw new Error(`must be ${REDIS_URLS}`);
  const [, scheme, kind, user, hostList = '', path = '', query = ''] = match;
  const port = kind === 'cluster' ? 6379 : 26_379;
  const hosts = hostList.split(',').map((host) => serverHost(host, port));
  const entry = { ...userOf(user), tls: scheme === 'rediss' };
  if (kind === 'cluster') {
    if (path !== '' || query !== '')
      throw new Error('must end after the hosts: a Redis Cluster has one database and no further options');
    return { kind, hosts, ...entry };
  }
  const master = decoded(path);
  if (master === '' || master.includes('/'))
    throw new Error('must name the master that the Sentinels watch: redis+sentinel://host:26379/mymaster');
  return { kind: 'sentinel', hosts, master, ...entry, ...sentinelUserOf(query) };
}

/** Parses `host`, `host:port` or `[IPv6]:port`. @throws Error with the accepted form; it repeats no part of the text */
function serverHost(text: string, standardPort: number): ServerHost {
  const [, host = '', port] = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s%]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const number = port === undefined ? standardPort : Number(port);
  if (host === '' || number < 1 || number > 65_535)
    throw new Error('must name its hosts as host:port,host:port');
  return { host: host.replace(/^\[|\]$/g, ''), port: number };
}

function userOf(text: string | undefined): Pick<Entry, 'username' | 'password'> {
  if (text === undefined) return { username: undefined, password: undefined };
  const at = text.indexOf(':');
  if (at < 0) throw new Error('must give user and password as user:password@ or :password@');
  return { username: decoded(text.slice(0, at)) || undefined, password: decoded(text.slice(at + 1)) };
}

function sentinelUserOf(query: string) {
  const options = new URLSearchParams(query);
  for (const name of options.keys()) {
    if (name !== 'sentinel_user' && name !== 'sentinel_password')
      throw new Error('may have only sentinel_user and sentinel_password as options after the question mark');
  }
  return {
    sentinelUsername: options.get('sentinel_user') ?? undefined,
    sentinelPassword: options.get('sentinel_password') ?? undefined,
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error('must have % in user, password and master written as %25');
  }
}

/** The oldest supported version. Every Valkey is newer. */
export const OLDEST_REDIS = '7.0';

export function isAtLeast(version: string, oldest: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldest.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}

import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { hostOf, redisProblem, type ServerSetting } from '../db/connection/server-problem.ts';
import { type RedisAddress, redisAddress } from '../domain/servers/redis-address.ts';
import { hostWithoutConnection, keepConnecting, MasterConnector, ServerConnector } from './connectors.ts';

/** One server, also the master behind Sentinels, or a Redis Cluster. */
export type RedisClient = Redis | Cluster;

/**
 * The use of a connection decides how it fails:
 * - `reader`: with the socket, without a queue. The cache link has an earlier deadline for each command.
 * - `stream`: with the socket, for commands that wait a second for entries. It reconnects without end.
 * - `publisher`: after seconds, because a large document takes time.
 * - `producer`: at once while the queue's Redis is away.
 * - `worker`: never. BullMQ requires it for blocking commands.
 *
 * `socketTimeout` detects a vanished server, which the kernel does only after a quarter of an hour.
 */
export type RedisUse = 'reader' | 'stream' | 'publisher' | 'producer' | 'worker';

type Options = Omit<RedisOptions, 'replyMapping'>;

const reconnect = (times: number): number => Math.min(50 * times, 1000);

/**
 * A server that became a replica refuses writes on its open connections. A new connection leads to the new master, behind a
 * name, a proxy or a virtual address. Older servers wrap the error of a script. UNBLOCKED ends a command that waited for data.
 */
const refusesWrites = ({ message }: Error): boolean => /READONLY You can|^UNBLOCKED /.test(message);

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * The same with a growing pause. A reader may use a replica for good, which refuses only its write-backs, and each new
 * connection costs it the reads under way.
 */
function refusesWritesWithBackoff(): (error: Error) => boolean {
  let pause = 0;
  let last = Number.NEGATIVE_INFINITY;
  return (error) => {
    const since = performance.now() - last;
    if (!refusesWrites(error) || since < pause) return false;
    const next = since > 2 * LONGEST_PAUSE_MS ? FIRST_PAUSE_MS : 2 * pause || FIRST_PAUSE_MS;
    pause = Math.min(LONGEST_PAUSE_MS, next);
    last = performance.now();
    return true;
  };
}

const OPTIONS: Record<RedisUse, Options> = {
  reader: {
    // One write for all commands of a turn of the event loop: system calls are a large part of the cost of a miss. An MGET has all
    // documents of a turn, and a pipeline would keep them alive until the next major collection.
    enableAutoPipelining: true,
    autoPipeliningIgnoredCommands: ['mget'],
    enableOfflineQueue: false,
    socketTimeout: 1000,
    connectTimeout: 500,
    disconnectTimeout: 250,
    maxRetriesPerRequest: 0,
  },
  stream: {
    enableOfflineQueue: false,
    socketTimeout: 2000,
    connectTimeout: 1000,
    disconnectTimeout: 250,
    maxRetriesPerRequest: 0,
  },
  publisher: {
    // A comparison reads the first line of every document.
    enableAutoPipelining: true,
    enableOfflineQueue: false,
    commandTimeout: 10_000,
    socketTimeout: 15_000,
    connectTimeout: 2000,
    maxRetriesPerRequest: 0,
  },
  producer: {
    enableOfflineQueue: false,
    commandTimeout: 2000,
    socketTimeout: 5000,
    connectTimeout: 2000,
    maxRetriesPerRequest: 0,
  },
  worker: { connectTimeout: 5000, maxRetriesPerRequest: null },
};

const REDIRECTIONS: Record<RedisUse, [most: number, delayMs: number]> = {
  reader: [4, 0],
  stream: [4, 100],
  publisher: [16, 100],
  producer: [16, 100],
  worker: [100, 200],
};
const REFRESH_SLOTS_MS = 2000;
const SENTINEL_TIMEOUT_MS = 1000;

interface Origin extends ServerSetting {
  failure: Error | undefined;
}
const origins = new WeakMap<RedisClient, Origin>();

/** Opens a connection in the background. @param setting the environment variable with the URL */
export function openRedis(
  url: string,
  use: RedisUse,
  onError: (error: Error) => void,
  setting = 'REDIS_URL',
): RedisClient {
  const redis = clientOf(redisAddress(url), use);
  const origin: Origin = { setting, url, failure: undefined };
  origins.set(redis, origin);
  const failed = (error: Error) => {
    origin.failure = error;
    onError(error);
  };
  // The error of a cluster has no cause. That of its last node has one.
  redis.on('error', (error: Error & { lastNodeError?: Error }) => failed(error.lastNodeError ?? error));
  if (isCluster(redis)) redis.on('connect', () => void clusterDown(redis).then((why) => why && failed(why)));
  return redis;
}

async function clusterDown(redis: Cluster): Promise<Error | undefined> {
  const info = await redis.cluster('INFO').then(String, () => '');
  const [, state] = /^cluster_state:(\w+)/m.exec(info) ?? [];
  const [, served = '?'] = /^cluster_slots_ok:(\d+)/m.exec(info) ?? [];
  if (state !== 'fail') return undefined;
  return new Error(`CLUSTERDOWN cluster_state is fail, ${served} of 16384 slots are served`);
}

function clientOf(address: RedisAddress, use: RedisUse): RedisClient {
  const options = {
    ...OPTIONS[use],
    // The command fails. Its caller recovers what it lost.
    reconnectOnError: use === 'reader' ? refusesWritesWithBackoff() : refusesWrites,
    retryStrategy: reconnect,
    Connector: ServerConnector,
  };
  if (address.kind === 'server') return new Redis(address.url, options);
  const { hosts, username, password, tls } = address;
  const entry = {
    ...options,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: {} }),
  };
  if (address.kind === 'sentinel') {
    const redis = new Redis({
      ...entry,
      Connector: MasterConnector,
      sentinels: [...hosts],
      name: address.master,
      // A master that hangs keeps its connections: only the Sentinels know that it was replaced.
      failoverDetector: true,
      sentinelRetryStrategy: reconnect,
      sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
      ...(address.sentinelUsername !== undefined && { sentinelUsername: address.sentinelUsername }),
      ...(address.sentinelPassword !== undefined && { sentinelPassword: address.sentinelPassword }),
      ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
    });
    return keepConnecting(redis);
  }
  const {
    enableOfflineQueue = true,
    enableAutoPipelining = false,
    autoPipeliningIgnoredCommands = [],
  } = OPTIONS[use];
  const { retryStrategy: _, ...redisOptions } = entry;
  const [maxRedirections, delayMs] = REDIRECTIONS[use];
  return new Cluster([...hosts], {
    redisOptions,
    enableOfflineQueue,
    enableAutoPipelining,
    autoPipeliningIgnoredCommands,
    maxRedirections,
    retryDelayOnFailover: delayMs,
    retryDelayOnClusterDown: delayMs,
    // Not `clusterNodeRetryStrategy`: ioredis 6.0.0 then never answers the commands of a node that leaves while it reconnects.
    clusterRetryStrategy: reconnect,
    slotsRefreshInterval: REFRESH_SLOTS_MS,
    // Certificates are for names: these are not turned into addresses.
    dnsLookup: (name, found) => found(null, name),
  });
}

export const isCluster = (redis: RedisClient): redis is Cluster => redis instanceof Cluster;

/** Returns the servers with data: each master of a cluster, or the one server. */
export function mastersOf(redis: RedisClient): readonly Redis[] {
  return isCluster(redis) ? redis.nodes('master') : [redis];
}

/** Resolves when the connection takes commands. @throws Error with the server, the setting and the cause after the timeout */
export async function redisReady(redis: RedisClient, timeoutMs: number): Promise<void> {
  if (redis.status === 'ready') return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(
    () => void notReady(redis, timeoutMs).then((why) => reject(new Error(why))),
    timeoutMs,
  );
  redis.once('ready', resolve);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    redis.off('ready', resolve);
  }
}

async function notReady(redis: RedisClient, timeoutMs: number): Promise<string> {
  const origin = origins.get(redis);
  if (!origin) return `Redis did not answer within ${timeoutMs} ms`;
  const why = (origin.failure && redisProblem(origin.failure, origin)) ?? (await hostProblem(origin));
  if (why) return why;
  return `Redis at ${hostOf(origin.url)} did not answer within ${timeoutMs} ms: start it, or correct ${origin.setting}`;
}

async function hostProblem({ setting, url }: Origin): Promise<string | undefined> {
  const address = redisAddress(url);
  if (address.kind === 'server') return undefined;
  const found = await hostWithoutConnection(address.hosts, address.tls);
  return found && redisProblem(found.error, { setting, url: `redis://${found.host}:${found.port}` });
}

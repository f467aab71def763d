import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { hostOf, redisProblem, type ServerSetting } from '../db/connection/server-problem.ts';
import { type RedisAddress, type RedisHost, redisAddress } from '../lib/redis-address.ts';
import { hostWithoutConnection, MasterConnector, nextHost, ServerConnector } from './connectors.ts';
import { keepConnecting } from './keep-connecting.ts';

/** One server, also the master behind Sentinels, or a Redis Cluster. */
export type RedisClient = Redis | Cluster;

/**
 * What a connection is for decides how it fails:
 * - `reader`: within 50 ms, never queued; three settings are needed, since a timed-out command otherwise stays in
 *   the client's queue until the socket does.
 * - `subscriber`: RESP2, reconnects for ever; subscribing and pinging get 250 ms.
 * - `publisher`: seconds, so that a large document may take its time.
 * - `producer`: adding a job fails at once when the queue's Redis is away.
 * - `worker`: waits for ever on blocking commands, as BullMQ asks.
 *
 * Where commands have a deadline, the socket has a longer one. Without it a connection whose other end vanished silently
 * would be kept until the kernel gives it up, a quarter of an hour later.
 */
export type RedisUse = 'reader' | 'subscriber' | 'publisher' | 'producer' | 'worker';

const reconnect = (times: number): number => Math.min(50 * times, 1000);

/**
 * A server that was a master and is a replica now goes on answering on the connections that it has, and refuses every
 * write. A new connection leads to the new master, where a name, a proxy or a virtual address stands before both. Older
 * servers wrap what a script was refused; a command that waited for data is sent away with UNBLOCKED.
 */
const refusesWrites = ({ message }: Error): boolean => /READONLY You can|^UNBLOCKED /.test(message);

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * A reader may read from a replica for good, and only its write-backs are refused there: it looks for a master ever more
 * seldom, since what it reads meanwhile is cut off.
 */
function nowAndThen(): (error: Error) => boolean {
  let pause = 0;
  let last = Number.NEGATIVE_INFINITY;
  return (error) => {
    if (!refusesWrites(error)) return false;
    const since = performance.now() - last;
    if (since < pause) return false;
    pause =
      since > 2 * LONGEST_PAUSE_MS ? FIRST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, 2 * pause || FIRST_PAUSE_MS);
    last = performance.now();
    return true;
  };
}

const OPTIONS: Record<RedisUse, Omit<RedisOptions, 'replyMapping'>> = {
  reader: {
    // Commands of one turn of the event loop go out in one write: system calls are most of a miss's cost.
    enableAutoPipelining: true,
    enableOfflineQueue: false,
    commandTimeout: 50,
    socketTimeout: 1000,
    connectTimeout: 500,
    disconnectTimeout: 250,
    maxRetriesPerRequest: 0,
  },
  subscriber: {
    protocol: 2,
    // The cache subscription subscribes on each `ready` itself: ioredis would hide a failure to do so.
    autoResubscribe: false,
    commandTimeout: 250,
    connectTimeout: 1000,
    disconnectTimeout: 250,
    maxRetriesPerRequest: null,
  },
  publisher: {
    // A comparison reads the head of every document.
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

type Options = Omit<RedisOptions, 'replyMapping'>;

/**
 * How long a cluster's client follows its nodes about. A reader does not: what is on its way to another node is a miss,
 * and the next look at the cluster is near.
 */
const REDIRECTIONS: Record<RedisUse, { readonly maxRedirections: number; readonly retryDelayMs: number }> = {
  reader: { maxRedirections: 4, retryDelayMs: 0 },
  // Not a client of the cluster, but of one of its nodes.
  subscriber: { maxRedirections: 0, retryDelayMs: 0 },
  publisher: { maxRedirections: 16, retryDelayMs: 100 },
  producer: { maxRedirections: 16, retryDelayMs: 100 },
  worker: { maxRedirections: 100, retryDelayMs: 200 },
};
/** Milliseconds between two looks at which node has which slots. A refusal by a node makes another look at once. */
const LOOK_AT_CLUSTER_MS = 2000;
const SENTINEL_ANSWERS_WITHIN_MS = 1000;

/** What is known of a connection besides: where its URL comes from, and what it failed with last. */
interface Origin extends ServerSetting {
  failure: Error | undefined;
}
const origins = new WeakMap<RedisClient, Origin>();

/**
 * Opens a connection in the background. `onError` hears of every failure; ioredis reconnects by itself.
 * @param setting of the environment, from which the URL comes
 */
export function openRedis(
  url: string,
  use: 'subscriber',
  onError: (error: Error) => void,
  setting?: string,
): Redis;
export function openRedis(
  url: string,
  use: RedisUse,
  onError: (error: Error) => void,
  setting?: string,
): RedisClient;
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
  redis.on('error', (error: Error) => {
    // What a cluster fails with says nothing; what the last of its nodes failed with does.
    const { lastNodeError = error } = error as { lastNodeError?: Error };
    failed(lastNodeError);
  });
  if (isCluster(redis)) redis.on('connect', () => void clusterDown(redis).then((why) => why && failed(why)));
  return redis;
}

/** A cluster that is down is not taken for ready, and ioredis says nothing of it: its nodes answer well. */
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
    // The command fails: what is lost with it, whoever sent it finds again.
    reconnectOnError: use === 'reader' ? nowAndThen() : refusesWrites,
    Connector: ServerConnector,
  };
  if (address.kind === 'server') return new Redis(address.url, { ...options, retryStrategy: reconnect });
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
      retryStrategy: reconnect,
      sentinels: [...hosts],
      name: address.master,
      // A master that hangs keeps its connections: only the Sentinels know that it is one no more.
      failoverDetector: true,
      sentinelRetryStrategy: reconnect,
      sentinelCommandTimeout: SENTINEL_ANSWERS_WITHIN_MS,
      ...(address.sentinelUsername !== undefined && { sentinelUsername: address.sentinelUsername }),
      ...(address.sentinelPassword !== undefined && { sentinelPassword: address.sentinelPassword }),
      ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
    });
    return keepConnecting(redis);
  }
  // What is published anywhere in a cluster reaches every node: one connection to any of them hears all of it.
  if (use === 'subscriber')
    return new Redis({ ...entry, retryStrategy: reconnect, Connector: nextHost(hosts) });
  return clusterOf(hosts, use, options, entry);
}

function clusterOf(
  hosts: readonly RedisHost[],
  use: RedisUse,
  { enableOfflineQueue = true, enableAutoPipelining = false }: Options,
  redisOptions: Omit<Options, 'enableOfflineQueue'>,
): Cluster {
  const { maxRedirections, retryDelayMs } = REDIRECTIONS[use];
  return new Cluster([...hosts], {
    redisOptions,
    enableOfflineQueue,
    enableAutoPipelining,
    maxRedirections,
    retryDelayOnFailover: retryDelayMs,
    retryDelayOnClusterDown: retryDelayMs,
    clusterRetryStrategy: reconnect,
    clusterNodeRetryStrategy: reconnect,
    slotsRefreshInterval: LOOK_AT_CLUSTER_MS,
    // Certificates are for names: these are not turned into addresses.
    dnsLookup: (name, found) => found(null, name),
  });
}

export const isCluster = (redis: RedisClient): redis is Cluster => redis instanceof Cluster;

/** The servers that hold data: each master of a cluster, or the one server. */
export function mastersOf(redis: RedisClient): readonly Redis[] {
  return isCluster(redis) ? redis.nodes('master') : [redis];
}

/** Resolves when the connection takes commands. @throws Error naming the server, the setting and why, when it does not in time. */
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
  return `Redis at ${hostOf(origin.url)} did not answer within ${timeoutMs} ms: look whether it runs, or correct ${origin.setting}`;
}

/** Of a cluster's node or a Sentinel that takes no connection. */
async function hostProblem({ setting, url }: Origin): Promise<string | undefined> {
  const address = redisAddress(url);
  if (address.kind === 'server') return undefined;
  const found = await hostWithoutConnection(address.hosts, address.tls);
  return found && redisProblem(found.error, { setting, url: `redis://${found.host}:${found.port}` });
}

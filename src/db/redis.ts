import { Redis, type RedisOptions } from 'ioredis';
import { redisProblem, type ServerSetting } from './server-problem.ts';

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

/** What is known of a connection besides: where its URL comes from, and what it failed with last. */
interface Origin extends ServerSetting {
  failure: Error | undefined;
}
const origins = new WeakMap<Redis, Origin>();

/**
 * Opens a connection in the background. `onError` hears of every failure; ioredis reconnects by itself.
 * @param setting of the environment, from which the URL comes
 */
export function openRedis(
  url: string,
  use: RedisUse,
  onError: (error: Error) => void,
  setting = 'REDIS_URL',
): Redis {
  const redis = new Redis(url, { ...OPTIONS[use], retryStrategy: reconnect });
  const origin: Origin = { setting, url, failure: undefined };
  origins.set(redis, origin);
  redis.on('error', (error) => {
    origin.failure = error;
    onError(error);
  });
  return redis;
}

/** Resolves when the connection takes commands. @throws Error naming the server, the setting and why, when it does not in time. */
export async function redisReady(redis: Redis, timeoutMs: number): Promise<void> {
  if (redis.status === 'ready') return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => reject(new Error(notReady(redis, timeoutMs))), timeoutMs);
  redis.once('ready', resolve);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    redis.off('ready', resolve);
  }
}

function notReady(redis: Redis, timeoutMs: number): string {
  const { host, port } = redis.options;
  const origin = origins.get(redis);
  const why = origin?.failure && redisProblem(origin.failure, origin);
  if (why) return why;
  const setting = origin ? `: look whether it runs, or correct ${origin.setting}` : '';
  return `Redis at ${host}:${port} did not answer within ${timeoutMs} ms${setting}`;
}

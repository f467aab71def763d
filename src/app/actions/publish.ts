import type { Store } from '../../db/connection/connect.ts';
import { type RedisClient, redisReady } from '../../redis/redis.ts';
import type { Publisher } from '../../snapshot/publish/publisher.ts';

/** The store and the publisher of a change. */
export interface Writing {
  readonly store: Store;
  readonly publisher: Publisher;
  /** The connection to the cache. */
  readonly cache: RedisClient;
}

/** Milliseconds for a connection to the cache. */
const CACHE_WITHIN_MS = 2000;

/** Publishes what an action changed. False while the cache is away: a worker's next round publishes it. */
export async function publishNow({ cache, publisher }: Writing): Promise<boolean> {
  try {
    await redisReady(cache, CACHE_WITHIN_MS);
    await publisher.publishDirty();
    return true;
  } catch {
    return false;
  }
}

import type { Store } from '../../db/connection/connect.ts';
import { type RedisClient, redisReady } from '../../redis/redis.ts';
import type { Publisher } from '../../snapshot/publish/publisher.ts';

export interface Writing {
  readonly store: Store;
  readonly publisher: Publisher;
  readonly cache: RedisClient;
}

const CACHE_WITHIN_MS = 2000;

/** Publishes an action's changes. False if the cache cannot be reached: a worker's next round publishes them. */
export async function publishNow({ cache, publisher }: Writing): Promise<boolean> {
  try {
    await redisReady(cache, CACHE_WITHIN_MS);
    await publisher.publishDirty();
    return true;
  } catch {
    return false;
  }
}

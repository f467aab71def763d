import type { ClientDatabase } from '../../db/connection/connect.ts';
import type { RedisClient } from '../../redis/redis.ts';

/**
 * Runs after each round of publishing. `published`: the cache has the documents. `all`: the round failed, so readers have
 * every version from Postgres.
 */
export type PublicationFollower = (which: 'published' | 'all') => Promise<void>;

export interface FollowerContext {
  readonly db: ClientDatabase;
  readonly redis: RedisClient;
}

import type { RedisClient } from '../../redis/redis.ts';
import { type CacheKeys, LINEAGE_KEY } from '../document/keys.ts';

/** Reads the stamps, the lineage, and the revision of each lane. */
export async function readState(redis: RedisClient, keys: CacheKeys) {
  // First: the revisions then include everything published until these times.
  const verified = await redis.hgetall(keys.verified);
  const [lineage, revisions] = await Promise.all([
    redis.get(LINEAGE_KEY),
    Promise.all(Array.from({ length: keys.lanes }, (_, lane) => redis.get(keys.revision(lane)))),
  ]);
  return { verified, lineage, revisions: revisions.map((text) => Number(text ?? 0)) };
}

/** How documents are spread over a Redis Cluster. */
import { isCluster, type RedisClient } from '../../redis/redis.ts';

/**
 * Hash tags of the lanes in a Redis Cluster: the least numbers of which the i-th falls into the i-th of as many equal
 * parts of the 16,384 slots. However many masters share the slots evenly, they share the lanes evenly.
 */
export const LANE_TAGS = [
  10, 18, 113, 342, 29, 21, 3, 122, 69, 61, 72, 162, 50, 58, 153, 43, 11, 19, 112, 343, 28, 20, 2, 123, 68,
  60, 73, 163, 51, 59, 152, 42, 12, 102, 111, 119, 133, 23, 1, 9, 173, 63, 70, 78, 52, 142, 49, 41, 13, 103,
  110, 118, 132, 22, 0, 8, 172, 62, 71, 79, 53, 143, 48, 40,
];

/** Lanes that the documents in a Redis Cluster are spread over: so many masters may share the work. */
const CLUSTER_LANES = LANE_TAGS.length;

/** How many lanes the documents of this cache are in. */
export const lanesOf = (redis: RedisClient): number => (isCluster(redis) ? CLUSTER_LANES : 1);

/** FNV-1a, 32 bits: every process of every release puts a document into the same lane. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** The region of each machine in the cache. It needs no fence, because a machine never changes its region. */

import type { Sql } from '../../db/connection/connect.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { type CacheKeys, MACHINES_PER_BUCKET } from './keys.ts';
import { loadMachineBuckets, loadMachinesOfBucket } from './load.ts';

/** Buckets in one round trip. */
const BUCKETS_AT_ONCE = 500;

export async function indexMachines(
  redis: RedisClient,
  keys: CacheKeys,
  machines: Iterable<readonly [machineId: number, regionId: number]>,
): Promise<void> {
  const buckets = Map.groupBy(machines, ([machineId]) => keys.machineRegions(machineId));
  await Promise.all([...buckets].map(([key, fields]) => redis.hset(key, ...fields.flat())));
}

/** Rewrites incomplete buckets, which the cache has evicted. */
export async function repairMachineIndex(redis: RedisClient, keys: CacheKeys, sql: Sql): Promise<void> {
  const all = await loadMachineBuckets(sql, MACHINES_PER_BUCKET);
  for (let i = 0; i < all.length; i += BUCKETS_AT_ONCE) {
    const buckets = all.slice(i, i + BUCKETS_AT_ONCE);
    const lengths = await Promise.all(
      buckets.map(({ bucket }) => redis.hlen(keys.machineRegions(bucket * MACHINES_PER_BUCKET))),
    );
    for (const [j, { bucket, machines }] of buckets.entries()) {
      if ((lengths[j] ?? 0) >= machines) continue;
      const from = bucket * MACHINES_PER_BUCKET;
      await indexMachines(redis, keys, await loadMachinesOfBucket(sql, from, from + MACHINES_PER_BUCKET));
    }
  }
}

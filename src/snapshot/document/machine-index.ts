/** Machine id → region, in the cache: hashes of a few hundred fields each. A machine never moves: no fence is needed. */
import type { Redis } from 'ioredis';
import type { Sql } from '../../db/connect.ts';
import { type CacheKeys, MACHINES_PER_BUCKET } from './keys.ts';
import { loadMachineBuckets, loadMachinesOfBucket } from './load.ts';

/** Buckets looked at in one round trip. */
const BATCH = 500;

/** Notes the region of these machines; writing it again changes nothing. */
export async function indexMachines(
  redis: Redis,
  keys: CacheKeys,
  machines: Iterable<readonly [machineId: number, regionId: number]>,
): Promise<void> {
  const buckets = new Map<string, number[]>();
  for (const [machineId, regionId] of machines) {
    const key = keys.machineRegions(machineId);
    const bucket = buckets.get(key);
    if (bucket) bucket.push(machineId, regionId);
    else buckets.set(key, [machineId, regionId]);
  }
  const pipeline = redis.pipeline();
  for (const [key, fields] of buckets) pipeline.hset(key, ...fields);
  for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error;
}

/** Writes the buckets again that hold fewer machines than are published: the cache has evicted them. */
export async function repairMachineIndex(redis: Redis, keys: CacheKeys, sql: Sql): Promise<void> {
  for await (const buckets of loadMachineBuckets(sql, MACHINES_PER_BUCKET, BATCH)) {
    const pipeline = redis.pipeline();
    for (const { bucket } of buckets) pipeline.hlen(keys.machineRegions(bucket * MACHINES_PER_BUCKET));
    const lengths = (await pipeline.exec()) ?? [];
    for (const [i, { bucket, machines }] of buckets.entries()) {
      const [error, length] = lengths[i] ?? [];
      if (error) throw error;
      if (Number(length) >= machines) continue;
      const from = bucket * MACHINES_PER_BUCKET;
      await indexMachines(redis, keys, await loadMachinesOfBucket(sql, from, from + MACHINES_PER_BUCKET));
    }
  }
}

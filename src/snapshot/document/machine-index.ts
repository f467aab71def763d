/** The region of each machine in the cache. It needs no fence, because a machine never changes its region. */

import type { Sql } from '../../db/connection/connect.ts';
import { IS_PUBLISHED } from '../../db/shown-rows.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { type CacheKeys, MACHINES_PER_BUCKET } from './keys.ts';

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
  const all = await sql<{ bucket: number; machines: number }[]>`
    select m.id / ${MACHINES_PER_BUCKET}::integer as bucket, count(*)::integer as machines ${published(sql)}
    group by 1`;
  for (let i = 0; i < all.length; i += BUCKETS_AT_ONCE) {
    const buckets = all.slice(i, i + BUCKETS_AT_ONCE);
    const lengths = await Promise.all(
      buckets.map(({ bucket }) => redis.hlen(keys.machineRegions(bucket * MACHINES_PER_BUCKET))),
    );
    for (const [j, { bucket, machines }] of buckets.entries()) {
      if ((lengths[j] ?? 0) >= machines) continue;
      const from = bucket * MACHINES_PER_BUCKET;
      const found = await sql<{ id: number; regionId: number }[]>`
        select m.id, m.region_id as "regionId" ${published(sql)}
          and m.id >= ${from} and m.id < ${from + MACHINES_PER_BUCKET}`;
      await indexMachines(
        redis,
        keys,
        found.map(({ id, regionId }) => [id, regionId] as const),
      );
    }
  }
}

const published = (sql: Sql) =>
  sql`from machines m join regions r on r.id = m.region_id
      where r.organization_id is null and ${sql.unsafe(IS_PUBLISHED)}`;

/** The region of each machine in the cache. It needs no fence, because a machine never changes its region. */

import type { Sql } from '../../db/connection/connect.ts';
import { IS_PUBLISHED } from '../../db/published-rows.ts';
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

interface CountedRegion {
  readonly version: string;
  /** Bucket → published machines. */
  readonly machines: ReadonlyMap<number, number>;
}

/** Rewrites incomplete buckets, which the cache has evicted. It counts the machines of a region once for each version of it. */
export class MachineIndexRepair {
  #lineage: string | undefined;
  #regions = new Map<number, CountedRegion>();

  async repair(redis: RedisClient, keys: CacheKeys, sql: Sql): Promise<void> {
    const all = [...(await this.#machinesByBucket(keys.lineage, sql))];
    for (let i = 0; i < all.length; i += BUCKETS_AT_ONCE) {
      const buckets = all.slice(i, i + BUCKETS_AT_ONCE);
      const lengths = await Promise.all(
        buckets.map(([bucket]) => redis.hlen(keys.machineRegions(bucket * MACHINES_PER_BUCKET))),
      );
      for (const [j, [bucket, machines]] of buckets.entries()) {
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

  async #machinesByBucket(lineage: string, sql: Sql): Promise<ReadonlyMap<number, number>> {
    if (lineage !== this.#lineage) this.#regions.clear();
    this.#lineage = lineage;
    // Versions first: machines that change in between are counted again with their next version.
    const stored = await sql<{ id: number; version: string }[]>`
      select id, version from regions where organization_id is null`;
    const changed = stored.filter(({ id, version }) => this.#regions.get(id)?.version !== version);
    const counted = changed.length === 0 ? [] : await this.#count(sql, changed);
    const ofRegion = Map.groupBy(counted, ({ regionId }) => regionId);
    const count = ({ id, version }: (typeof stored)[number]): CountedRegion => ({
      version,
      machines: new Map(ofRegion.get(id)?.map(({ bucket, machines }) => [bucket, machines])),
    });
    const isChanged = new Set(changed);
    this.#regions = new Map(
      stored.map((region) => {
        const known = isChanged.has(region) ? undefined : this.#regions.get(region.id);
        return [region.id, known ?? count(region)];
      }),
    );
    const sums = new Map<number, number>();
    for (const { machines } of this.#regions.values())
      for (const [bucket, each] of machines) sums.set(bucket, (sums.get(bucket) ?? 0) + each);
    return sums;
  }

  #count(sql: Sql, regions: readonly { readonly id: number }[]) {
    return sql<{ regionId: number; bucket: number; machines: number }[]>`
      select m.region_id as "regionId", m.id / ${MACHINES_PER_BUCKET}::integer as bucket, count(*)::integer as machines
      ${published(sql)} and m.region_id = any(${regions.map(({ id }) => id)})
      group by 1, 2`;
  }
}

const published = (sql: Sql) =>
  sql`from machines m join regions r on r.id = m.region_id
      where r.organization_id is null and ${sql.unsafe(IS_PUBLISHED)}`;

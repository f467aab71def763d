/** The region of each machine in the cache. It needs no fence, because a machine never changes its region. */

import type { Database } from '../../db/connection/connect.ts';
import { isNull, sql } from '../../db/connection/drizzle.ts';
import { array } from '../../db/connection/statements.ts';
import { IS_PUBLISHED } from '../../db/published-rows.ts';
import { regions } from '../../db/schema.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { type CacheKeys, MACHINES_PER_BUCKET } from '../document/keys.ts';
import { replacing } from './fence.ts';

/** Buckets in one round trip. */
const BUCKETS_AT_ONCE = 500;

export async function setMachineRegions(
  redis: RedisClient,
  keys: CacheKeys,
  machines: Iterable<readonly [machineId: number, regionId: number]>,
): Promise<void> {
  const buckets = Map.groupBy(machines, ([machineId]) => keys.machineRegions(machineId));
  await Promise.all(
    [...buckets].map(([key, fields]) => replacing(redis, key, () => redis.hset(key, ...fields.flat()))),
  );
}

interface CountedRegion {
  readonly version: number;
  /** Bucket → published machines. */
  readonly machines: ReadonlyMap<number, number>;
}

/** Rewrites incomplete buckets, which the cache has evicted. It counts the machines of a region once for each version of it. */
export class MachineRegionsRepair {
  #lineage: string | undefined;
  #regions = new Map<number, CountedRegion>();

  async repair(redis: RedisClient, keys: CacheKeys, db: Database): Promise<void> {
    const all = [...(await this.#machinesByBucket(keys.lineage, db))];
    for (let i = 0; i < all.length; i += BUCKETS_AT_ONCE) {
      const buckets = all.slice(i, i + BUCKETS_AT_ONCE);
      const lengths = await Promise.all(
        buckets.map(([bucket]) => {
          const key = keys.machineRegions(bucket * MACHINES_PER_BUCKET);
          return replacing(redis, key, () => redis.hlen(key));
        }),
      );
      for (const [j, [bucket, machines]] of buckets.entries()) {
        if ((lengths[j] ?? 0) >= machines) continue;
        const from = bucket * MACHINES_PER_BUCKET;
        const found = await db.execute<{ id: number; regionId: number }>(sql`
          select m.id, m.region_id as "regionId" ${PUBLISHED}
            and m.id >= ${from} and m.id < ${from + MACHINES_PER_BUCKET}`);
        await setMachineRegions(
          redis,
          keys,
          found.map(({ id, regionId }) => [id, regionId] as const),
        );
      }
    }
  }

  async #machinesByBucket(lineage: string, db: Database): Promise<ReadonlyMap<number, number>> {
    if (lineage !== this.#lineage) this.#regions.clear();
    this.#lineage = lineage;
    // Versions first: machines that change in between are counted again with their next version.
    const stored = await db
      .select({ id: regions.id, version: regions.version })
      .from(regions)
      .where(isNull(regions.organizationId));
    const changed = stored.filter(({ id, version }) => this.#regions.get(id)?.version !== version);
    const counted = changed.length === 0 ? [] : await this.#count(db, changed);
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

  #count(db: Database, changed: readonly { readonly id: number }[]) {
    return db.execute<{ regionId: number; bucket: number; machines: number }>(sql`
      select m.region_id as "regionId", m.id / ${MACHINES_PER_BUCKET}::integer as bucket, count(*)::integer as machines
      ${PUBLISHED} and m.region_id = any(${array(
        changed.map(({ id }) => id),
        'integer',
      )})
      group by 1, 2`);
  }
}

const PUBLISHED = sql`from machines m join regions r on r.id = m.region_id
  where r.organization_id is null and ${sql.raw(IS_PUBLISHED)}`;

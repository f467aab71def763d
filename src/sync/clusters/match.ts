import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { not, pgTable, type SQL, sql } from '../../db/connection/drizzle.ts';
import { array, countIf, nameOf, notRetired, only, selectAs } from '../../db/connection/statements.ts';
import { bytes } from '../../db/schema/shared-columns.ts';
import { clusters, machines, organizations, providers, regions } from '../../db/schema.ts';
import { OTHERS, REJECTED_KEPT, type RejectedKey } from '../../domain/rejected-rows.ts';
import { stagedClusters as staged } from './stage.ts';

/** New and changed clusters, and those whose machine or region no catalogue has. `resolveReferences` sets the ids. */
export const clusterDiff = pgTable('cluster_diff', (c) => ({
  organizationId: c.integer('organization_id').notNull(),
  sourceKey: c.text('source_key').notNull(),
  sourceHash: bytes('source_hash').notNull(),
  item: c.jsonb('item').notNull(),
  clusterId: c.integer('cluster_id'),
  oldSlug: c.text('old_slug'),
  oldMachineId: c.integer('old_machine_id'),
  oldRegionId: c.integer('old_region_id'),
  isNew: c.boolean('is_new').notNull(),
  differs: c.boolean('differs').notNull(),
  wasRetired: c.boolean('was_retired').notNull(),
  provider: c.text('provider').notNull(),
  regionCode: c.text('region_code').notNull(),
  regionName: c.text('region_name').notNull(),
  machineName: c.text('machine_name'),
  cpu: c.integer('cpu'),
  ram: c.numeric('ram'),
  ramUnit: c.text('ram_unit'),
  firstName: c.text('first_name').notNull(),
  lastName: c.text('last_name').notNull(),
  providerId: c.integer('provider_id'),
  regionId: c.integer('region_id'),
  machineId: c.integer('machine_id'),
  userId: c.integer('user_id'),
  slug: c.text('slug'),
}));

export const clusterMissing = pgTable('cluster_missing', (c) => ({
  clusterId: c.integer('cluster_id').notNull(),
  organizationId: c.integer('organization_id').notNull(),
  organization: c.text('organization').notNull(),
  sourceKey: c.text('source_key').notNull(),
  /** True if it may be one of the rejected rows. It counts as seen. */
  tolerated: c.boolean('tolerated').notNull(),
}));

type Removed = {
  readonly organization: string;
  readonly key: string;
  readonly all: number;
};

/** Removes unusable staged clusters. @param namesMachines true if some machines have a name and no shape */
export async function rejectUnusable(db: ConnectionDatabase, namesMachines: boolean) {
  const orphans = await db.execute<Removed & { deleted: boolean }>(sql`
    with gone as (
      delete from ${staged}
      where not exists (
        select from ${organizations}
        where ${organizations.slug} = ${staged.organization} and ${organizations.deletedAt} is null)
      returning ${staged.organization}, ${staged.sourceKey}
    )
    select organization, source_key as key, ${organizations.id} is not null as deleted, (count(*) over ())::int as all
    from gone left join ${organizations} on ${organizations.slug} = organization
    order by organization collate "C", source_key collate "C" limit ${REJECTED_KEPT + 1}`);
  const twice = await db.execute<Removed>(sql`
    with twice as (
      select ${staged.organization}, ${staged.sourceKey} from ${staged} group by 1, 2 having count(*) > 1
    ), gone as (
      delete from ${staged} using twice t
      where ${staged.organization} = t.organization and ${staged.sourceKey} = t.source_key
    )
    select organization, source_key as key, (count(*) over ())::int as all from twice
    order by organization collate "C", source_key collate "C" limit ${REJECTED_KEPT + 1}`);
  const unknown = namesMachines ? await rejectUnknownMachines(db) : [];
  const rejected = [
    ...orphans.map(({ organization, key, deleted }) => ({
      key,
      organization,
      code: deleted ? ('deleted_organization' as const) : ('unknown_organization' as const),
      reason: deleted
        ? `organization "${organization}" was deleted and its slug stays taken; to show the cluster again, create another one with: fleetbook org create <slug>, and name it instead in the source's organization or organizations`
        : `organization "${organization}" does not exist; create it with: fleetbook org create ${organization}`,
    })),
    ...twice.map(({ organization, key }) => ({
      key,
      organization,
      code: 'duplicate' as const,
      reason: 'reported more than once in one batch; Fleetbook cannot tell which row is right',
    })),
    ...unknown.map(({ organization, key, provider, region, machine }) => ({
      key,
      organization,
      code: 'unknown_machine' as const,
      reason: `machine "${machine}" of ${provider} in region ${region} is in no catalogue; add the provider's catalogue, or give the machine's shape or catalogue name in machines`,
    })),
  ];
  const waiting = (orphans[0]?.all ?? 0) + (unknown[0]?.all ?? 0);
  return { rejected, waiting, usable: await db.$count(staged) };
}

/** A type that only another control plane named counts as unknown too. */
async function rejectUnknownMachines(db: ConnectionDatabase) {
  const { item } = staged;
  return db.execute<Removed & { provider: string; region: string; machine: string }>(sql`
    with named as (
      select distinct ${item} ->> 'provider' as provider, ${item} #>> '{region,code}' as region,
        ${item} #>> '{machine,name}' as machine
      from ${staged} where ${item} #>> '{machine,cpu}' is null
    ), unknown as (
      select * from named n
      where not exists (
        select from ${machines} join ${regions} on ${regions.id} = ${machines.regionId}
        where ${regions.code} = n.region and ${regions.organizationId} is null and ${machines.name} = n.machine
          and ${machines.excludedReason} is distinct from 'unlisted'
          and ${regions.providerId} = (
            select ${providers.id} from ${providers} where lower(${providers.name}) = lower(n.provider)
            order by ${providers.id} limit 1))
    ), gone as (
      delete from ${staged} using unknown u
      where ${item} #>> '{machine,cpu}' is null and ${item} ->> 'provider' = u.provider
        and ${item} #>> '{region,code}' = u.region and ${item} #>> '{machine,name}' = u.machine
      returning ${staged.organization}, ${staged.sourceKey} as key, u.provider, u.region, u.machine
    )
    select *, (count(*) over ())::int as all from gone
    order by organization collate "C", key collate "C" limit ${REJECTED_KEPT + 1}`);
}

export interface ClusterDiff {
  readonly known: number;
  readonly added: number;
  readonly changed: number;
  readonly missing: number;
}

export async function matchClusters(
  db: ConnectionDatabase,
  sourceId: string,
  rejected: readonly RejectedKey[],
): Promise<ClusterDiff> {
  await fillClusterDiff(db, sourceId);
  const known = notRetired(clusters, sourceId);
  await fillClusterMissing(db, known);
  await tolerateRejected(db, rejected);
  if (rejected.includes(OTHERS)) await tolerateMissing(db);
  return {
    known: await db.$count(clusters, known),
    missing: await db.$count(clusterMissing, not(clusterMissing.tolerated)),
    ...(await countChanges(db)),
  };
}

async function fillClusterDiff(db: ConnectionDatabase, sourceId: string): Promise<void> {
  const { item } = staged;
  const isOther = sql`${clusters.id} is null or ${clusters.retiredAt} is not null
    or ${clusters.sourceHash} <> ${staged.sourceHash}`;
  await db.execute(sql`
    create temporary table ${clusterDiff} on commit drop as
    ${selectAs(clusterDiff, {
      organizationId: organizations.id,
      sourceKey: staged.sourceKey,
      sourceHash: staged.sourceHash,
      item,
      clusterId: clusters.id,
      oldSlug: clusters.slug,
      oldMachineId: clusters.machineId,
      oldRegionId: clusters.regionId,
      isNew: sql`${clusters.id} is null`,
      differs: isOther,
      wasRetired: sql`coalesce(${clusters.retiredAt} is not null, false)`,
      provider: sql`${item} ->> 'provider'`,
      regionCode: sql`${item} #>> '{region,code}'`,
      regionName: sql`${item} #>> '{region,name}'`,
      machineName: sql`${item} #>> '{machine,name}'`,
      cpu: sql`(${item} #>> '{machine,cpu}')::integer`,
      ram: sql`(${item} #>> '{machine,ram}')::numeric`,
      ramUnit: sql`${item} #>> '{machine,ramUnit}'`,
      firstName: sql`${item} #>> '{user,firstName}'`,
      lastName: sql`${item} #>> '{user,lastName}'`,
      providerId: sql`null::integer`,
      regionId: sql`null::integer`,
      machineId: sql`null::integer`,
      userId: sql`null::integer`,
      slug: sql`null::text`,
    })}
    from ${staged}
    join ${organizations} on ${organizations.slug} = ${staged.organization}
    left join ${clusters} on ${clusters.sourceId} = ${sourceId} and ${clusters.organizationId} = ${organizations.id}
      and ${clusters.sourceKey} = ${staged.sourceKey}
    left join ${machines} on ${machines.id} = ${clusters.machineId}
    left join ${regions} on ${regions.id} = ${clusters.regionId}
    where ${isOther} or ${clusters.missedRuns} > 0
      or ${machines.excludedReason} = 'unlisted' or ${regions.organizationId} is not null`);
  await db.execute(sql`analyze ${clusterDiff}`);
}

async function fillClusterMissing(db: ConnectionDatabase, known: SQL): Promise<void> {
  await db.execute(sql`
    create temporary table ${clusterMissing} on commit drop as
    ${selectAs(clusterMissing, {
      clusterId: clusters.id,
      organizationId: clusters.organizationId,
      organization: organizations.slug,
      sourceKey: clusters.sourceKey,
      tolerated: sql`false`,
    })}
    from ${clusters} join ${organizations} on ${organizations.id} = ${clusters.organizationId}
    where ${known} and not exists (
      select from ${staged}
      where ${staged.organization} = ${organizations.slug} and ${staged.sourceKey} = ${clusters.sourceKey})`);
}

async function tolerateRejected(db: ConnectionDatabase, rejected: readonly RejectedKey[]): Promise<void> {
  const keys = rejected.map((row) => row.key);
  const owners = rejected.map((row) => row.organization ?? null);
  await db.execute(sql`
    with j (key, organization) as (select * from unnest(${array(keys, 'text')}, ${array(owners, 'text')}))
    update ${clusterMissing} set ${nameOf(clusterMissing.tolerated)} = true
    where (${clusterMissing.organization}, ${clusterMissing.sourceKey}) in (
        select organization, key from j where organization is not null)
      or ${clusterMissing.sourceKey} in (select key from j where organization is null)`);
}

/**
 * Takes a removal that waits for an operator out of the diff: no cluster is missing, and clusters with the name or slug of a missing
 * one wait too, since they may be the same cluster with another key. Counts the rest.
 */
export async function setRemovalAside(
  db: ConnectionDatabase,
): Promise<Pick<ClusterDiff, 'added' | 'changed'>> {
  await db.execute(sql`
    delete from ${clusterDiff} using ${clusterMissing}, ${clusters}
    where not ${clusterMissing.tolerated} and ${clusters.id} = ${clusterMissing.clusterId}
      and ${clusters.organizationId} = ${clusterDiff.organizationId}
      and (${clusters.slug} = ${clusterDiff.item} ->> 'slug'
        or (${clusterDiff.isNew} or ${clusterDiff.wasRetired})
          and lower(${clusters.name}) = lower(${clusterDiff.item} ->> 'name'))`);
  await tolerateMissing(db);
  return countChanges(db);
}

async function tolerateMissing(db: ConnectionDatabase): Promise<void> {
  await db.delete(clusterMissing).where(not(clusterMissing.tolerated));
}

async function countChanges(db: ConnectionDatabase): Promise<Pick<ClusterDiff, 'added' | 'changed'>> {
  const isAdded = sql`(${clusterDiff.isNew} or ${clusterDiff.wasRetired})`;
  const counts = await db
    .select({
      added: countIf(isAdded),
      changed: countIf(sql`${clusterDiff.differs} and not ${isAdded}`),
    })
    .from(clusterDiff);
  return only(counts);
}

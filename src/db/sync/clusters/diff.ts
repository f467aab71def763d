/** What staged clusters would change. See catalogue-diff.ts for the machines' side. */
import { OTHERS, REJECTED_KEPT, type RejectedKey } from '../../../domain/rejected-rows.ts';
import type { SessionDatabase } from '../../connection/connect.ts';
import {
  boolean,
  integer,
  jsonb,
  not,
  numeric,
  pgTable,
  type SQL,
  sql,
  text,
} from '../../connection/drizzle.ts';
import { array, countIf, nameOf, notRetired, selectAs } from '../../connection/statements.ts';
import { bytes } from '../../schema/columns.ts';
import { clusters, machines, organizations, providers, regions } from '../../schema.ts';
import { stagedClusters as staged } from '../staged.ts';

/** Staged rows that cannot be stored. */
export interface RejectedStaged {
  /** At most a few more than `REJECTED_KEPT` of each kind. */
  readonly rejected: readonly RejectedKey[];
  /** How many of all that are rejected wait for an operator. */
  readonly waiting: number;
  /** How many rows are left. */
  readonly usable: number;
}

/**
 * Staged clusters that are new or differ, and those whose machine or region the catalogue did not know so far. What a
 * cluster refers to is set when it is written. Dropped with the transaction.
 */
export const clusterDiff = pgTable('cluster_diff', {
  organizationId: integer('organization_id').notNull(),
  sourceKey: text('source_key').notNull(),
  sourceHash: bytes('source_hash').notNull(),
  item: jsonb('item').notNull(),
  clusterId: integer('cluster_id'),
  oldSlug: text('old_slug'),
  oldMachineId: integer('old_machine_id'),
  oldRegionId: integer('old_region_id'),
  isNew: boolean('is_new').notNull(),
  differs: boolean('differs').notNull(),
  wasRetired: boolean('was_retired').notNull(),
  provider: text('provider').notNull(),
  regionCode: text('region_code').notNull(),
  regionName: text('region_name').notNull(),
  machineName: text('machine_name'),
  cpu: integer('cpu'),
  ram: numeric('ram'),
  ramUnit: text('ram_unit'),
  firstName: text('first_name').notNull(),
  lastName: text('last_name').notNull(),
  providerId: integer('provider_id'),
  regionId: integer('region_id'),
  machineId: integer('machine_id'),
  userId: integer('user_id'),
  slug: text('slug'),
});

/** Clusters that are shown and that the source did not report. Dropped with the transaction. */
export const clusterMissing = pgTable('cluster_missing', {
  clusterId: integer('cluster_id').notNull(),
  organizationId: integer('organization_id').notNull(),
  organization: text('organization').notNull(),
  sourceKey: text('source_key').notNull(),
  /** It may be among the rows that were rejected, and so counts as seen. */
  tolerated: boolean('tolerated').notNull(),
});

type Gone = {
  readonly organization: string;
  readonly key: string;
  /** How many there are in all. */
  readonly all: number;
};

/**
 * Takes rows out of the staging table whose organization does not exist, whose machine is only named and in no
 * catalogue, and those that are there twice.
 * @param namesMachines whether there are machines that are only named
 */
export async function rejectStagedClusters(
  db: SessionDatabase,
  namesMachines: boolean,
): Promise<RejectedStaged> {
  const orphans = await db.execute<Gone & { deleted: boolean }>(sql`
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
  const twice = await db.execute<Gone>(sql`
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
        ? `organization "${organization}" was deleted and its slug stays taken; to show the cluster again, make another one with: fleetbook org create <slug>, and name that in its place in the source's organization or organizations`
        : `organization "${organization}" does not exist; create it with: fleetbook org create ${organization}`,
    })),
    ...twice.map(({ organization, key }) => ({
      key,
      organization,
      code: 'duplicate' as const,
      reason: 'reported more than once in one batch; which one holds cannot be told',
    })),
    ...unknown.map(({ organization, key, provider, region, machine }) => ({
      key,
      organization,
      code: 'unknown_machine' as const,
      reason: `machine "${machine}" of ${provider} in region ${region} is in no catalogue; read the provider's, or say its shape or its name there in machines`,
    })),
  ];
  const waiting = (orphans[0]?.all ?? 0) + (unknown[0]?.all ?? 0);
  return { rejected, waiting, usable: await db.$count(staged) };
}

/** What another control plane said of a type that no catalogue lists holds for nobody else: such a one is unknown, too. */
async function rejectUnknownMachines(db: SessionDatabase) {
  const { item } = staged;
  return db.execute<Gone & { provider: string; region: string; machine: string }>(sql`
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

/** Fills `clusterDiff` and `clusterMissing`. */
export async function computeClusterDiff(
  db: SessionDatabase,
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

async function fillClusterDiff(db: SessionDatabase, sourceId: string): Promise<void> {
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

/** @param known clusters of the source that are shown */
async function fillClusterMissing(db: SessionDatabase, known: SQL): Promise<void> {
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

/** Marks missing clusters that may be among the rejected rows. */
async function tolerateRejected(db: SessionDatabase, rejected: readonly RejectedKey[]): Promise<void> {
  const keys = array(
    rejected.map((row) => row.key),
    'text',
  );
  const owners = array(
    rejected.map((row) => row.organization ?? null),
    'text',
  );
  await db.execute(sql`
    with j as (
      select * from unnest(${keys}, ${owners}) j (key, organization)
    )
    update ${clusterMissing} set ${nameOf(clusterMissing.tolerated)} = true
    where (${clusterMissing.organization}, ${clusterMissing.sourceKey}) in (
        select organization, key from j where organization is not null)
      or ${clusterMissing.sourceKey} in (select key from j where organization is null)`);
}

/**
 * Leaves in the diff what is safe without a removal that waits for an operator: nothing is missed, and what would come
 * under a missing cluster's name or slug waits as well, since it may be the same cluster under another key.
 * @returns what is left
 */
export async function setRemovalAside(db: SessionDatabase): Promise<Pick<ClusterDiff, 'added' | 'changed'>> {
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

/** Forgets what is missing, so that none of it is retired. */
async function tolerateMissing(db: SessionDatabase): Promise<void> {
  await db.delete(clusterMissing).where(not(clusterMissing.tolerated));
}

async function countChanges(db: SessionDatabase): Promise<Pick<ClusterDiff, 'added' | 'changed'>> {
  const isAdded = sql`(${clusterDiff.isNew} or ${clusterDiff.wasRetired})`;
  const [row] = await db
    .select({
      added: countIf(isAdded),
      changed: countIf(sql`${clusterDiff.differs} and not ${isAdded}`),
    })
    .from(clusterDiff);
  if (!row) throw new Error('unreachable: an aggregate has one row');
  return row;
}

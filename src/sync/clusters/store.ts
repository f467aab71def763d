/** Stores the clusters of a diff, in the caller's transaction: their references first, then their slugs, then the clusters. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { alias, and, eq, gt, isNull, ne, not, pgTable, sql } from '../../db/connection/drizzle.ts';
import { array, increment, insertInto, nameOf, selectAs } from '../../db/connection/statements.ts';
import { lockOrganizations } from '../../db/organizations.ts';
import { organizationsWithoutCreationPrices, storeCreationPrices } from '../../db/prices/creation-prices.ts';
import {
  clusters,
  disks,
  diskTypes,
  machines,
  organizations,
  providers,
  regions,
  users,
} from '../../db/schema.ts';
import { RAISE } from '../../db/versions.ts';
import type { ChangedBy } from '../runs/run.ts';
import { recordChanges, saveStates } from './log.ts';
import { clusterDiff as d, clusterMissing as missing } from './match.ts';
import type { SlugRow } from './slugs.ts';

const places = pgTable('cluster_places', (c) => ({
  organizationId: c.integer('organization_id').notNull(),
  provider: c.text('provider').notNull(),
  regionCode: c.text('region_code').notNull(),
  providerId: c.integer('provider_id').notNull(),
  name: c.text('name').notNull(),
}));

/**
 * Locks the organizations for the rest of the transaction, then finds or creates all references. Anti-joins find new rows, since
 * conflicts would use up ids. Returns the number of unchanged clusters with another machine or region now.
 */
export async function resolveReferences(
  db: ConnectionDatabase,
  { sourceId, now }: Pick<ChangedBy, 'sourceId' | 'now'>,
): Promise<number> {
  await lockOrganizations(
    db,
    sql`select ${d.organizationId} from ${d} union all select ${missing.organizationId} from ${missing}
      union all ${organizationsWithoutCreationPrices(sourceId, now)}`,
  );
  await resolveRegions(db);
  await resolveMachines(db);
  const isCreator = sql`${users.organizationId} = ${d.organizationId} and ${users.firstName} = ${d.firstName}
    and ${users.lastName} = ${d.lastName}`;
  await db.execute(sql`
    ${insertInto(users, { organizationId: d.organizationId, firstName: d.firstName, lastName: d.lastName })}
    from ${d} where not exists (select from ${users} where ${isCreator})
    group by 1, 2, 3
    on conflict do nothing`);
  await db.update(d).set({ userId: users.id }).from(users).where(isCreator);
  // Other clusters without changes leave the diff.
  const moved = await db
    .update(d)
    .set({ differs: true })
    .where(
      sql`not ${d.differs} and (${d.machineId} <> ${d.oldMachineId} or ${d.regionId} <> ${d.oldRegionId})`,
    );
  await db
    .update(clusters)
    .set({ missedRuns: 0 })
    .from(d)
    .where(and(eq(clusters.id, d.clusterId), not(d.differs), gt(clusters.missedRuns, 0)));
  await db.delete(d).where(not(d.differs));
  return moved.count;
}

async function resolveRegions(db: ConnectionDatabase): Promise<void> {
  await db.execute(sql`
    ${insertInto(providers, { name: sql`min(${d.provider} collate "C")` })}
    from ${d} where not exists (select from ${providers} where lower(${providers.name}) = lower(${d.provider}))
    group by lower(${d.provider}) order by lower(${d.provider})
    on conflict do nothing`);
  await db.execute(sql`
    create temporary table ${places} on commit drop as
    ${selectAs(places, {
      organizationId: d.organizationId,
      provider: d.provider,
      regionCode: d.regionCode,
      providerId: sql`p.id`,
      name: sql`(array_agg(${d.regionName} order by ${d.sourceKey} collate "C"))[1]`,
    })}
    from ${d} join (
      select lower(${providers.name}) as name, min(${providers.id}) as id from ${providers} group by 1
    ) p on p.name = lower(${d.provider})
    group by 1, 2, 3, 4`);
  await db.execute(sql`analyze ${places}`);
  // A region that no catalogue lists belongs to the organization: others must not read its name.
  await db.execute(sql`
    ${insertInto(regions, {
      providerId: places.providerId,
      code: places.regionCode,
      name: sql`(array_agg(${places.name} order by ${places.provider} collate "C"))[1]`,
      organizationId: places.organizationId,
    })}
    from ${places} where not exists (
      select from ${regions} where ${regions.providerId} = ${places.providerId} and ${regions.code} = ${places.regionCode}
        and (${regions.organizationId} is null or ${regions.organizationId} = ${places.organizationId}))
    group by ${places.providerId}, ${places.organizationId}, ${places.regionCode}
    order by ${places.providerId}, ${places.organizationId}, ${places.regionCode}
    on conflict do nothing`);
  const listed = alias(regions, 'listed');
  const own = alias(regions, 'own');
  await db.execute(sql`
    update ${d}
    set ${nameOf(d.providerId)} = ${places.providerId}, ${nameOf(d.regionId)} = coalesce(${listed.id}, ${own.id})
    from ${places}
    left join ${regions} ${listed} on ${listed.providerId} = ${places.providerId}
      and ${listed.code} = ${places.regionCode} and ${listed.organizationId} is null
    left join ${regions} ${own} on ${own.providerId} = ${places.providerId}
      and ${own.code} = ${places.regionCode} and ${own.organizationId} = ${places.organizationId}
    where ${d.organizationId} = ${places.organizationId} and ${d.provider} = ${places.provider}
      and ${d.regionCode} = ${places.regionCode}`);
  await db.execute(sql`
    with renamed as (
      update ${regions} set ${nameOf(regions.name)} = named.name
      from (
        select distinct on (${d.regionId}) ${d.regionId}, ${d.regionName} as name
        from ${d} order by ${d.regionId}, ${d.sourceKey} collate "C"
      ) named
      where named.${nameOf(d.regionId)} = ${regions.id} and ${regions.organizationId} is not null and ${regions.name} <> named.name
      returning ${regions.organizationId}
    )
    ${RAISE.clusters} where ${organizations.id} in (select ${nameOf(regions.organizationId)} from renamed)`);
}

/** Finds each cluster's machine: the named type, the previous one, the cheapest available one of the shape, or a new unlisted one. */
async function resolveMachines(db: ConnectionDatabase): Promise<void> {
  await findMachines(db);
  // It takes the given name if that is free, so that its id stays when a catalogue lists it later.
  for (const name of [sql`${d.machineName}`, NAME_OF_SHAPE]) {
    const made = await db.execute(sql`
      ${insertInto(machines, {
        regionId: sql`region_id`,
        name: sql`name`,
        cpu: sql`cpu`,
        ram: sql`ram`,
        ramUnit: sql`ram_unit`,
        excludedReason: 'unlisted',
      })}
      from (
        select distinct on (1, 2) ${d.regionId}, ${name} as name, ${d.cpu}, ${d.ram}, ${d.ramUnit} from ${d}
        where ${d.machineId} is null and ${d.cpu} is not null and ${name} is not null
          and not exists (
            select from ${machines} where ${machines.regionId} = ${d.regionId} and ${machines.name} = ${name})
        order by 1, 2, ${d.sourceKey} collate "C"
      ) made
      on conflict do nothing`);
    if (made.count > 0) await findMachines(db);
  }
}

/** The name of an unlisted machine, e.g. `unlisted 4 cpu 16 GiB`. */
const NAME_OF_SHAPE = sql`'unlisted ' || ${d.cpu} || ' cpu ' || (${d.item} #>> '{machine,ram}') ||
  case ${d.ramUnit} when 'Binary' then ' GiB' else ' GB' end`;

const isListed = sql`${machines.excludedReason} is distinct from 'unlisted'`;

async function findMachines(db: ConnectionDatabase): Promise<void> {
  const fits = sql`(${machines.cpu}, ${machines.ram}, ${machines.ramUnit}) = (${d.cpu}, ${d.ram}, ${d.ramUnit})`;
  const isThere = and(isNull(d.machineId), eq(machines.regionId, d.regionId));
  // An unlisted type counts only for the control plane that named it, so the shape must fit too.
  const isNamed = and(isThere, eq(machines.name, d.machineName), sql`(${isListed} or ${fits})`);
  const isPrevious = and(isThere, eq(machines.id, d.oldMachineId), isListed, fits);
  await db.update(d).set({ machineId: machines.id }).from(machines).where(isNamed);
  await db.update(d).set({ machineId: machines.id }).from(machines).where(isPrevious);
  // Materialized: otherwise PostgreSQL searches the cheapest machine for each cluster.
  await db.execute(sql`
    with best as materialized (
      select wanted.*, (
        select ${machines.id} from ${machines}
        where ${machines.regionId} = wanted.region_id
          and (${machines.cpu}, ${machines.ram}, ${machines.ramUnit}) = (wanted.cpu, wanted.ram, wanted.ram_unit)
        order by ${machines.retiredAt} is not null, ${machines.excludedReason} is not null,
          ${machines.excludedReason} = 'unlisted', ${machines.price} nulls last, ${machines.id}
        limit 1) as id
      from (
        select distinct ${d.regionId}, ${d.cpu}, ${d.ram}, ${d.ramUnit} from ${d}
        where ${d.machineId} is null and ${d.cpu} is not null
      ) wanted
    )
    update ${d} set ${nameOf(d.machineId)} = best.id from best
    where ${d.machineId} is null and best.id is not null
      and (${d.regionId}, ${d.cpu}, ${d.ram}, ${d.ramUnit}) = (best.region_id, best.cpu, best.ram, best.ram_unit)`);
}

const ORGANIZATIONS_PER_READ = 2000;

/** Yields the clusters that need a slug, in the fixed order of slugs, some organizations at a time. */
export async function* slugBatches(db: ConnectionDatabase, runsUntilRetired: number) {
  const ids = await db.selectDistinct({ id: d.organizationId }).from(d).orderBy(d.organizationId);
  for (let from = 0; from < ids.length; from += ORGANIZATIONS_PER_READ) {
    const organizationIds = array(
      ids.slice(from, from + ORGANIZATIONS_PER_READ).map(({ id }) => id),
      'integer',
    );
    const rows: SlugRow[] = await db
      .select({
        organizationId: d.organizationId,
        sourceKey: d.sourceKey,
        name: sql<string>`${d.item} ->> 'name'`,
        given: sql<string | null>`${d.item} ->> 'slug'`,
        old: sql<string | null>`case when ${d.wasRetired} then null else ${d.oldSlug} end`,
      })
      .from(d)
      .where(sql`${d.organizationId} = any(${organizationIds})`)
      .orderBy(d.organizationId, sql`${d.item} ->> 'createdAt' collate "C"`, sql`${d.sourceKey} collate "C"`);
    // Slugs of the organizations' other clusters, which the batch neither changes nor retires.
    const taken = await db
      .select({ organizationId: clusters.organizationId, slug: clusters.slug })
      .from(clusters)
      .where(sql`
        ${clusters.retiredAt} is null and ${clusters.organizationId} = any(${organizationIds})
        and not exists (select from ${d} where ${d.clusterId} = ${clusters.id})
        and not exists (
          select from ${missing}
          where ${missing.clusterId} = ${clusters.id} and not ${missing.tolerated}
            and ${clusters.missedRuns} + 1 >= ${runsUntilRetired})`);
    yield { rows, taken };
  }
}

export async function setSlugs(
  db: ConnectionDatabase,
  slugs: readonly { organizationId: number; sourceKey: string; slug: string }[],
): Promise<void> {
  const column = <Key extends keyof (typeof slugs)[number]>(key: Key) => slugs.map((row) => row[key]);
  await db.execute(sql`
    update ${d} set ${nameOf(d.slug)} = w.slug
    from unnest(${array(column('organizationId'), 'integer')}, ${array(column('sourceKey'), 'text')},
                ${array(column('slug'), 'text')}) w (organization_id, source_key, slug)
    where ${d.organizationId} = w.organization_id and ${d.sourceKey} = w.source_key`);
}

const STATED = {
  sourceHash: d.sourceHash,
  slug: d.slug,
  name: sql`${d.item} ->> 'name'`,
  regionId: d.regionId,
  machineId: d.machineId,
  userId: d.userId,
  status: sql`${d.item} ->> 'status'`,
  shards: sql`(${d.item} ->> 'shards')::integer`,
  replicas: sql`(${d.item} ->> 'replicas')::integer`,
  engine: sql`${d.item} #>> '{software,engine}'`,
  version: sql`${d.item} #>> '{software,version}'`,
  endOfLife: sql`(${d.item} #>> '{software,endOfLife}')::date`,
  createdAt: sql`(${d.item} ->> 'createdAt')::timestamp`,
} as const;

/** A creation in the future counts as one of now. */
const createdBy = (now: string) => sql`least(${STATED.createdAt} at time zone 'UTC', ${now}::timestamptz)`;

/**
 * Another machine has the price of the time of the change, as a resize has. A machine that a catalogue lists for the first time is no
 * other machine. A later creation is another cluster, and an earlier one moves the time of the first machine alone. An undo restores
 * the time.
 */
function machineTimes(now: string) {
  const isOther = sql`${d.machineId} is distinct from ${d.oldMachineId}`;
  const wasListed = sql`exists (
    select from ${machines} where ${machines.id} = ${d.oldMachineId} and ${isListed})`;
  const isCorrected = sql`${STATED.createdAt} is distinct from ${clusters.createdAt}`;
  const isFirst = sql`${clusters.machineSince} <= ${clusters.createdAt} at time zone 'UTC'`;
  return {
    machineSince: sql`case when ${d.item} ? 'machineSince' then (${d.item} ->> 'machineSince')::timestamptz
      when ${isCorrected} and ${createdBy(now)} > ${clusters.machineSince} then ${createdBy(now)}
      when ${isOther} and ${wasListed} then ${now}::timestamptz
      when ${isCorrected} and ${isFirst} then ${createdBy(now)} else ${clusters.machineSince} end`,
    creationAsOf: sql`case when ${isOther} then null else ${clusters.creationAsOf} end`,
  };
}

const DISKS = sql`${d} cross join lateral (
  select ordinality - 1 as position, disk #>> '{type,name}' as name, disk #>> '{type,unit}' as unit,
    (disk #>> '{type,pricePerMinute}')::numeric as price,
    (disk #>> '{type,price,amount}')::numeric as amount, disk #>> '{type,price,per}' as per,
    disk #>> '{type,price,currency}' as currency,
    (disk ->> 'size')::double precision as size, disk ->> 'unit' as size_unit,
    (disk ->> 'autoscaling')::boolean as autoscaling
  from jsonb_array_elements(${d.item} -> 'disks') with ordinality e (disk, ordinality)) k`;

const IS_TYPE_OF_DISK = sql`${diskTypes.organizationId} = ${d.organizationId} and ${diskTypes.regionId} = ${d.regionId}
  and ${diskTypes.name} = k.name and ${diskTypes.unit} = k.unit and ${diskTypes.sourceAmount} = k.amount
  and ${diskTypes.sourcePer} = k.per and ${diskTypes.sourceCurrency} = k.currency`;

/** Writes the clusters with their disks. Call `setSlugs` before. Returns the number of retired clusters. */
export async function writeClusters(
  db: ConnectionDatabase,
  by: ChangedBy,
  runsUntilRetired: number,
): Promise<number> {
  const { runId, sourceId, now } = by;
  await saveStates(db);
  // First, since it frees slugs.
  const retired = await retireMissing(db, now, runsUntilRetired);
  await writeDiskTypes(db);
  // A slug may move from one cluster to another in the same batch: free all of them before.
  await db
    .update(clusters)
    .set({ retiredAt: sql`coalesce(${clusters.retiredAt}, ${now}::timestamptz)` })
    .from(d)
    .where(and(eq(clusters.id, d.clusterId), ne(d.slug, d.oldSlug)));
  await db
    .update(clusters)
    .set({ ...STATED, ...machineTimes(now), missedRuns: 0, retiredAt: null })
    .from(d)
    .where(eq(clusters.id, d.clusterId));
  await db.execute(sql`
    ${insertInto(clusters, { ...STATED, machineSince: createdBy(now), organizationId: d.organizationId, sourceId, sourceKey: d.sourceKey, addedBy: runId })}
    from ${d} where ${d.isNew} order by ${d.organizationId}, ${d.sourceKey} collate "C"`);
  await db.execute(sql`
    update ${d} set ${nameOf(d.clusterId)} = ${clusters.id} from ${clusters}
    where ${d.isNew} and ${clusters.sourceId} = ${sourceId} and ${clusters.organizationId} = ${d.organizationId}
      and ${clusters.sourceKey} = ${d.sourceKey}`);
  await writeDisks(db);
  await recordChanges(db, by);
  const priced = await storeCreationPrices(db, sql`c.source_id = ${sourceId}`, now);
  const changed = sql`
    select ${d.organizationId} from ${d} union select unnest(${array([...retired, ...priced], 'integer')})`;
  await db.execute(sql`${RAISE.clusters} where ${organizations.id} in (${changed})`);
  return retired.length;
}

/** Counts missed runs and retires clusters that missed too many. Returns the organization of each retired cluster. */
async function retireMissing(
  db: ConnectionDatabase,
  now: string,
  runsUntilRetired: number,
): Promise<number[]> {
  await db.execute(sql`
    update ${clusters} set ${nameOf(clusters.missedRuns)} =
      case when ${missing.tolerated} then 0 else ${increment(clusters.missedRuns)} end
    from ${missing}
    where ${clusters.id} = ${missing.clusterId} and (not ${missing.tolerated} or ${clusters.missedRuns} > 0)`);
  const isLate = sql`not ${missing.tolerated} and ${clusters.missedRuns} >= ${runsUntilRetired}`;
  const retired = await db
    .update(clusters)
    .set({ retiredAt: now })
    .from(missing)
    .where(and(eq(clusters.id, missing.clusterId), isLate))
    .returning({ organizationId: clusters.organizationId });
  return retired.map(({ organizationId }) => organizationId);
}

async function writeDiskTypes(db: ConnectionDatabase): Promise<void> {
  await db.execute(sql`
    ${insertInto(diskTypes, {
      organizationId: d.organizationId,
      regionId: d.regionId,
      name: sql`k.name`,
      unit: sql`k.unit`,
      sourceAmount: sql`k.amount`,
      sourcePer: sql`k.per`,
      sourceCurrency: sql`k.currency`,
      price: sql`min(k.price)`,
    })}
    from ${DISKS}
    where not exists (select from ${diskTypes} where ${IS_TYPE_OF_DISK})
    group by 1, 2, 3, 4, 5, 6, 7
    on conflict do nothing`);
  // An exchange rate changes the price of the same disk type.
  await db.execute(sql`
    update ${diskTypes} set ${nameOf(diskTypes.price)} = k.price
    from ${DISKS} where ${IS_TYPE_OF_DISK} and ${diskTypes.price} <> k.price`);
}

async function writeDisks(db: ConnectionDatabase): Promise<void> {
  await db.execute(sql`
    delete from ${disks} using ${d}
    where ${disks.organizationId} = ${d.organizationId} and ${disks.clusterId} = ${d.clusterId}`);
  await db.execute(sql`
    ${insertInto(disks, {
      organizationId: d.organizationId,
      clusterId: d.clusterId,
      position: sql`k.position`,
      diskTypeId: diskTypes.id,
      size: sql`k.size`,
      unit: sql`k.size_unit`,
      autoscaling: sql`k.autoscaling`,
    })}
    from ${DISKS} join ${diskTypes} on ${IS_TYPE_OF_DISK}`);
}

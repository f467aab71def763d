/** Finds or makes what the clusters of a diff refer to, in the caller's transaction. */
import type { SessionDatabase } from '../../connection/connect.ts';
import { alias, and, eq, gt, integer, isNull, not, pgTable, sql, text } from '../../connection/drizzle.ts';
import { increment, insertInto, nameOf, selectAs } from '../../connection/statements.ts';
import { clusters, machines, organizations, providers, regions, users } from '../../schema.ts';
import { lockOrganizations } from '../lock-organizations.ts';
import { clusterDiff as d, clusterMissing as missing } from './diff.ts';

/** Where clusters are: each place once for all the clusters that name it. Dropped with the transaction. */
const places = pgTable('cluster_places', {
  organizationId: integer('organization_id').notNull(),
  provider: text('provider').notNull(),
  regionCode: text('region_code').notNull(),
  providerId: integer('provider_id').notNull(),
  name: text('name').notNull(),
});

/**
 * Finds, or makes, everything that the clusters refer to, with their organizations locked for the rest of the
 * transaction. New rows are found by anti-join: ids do not burn.
 * @returns how many clusters have another machine or region now although their source says the same as before
 */
export async function resolveReferences(db: SessionDatabase): Promise<number> {
  await lockOrganizations(
    db,
    sql`select ${d.organizationId} from ${d} union all select ${missing.organizationId} from ${missing}`,
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
  // A cluster that was only looked at again, and found to be as it was, is no change.
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

async function resolveRegions(db: SessionDatabase): Promise<void> {
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
  // A region that no catalogue lists is the organization's own: its name is nobody else's to read.
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
    update ${organizations} set ${nameOf(organizations.clustersVersion)} = ${increment(organizations.clustersVersion)}
    where ${organizations.id} in (select ${nameOf(regions.organizationId)} from renamed)`);
}

/**
 * A machine is the type that the source names, and some catalogue has it where no shape is given; else the one it had,
 * while it still fits; else the cheapest of that shape that can be had in the region; else a machine of its own that no
 * catalogue shows.
 */
async function resolveMachines(db: SessionDatabase): Promise<void> {
  await findMachines(db);
  // Under the name that it was given, where that is free: its id stays when a catalogue comes to list it.
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

/** A name of our own for a shape, e.g. `unlisted 4 cpu 16 GiB`. */
const NAME_OF_SHAPE = sql`'unlisted ' || ${d.cpu} || ' cpu ' || (${d.item} #>> '{machine,ram}') ||
  case ${d.ramUnit} when 'Binary' then ' GiB' else ' GB' end`;

/** Sets the machine of every cluster that has none yet, where there is one. */
async function findMachines(db: SessionDatabase): Promise<void> {
  const fits = sql`(${machines.cpu}, ${machines.ram}, ${machines.ramUnit}) = (${d.cpu}, ${d.ram}, ${d.ramUnit})`;
  const isListed = sql`${machines.excludedReason} is distinct from 'unlisted'`;
  const isThere = and(isNull(d.machineId), eq(machines.regionId, d.regionId));
  // What one control plane says of a type that no catalogue lists holds for nobody else: there the shape must fit, too.
  const isNamed = and(isThere, eq(machines.name, d.machineName), sql`(${isListed} or ${fits})`);
  const isKept = and(isThere, eq(machines.id, d.oldMachineId), isListed, fits);
  await db.update(d).set({ machineId: machines.id }).from(machines).where(isNamed);
  await db.update(d).set({ machineId: machines.id }).from(machines).where(isKept);
  // Materialized: else the cheapest would be looked for anew for each cluster.
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

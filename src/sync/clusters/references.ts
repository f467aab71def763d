/** Finds or creates regions, machines and users of the clusters in a diff, in the caller's transaction. */

import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { alias, and, eq, gt, isNull, not, pgTable, sql } from '../../db/connection/drizzle.ts';
import { insertInto, nameOf, selectAs } from '../../db/connection/statements.ts';
import { lockOrganizations } from '../../db/organizations.ts';
import { clusters, machines, organizations, providers, regions, users } from '../../db/schema.ts';
import { RAISE } from '../../db/versions.ts';
import { clusterDiff as d, clusterMissing as missing } from './match.ts';

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
export async function resolveReferences(db: ConnectionDatabase): Promise<number> {
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

async function findMachines(db: ConnectionDatabase): Promise<void> {
  const fits = sql`(${machines.cpu}, ${machines.ram}, ${machines.ramUnit}) = (${d.cpu}, ${d.ram}, ${d.ramUnit})`;
  const isListed = sql`${machines.excludedReason} is distinct from 'unlisted'`;
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

/** Writes a computed cluster diff, in the caller's transaction. */
import type { SessionSql } from './connect.ts';

/**
 * Finds, or makes, everything that the clusters refer to. New rows are found by anti-join: ids do not burn.
 * @returns how many clusters have another machine or region now although their source says the same as before
 */
export async function resolveReferences(sql: SessionSql): Promise<number> {
  await resolveRegions(sql);
  await resolveMachines(sql);
  await sql`
    insert into users (organization_id, first_name, last_name)
    select distinct d.organization_id, d.item #>> '{user,firstName}', d.item #>> '{user,lastName}'
    from cluster_diff d
    where not exists (
      select from users u where u.organization_id = d.organization_id
        and u.first_name = d.item #>> '{user,firstName}' and u.last_name = d.item #>> '{user,lastName}')
    on conflict do nothing`;
  await sql`
    update cluster_diff d set user_id = u.id from users u
    where u.organization_id = d.organization_id and u.first_name = d.item #>> '{user,firstName}'
      and u.last_name = d.item #>> '{user,lastName}'`;
  // A cluster that was only looked at again, and found to be as it was, is no change.
  const moved = await sql`
    update cluster_diff set differs = true
    where not differs and (machine_id <> old_machine_id or region_id <> old_region_id)`;
  await sql`
    update clusters c set missed_runs = 0 from cluster_diff d
    where c.id = d.cluster_id and not d.differs and c.missed_runs > 0`;
  await sql`delete from cluster_diff where not differs`;
  return moved.count;
}

async function resolveRegions(sql: SessionSql): Promise<void> {
  await sql`
    insert into providers (name)
    select distinct on (lower(d.item ->> 'provider')) d.item ->> 'provider' from cluster_diff d
    where not exists (select from providers p where lower(p.name) = lower(d.item ->> 'provider'))
    order by lower(d.item ->> 'provider'), d.item ->> 'provider' collate "C"
    on conflict do nothing`;
  await sql`
    update cluster_diff d set provider_id = (
      select p.id from providers p where lower(p.name) = lower(d.item ->> 'provider') order by p.id limit 1)`;
  // A region that no catalogue lists is the organization's own: its name is nobody else's to read.
  await sql`
    insert into regions (provider_id, code, name, organization_id)
    select distinct on (d.provider_id, d.organization_id, d.item #>> '{region,code}')
      d.provider_id, d.item #>> '{region,code}', d.item #>> '{region,name}', d.organization_id
    from cluster_diff d
    where not exists (
      select from regions r where r.provider_id = d.provider_id and r.code = d.item #>> '{region,code}'
        and (r.organization_id is null or r.organization_id = d.organization_id))
    order by d.provider_id, d.organization_id, d.item #>> '{region,code}', d.source_key collate "C"
    on conflict do nothing`;
  await sql`
    update cluster_diff d set region_id = (
      select r.id from regions r where r.provider_id = d.provider_id and r.code = d.item #>> '{region,code}'
        and (r.organization_id is null or r.organization_id = d.organization_id)
      order by r.organization_id nulls first limit 1)`;
  await sql`
    with renamed as (
      update regions r set name = d.name
      from (
        select distinct on (region_id) region_id, item #>> '{region,name}' as name
        from cluster_diff order by region_id, source_key collate "C"
      ) d
      where d.region_id = r.id and r.organization_id is not null and r.name <> d.name
      returning r.organization_id
    )
    update organizations set clusters_version = clusters_version + 1
    where id in (select organization_id from renamed)`;
}

/**
 * A machine is the type that the source names; else the one it had, while it still fits; else the cheapest of that
 * shape that can be had in the region; else a machine of its own that no catalogue shows.
 */
async function resolveMachines(sql: SessionSql): Promise<void> {
  const shape = sql`m.cpu = (d.item #>> '{machine,cpu}')::integer and m.ram = (d.item #>> '{machine,ram}')::numeric
    and m.ram_unit = d.item #>> '{machine,ramUnit}'`;
  // What one control plane says of a type that no catalogue lists holds for nobody else: there the shape must fit, too.
  const find = () => sql`
    update cluster_diff d set machine_id = (
      select m.id from machines m
      where m.region_id = d.region_id
        and ((m.name = d.item #>> '{machine,name}' and m.excluded_reason is distinct from 'unlisted') or (${shape}))
      order by (m.name = d.item #>> '{machine,name}') desc nulls last,
        (m.id = d.old_machine_id and m.excluded_reason is distinct from 'unlisted') desc nulls last,
        m.retired_at is not null, m.excluded_reason is not null, m.excluded_reason = 'unlisted',
        m.price nulls last, m.id
      limit 1)
    where d.machine_id is null`;
  await find();
  // Under the name that it was given, where that is free: its id stays when a catalogue comes to list it.
  for (const name of [sql`d.item #>> '{machine,name}'`, nameOfShape(sql)]) {
    await sql`
      insert into machines (region_id, name, cpu, ram, ram_unit, excluded_reason)
      select distinct on (1, 2) d.region_id, ${name}, (d.item #>> '{machine,cpu}')::integer,
        (d.item #>> '{machine,ram}')::numeric, d.item #>> '{machine,ramUnit}', 'unlisted'
      from cluster_diff d
      where d.machine_id is null and ${name} is not null
        and not exists (select from machines m where m.region_id = d.region_id and m.name = ${name})
      order by 1, 2, d.source_key collate "C"
      on conflict do nothing`;
    await find();
  }
}

/** A name of our own for a shape, e.g. `unlisted 4 cpu 16 GiB`. */
function nameOfShape(sql: SessionSql) {
  return sql`'unlisted ' || (d.item #>> '{machine,cpu}') || ' cpu ' || (d.item #>> '{machine,ram}') ||
    case d.item #>> '{machine,ramUnit}' when 'Binary' then ' GiB' else ' GB' end`;
}

/** Writes the clusters with their disks; slugs have been set. @returns how many clusters were retired now */
export async function writeClusters(
  sql: SessionSql,
  sourceId: string,
  now: string,
  runsUntilRetired: number,
): Promise<number> {
  await sql`
    insert into disk_types (organization_id, region_id, name, unit, price, source_amount, source_per, source_currency)
    select distinct on (d.organization_id, d.region_id, k.name, k.unit, k.amount, k.per, k.currency)
      d.organization_id, d.region_id, k.name, k.unit, k.price, k.amount, k.per, k.currency
    from cluster_diff d cross join lateral ${disksOf(sql)} k
    where not exists (
      select from disk_types t where t.organization_id = d.organization_id and t.region_id = d.region_id
        and t.name = k.name and t.unit = k.unit and t.source_amount = k.amount and t.source_per = k.per
        and t.source_currency = k.currency)
    on conflict do nothing`;
  // Another exchange rate makes another price of the same disk type.
  await sql`
    update disk_types t set price = k.price
    from cluster_diff d cross join lateral ${disksOf(sql)} k
    where t.organization_id = d.organization_id and t.region_id = d.region_id and t.name = k.name and t.unit = k.unit
      and t.source_amount = k.amount and t.source_per = k.per and t.source_currency = k.currency
      and t.price <> k.price`;
  // A slug may pass from one cluster to another within a batch: free them all before they are given.
  await sql`
    update clusters c set retired_at = coalesce(c.retired_at, ${now}::timestamptz)
    from cluster_diff d where c.id = d.cluster_id and d.slug <> d.old_slug`;
  await sql`
    update clusters c
    set source_hash = d.source_hash, slug = d.slug, name = d.item ->> 'name', region_id = d.region_id,
        machine_id = d.machine_id, user_id = d.user_id, status = d.item ->> 'status',
        shards = (d.item ->> 'shards')::integer, replicas = (d.item ->> 'replicas')::integer,
        created_at = (d.item ->> 'createdAt')::timestamp, missed_runs = 0, retired_at = null
    from cluster_diff d where c.id = d.cluster_id`;
  await sql`
    insert into clusters (organization_id, source_id, source_key, source_hash, slug, name, region_id, machine_id,
                          user_id, status, shards, replicas, created_at)
    select organization_id, ${sourceId}, source_key, source_hash, slug, item ->> 'name', region_id, machine_id, user_id,
           item ->> 'status', (item ->> 'shards')::integer, (item ->> 'replicas')::integer,
           (item ->> 'createdAt')::timestamp
    from cluster_diff where is_new
    order by organization_id, source_key collate "C"`;
  await sql`
    update cluster_diff d set cluster_id = c.id from clusters c
    where d.is_new and c.source_id = ${sourceId} and c.organization_id = d.organization_id
      and c.source_key = d.source_key`;
  await sql`
    delete from disks x using cluster_diff d
    where x.organization_id = d.organization_id and x.cluster_id = d.cluster_id`;
  await sql`
    insert into disks (organization_id, cluster_id, position, disk_type_id, size, unit, autoscaling)
    select d.organization_id, d.cluster_id, k.position, t.id, k.size, k.size_unit, k.autoscaling
    from cluster_diff d cross join lateral ${disksOf(sql)} k
    join disk_types t on t.organization_id = d.organization_id and t.region_id = d.region_id and t.name = k.name
      and t.unit = k.unit and t.source_amount = k.amount and t.source_per = k.per and t.source_currency = k.currency`;

  await sql`
    update clusters c set missed_runs = case when g.excused then 0 else missed_runs + 1 end
    from cluster_missing g where c.id = g.cluster_id and (not g.excused or c.missed_runs > 0)`;
  const retired = await sql<{ organizationId: number }[]>`
    update clusters c set retired_at = ${now}::timestamptz
    from cluster_missing g
    where c.id = g.cluster_id and not g.excused and c.missed_runs >= ${runsUntilRetired}
    returning c.organization_id as "organizationId"`;
  await sql`
    update organizations set clusters_version = clusters_version + 1
    where id in (select organization_id from cluster_diff)
       or id = any(${retired.map((row) => row.organizationId)}::int[])`;
  return retired.length;
}

/** The disks of `d.item`, one a row, in their order. */
function disksOf(sql: SessionSql) {
  return sql`(
    select ordinality - 1 as position, disk #>> '{type,name}' as name, disk #>> '{type,unit}' as unit,
      (disk #>> '{type,pricePerMinute}')::numeric as price,
      (disk #>> '{type,price,amount}')::numeric as amount, disk #>> '{type,price,per}' as per,
      disk #>> '{type,price,currency}' as currency,
      (disk ->> 'size')::double precision as size, disk ->> 'unit' as size_unit,
      (disk ->> 'autoscaling')::boolean as autoscaling
    from jsonb_array_elements(d.item -> 'disks') with ordinality e (disk, ordinality))`;
}

export interface SlugRow {
  readonly organizationId: number;
  readonly sourceKey: string;
  readonly name: string;
  readonly given: string | null;
  readonly old: string | null;
}

/** The clusters that need a slug, in the fixed order in which slugs are given. */
export async function slugRows(sql: SessionSql): Promise<SlugRow[]> {
  return sql<SlugRow[]>`
    select organization_id as "organizationId", source_key as "sourceKey", item ->> 'name' as name,
           item ->> 'slug' as given, case when was_retired then null else old_slug end as old
    from cluster_diff order by organization_id, item ->> 'createdAt' collate "C", source_key collate "C"`;
}

/** Slugs of these organizations' clusters that this batch does not touch. */
export async function takenSlugs(sql: SessionSql): Promise<{ organizationId: number; slug: string }[]> {
  return sql<{ organizationId: number; slug: string }[]>`
    select c.organization_id as "organizationId", c.slug from clusters c
    where c.retired_at is null and c.organization_id in (select organization_id from cluster_diff)
      and not exists (select from cluster_diff d where d.cluster_id = c.id)`;
}

export async function setSlugs(
  sql: SessionSql,
  slugs: readonly { organizationId: number; sourceKey: string; slug: string }[],
): Promise<void> {
  await sql`
    update cluster_diff d set slug = w.slug
    from unnest(${slugs.map((s) => s.organizationId)}::int[], ${slugs.map((s) => s.sourceKey)}::text[],
                ${slugs.map((s) => s.slug)}::text[]) w (organization_id, source_key, slug)
    where d.organization_id = w.organization_id and d.source_key = w.source_key`;
}

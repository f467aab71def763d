/** Writes a computed cluster diff, in the caller's transaction. */
import type { SessionSql } from '../connect.ts';
import { lockOrganizations } from './lock-organizations.ts';

/**
 * Finds, or makes, everything that the clusters refer to, with their organizations locked for the rest of the
 * transaction. New rows are found by anti-join: ids do not burn.
 * @returns how many clusters have another machine or region now although their source says the same as before
 */
export async function resolveReferences(sql: SessionSql): Promise<number> {
  await lockOrganizations(
    sql,
    sql`select organization_id from cluster_diff union all select organization_id from cluster_missing`,
  );
  await resolveRegions(sql);
  await resolveMachines(sql);
  await sql`
    insert into users (organization_id, first_name, last_name)
    select distinct d.organization_id, d.first_name, d.last_name
    from cluster_diff d
    where not exists (
      select from users u where u.organization_id = d.organization_id
        and u.first_name = d.first_name and u.last_name = d.last_name)
    on conflict do nothing`;
  await sql`
    update cluster_diff d set user_id = u.id from users u
    where u.organization_id = d.organization_id and u.first_name = d.first_name and u.last_name = d.last_name`;
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
    select distinct on (lower(d.provider)) d.provider from cluster_diff d
    where not exists (select from providers p where lower(p.name) = lower(d.provider))
    order by lower(d.provider), d.provider collate "C"
    on conflict do nothing`;
  // Each thing is looked up once for all the clusters that name it.
  await sql`
    create temporary table cluster_places on commit drop as
    select d.organization_id, d.provider, d.region_code, p.id as provider_id,
      (array_agg(d.region_name order by d.source_key collate "C"))[1] as name
    from cluster_diff d
    join (select distinct on (lower(name)) lower(name) as name, id from providers order by 1, id) p
      on p.name = lower(d.provider)
    group by 1, 2, 3, 4`;
  await sql`analyze cluster_places`;
  // A region that no catalogue lists is the organization's own: its name is nobody else's to read.
  await sql`
    insert into regions (provider_id, code, name, organization_id)
    select distinct on (provider_id, organization_id, region_code) provider_id, region_code, name, organization_id
    from cluster_places l
    where not exists (
      select from regions r where r.provider_id = l.provider_id and r.code = l.region_code
        and (r.organization_id is null or r.organization_id = l.organization_id))
    order by provider_id, organization_id, region_code, provider collate "C"
    on conflict do nothing`;
  await sql`
    update cluster_diff d set provider_id = l.provider_id, region_id = coalesce(listed.id, own.id)
    from cluster_places l
    left join regions listed
      on listed.provider_id = l.provider_id and listed.code = l.region_code and listed.organization_id is null
    left join regions own
      on own.provider_id = l.provider_id and own.code = l.region_code and own.organization_id = l.organization_id
    where d.organization_id = l.organization_id and d.provider = l.provider and d.region_code = l.region_code`;
  await sql`
    with renamed as (
      update regions r set name = d.name
      from (
        select distinct on (region_id) region_id, region_name as name
        from cluster_diff order by region_id, source_key collate "C"
      ) d
      where d.region_id = r.id and r.organization_id is not null and r.name <> d.name
      returning r.organization_id
    )
    update organizations set clusters_version = clusters_version + 1
    where id in (select organization_id from renamed)`;
}

/**
 * A machine is the type that the source names, and some catalogue has it where no shape is given; else the one it had,
 * while it still fits; else the cheapest of that shape that can be had in the region; else a machine of its own that no
 * catalogue shows.
 */
async function resolveMachines(sql: SessionSql): Promise<void> {
  await findMachines(sql);
  // Under the name that it was given, where that is free: its id stays when a catalogue comes to list it.
  for (const name of [sql`d.machine_name`, nameOfShape(sql)]) {
    const made = await sql`
      insert into machines (region_id, name, cpu, ram, ram_unit, excluded_reason)
      select distinct on (1, 2) d.region_id, ${name}, d.cpu, d.ram, d.ram_unit, 'unlisted'
      from cluster_diff d
      where d.machine_id is null and d.cpu is not null and ${name} is not null
        and not exists (select from machines m where m.region_id = d.region_id and m.name = ${name})
      order by 1, 2, d.source_key collate "C"
      on conflict do nothing`;
    if (made.count > 0) await findMachines(sql);
  }
}

/** Sets the machine of every cluster that has none yet, where there is one. */
async function findMachines(sql: SessionSql): Promise<void> {
  const fits = sql`(m.cpu, m.ram, m.ram_unit) = (d.cpu, d.ram, d.ram_unit)`;
  // What one control plane says of a type that no catalogue lists holds for nobody else: there the shape must fit, too.
  await sql`
    update cluster_diff d set machine_id = m.id from machines m
    where d.machine_id is null and m.region_id = d.region_id and m.name = d.machine_name
      and (m.excluded_reason is distinct from 'unlisted' or ${fits})`;
  await sql`
    update cluster_diff d set machine_id = m.id from machines m
    where d.machine_id is null and m.id = d.old_machine_id and m.region_id = d.region_id
      and m.excluded_reason is distinct from 'unlisted' and ${fits}`;
  // Materialized: else the cheapest would be looked for anew for each cluster.
  await sql`
    with best as materialized (
      select wanted.*, (
        select m.id from machines m
        where m.region_id = wanted.region_id
          and (m.cpu, m.ram, m.ram_unit) = (wanted.cpu, wanted.ram, wanted.ram_unit)
        order by m.retired_at is not null, m.excluded_reason is not null, m.excluded_reason = 'unlisted',
          m.price nulls last, m.id
        limit 1) as id
      from (select distinct region_id, cpu, ram, ram_unit from cluster_diff where machine_id is null and cpu is not null) wanted
    )
    update cluster_diff d set machine_id = best.id from best
    where d.machine_id is null and best.id is not null
      and (d.region_id, d.cpu, d.ram, d.ram_unit) = (best.region_id, best.cpu, best.ram, best.ram_unit)`;
}

/** A name of our own for a shape, e.g. `unlisted 4 cpu 16 GiB`. */
function nameOfShape(sql: SessionSql) {
  return sql`'unlisted ' || d.cpu || ' cpu ' || (d.item #>> '{machine,ram}') ||
    case d.ram_unit when 'Binary' then ' GiB' else ' GB' end`;
}

/** Writes the clusters with their disks; slugs have been set. @returns how many clusters were retired now */
export async function writeClusters(
  sql: SessionSql,
  sourceId: string,
  now: string,
  runsUntilRetired: number,
): Promise<number> {
  // First, since their slugs are free then.
  await sql`
    update clusters c set missed_runs = case when g.excused then 0 else missed_runs + 1 end
    from cluster_missing g where c.id = g.cluster_id and (not g.excused or c.missed_runs > 0)`;
  const retired = await sql<{ organizationId: number }[]>`
    update clusters c set retired_at = ${now}::timestamptz
    from cluster_missing g
    where c.id = g.cluster_id and not g.excused and c.missed_runs >= ${runsUntilRetired}
    returning c.organization_id as "organizationId"`;
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
    update organizations set clusters_version = clusters_version + 1
    where id in (
      select organization_id from cluster_diff
      union select unnest(${retired.map((row) => row.organizationId)}::int[]))`;
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

/** Organizations whose clusters get their slugs in one go: what memory holds at a time. */
const SLUGS_AT_ONCE = 2000;

export interface SlugBatch {
  readonly rows: readonly SlugRow[];
  /** Slugs of these organizations' clusters that the batch neither touches nor retires. */
  readonly taken: readonly { readonly organizationId: number; readonly slug: string }[];
}

/** The clusters that need a slug, in the fixed order in which slugs are given, some organizations at a time. */
export async function* slugBatches(sql: SessionSql, runsUntilRetired: number): AsyncGenerator<SlugBatch> {
  const ids = await sql<{ id: number }[]>`select distinct organization_id as id from cluster_diff order by 1`;
  for (let from = 0; from < ids.length; from += SLUGS_AT_ONCE) {
    const organizations = ids.slice(from, from + SLUGS_AT_ONCE).map(({ id }) => id);
    const rows = await sql<SlugRow[]>`
      select organization_id as "organizationId", source_key as "sourceKey", item ->> 'name' as name,
             item ->> 'slug' as given, case when was_retired then null else old_slug end as old
      from cluster_diff where organization_id = any(${organizations}::int[])
      order by organization_id, item ->> 'createdAt' collate "C", source_key collate "C"`;
    const taken = await sql<{ organizationId: number; slug: string }[]>`
      select c.organization_id as "organizationId", c.slug from clusters c
      where c.retired_at is null and c.organization_id = any(${organizations}::int[])
        and not exists (select from cluster_diff d where d.cluster_id = c.id)
        and not exists (
          select from cluster_missing g
          where g.cluster_id = c.id and not g.excused and c.missed_runs + 1 >= ${runsUntilRetired})`;
    yield { rows, taken };
  }
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

/** What staged clusters would change. See catalogue-diff.ts for the machines' side. */
import type { SessionSql } from '../connect.ts';
import { OTHERS, REJECTED_KEPT, type RejectedKey } from './rejected.ts';

/** Makes the staging table of this session. It vanishes with it. */
export async function createClusterStaging(sql: SessionSql): Promise<void> {
  await sql`
    create temporary table staged_clusters (
      organization text not null,
      source_key text not null,
      source_hash bytea not null,
      item jsonb not null
    )`;
}

/** Staged rows that cannot be stored. */
export interface RejectedStaged {
  /** At most a few more than `REJECTED_KEPT` of each kind. */
  readonly rejected: readonly RejectedKey[];
  /** How many of all that are rejected wait for an operator. */
  readonly waiting: number;
  /** How many rows are left. */
  readonly usable: number;
}

interface Gone {
  readonly organization: string;
  readonly key: string;
  /** How many there are in all. */
  readonly all: number;
}

/**
 * Takes rows out of the staging table whose organization does not exist, whose machine is only named and in no
 * catalogue, and those that are there twice.
 * @param namesMachines whether there are machines that are only named
 */
export async function rejectStagedClusters(sql: SessionSql, namesMachines: boolean): Promise<RejectedStaged> {
  const orphans = await sql<(Gone & { deleted: boolean })[]>`
    with gone as (
      delete from staged_clusters s
      where not exists (select from organizations o where o.slug = s.organization and o.deleted_at is null)
      returning organization, source_key
    )
    select organization, source_key as key, o.id is not null as deleted, (count(*) over ())::int as all
    from gone left join organizations o on o.slug = organization
    order by organization collate "C", source_key collate "C" limit ${REJECTED_KEPT + 1}`;
  const twice = await sql<Gone[]>`
    with twice as (
      select organization, source_key from staged_clusters group by 1, 2 having count(*) > 1
    ), gone as (
      delete from staged_clusters s using twice t
      where s.organization = t.organization and s.source_key = t.source_key
    )
    select organization, source_key as key, (count(*) over ())::int as all from twice
    order by organization collate "C", source_key collate "C" limit ${REJECTED_KEPT + 1}`;
  const unknown = namesMachines ? await rejectUnknownMachines(sql) : [];
  const [left] = await sql<{ usable: number }[]>`select count(*)::int as usable from staged_clusters`;
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
  return { rejected, waiting, usable: left?.usable ?? 0 };
}

/** What another control plane said of a type that no catalogue lists holds for nobody else: such a one is unknown, too. */
async function rejectUnknownMachines(sql: SessionSql) {
  return sql<(Gone & { provider: string; region: string; machine: string })[]>`
    with named as (
      select distinct item ->> 'provider' as provider, item #>> '{region,code}' as region,
        item #>> '{machine,name}' as machine
      from staged_clusters where item #>> '{machine,cpu}' is null
    ), unknown as (
      select * from named n
      where not exists (
        select from machines m join regions r on r.id = m.region_id
        where r.code = n.region and r.organization_id is null and m.name = n.machine
          and m.excluded_reason is distinct from 'unlisted'
          and r.provider_id = (
            select p.id from providers p where lower(p.name) = lower(n.provider) order by p.id limit 1))
    ), gone as (
      delete from staged_clusters s using unknown u
      where s.item #>> '{machine,cpu}' is null and s.item ->> 'provider' = u.provider
        and s.item #>> '{region,code}' = u.region and s.item #>> '{machine,name}' = u.machine
      returning s.organization, s.source_key as key, u.provider, u.region, u.machine
    )
    select *, (count(*) over ())::int as all from gone
    order by organization collate "C", key collate "C" limit ${REJECTED_KEPT + 1}`;
}

export interface ClusterDiff {
  readonly known: number;
  readonly added: number;
  readonly changed: number;
  readonly missing: number;
}

/**
 * Fills `cluster_diff` (new, differing, and those whose machine or region the catalogue did not know so far) and
 * `cluster_missing`; both live until the transaction ends.
 */
export async function computeClusterDiff(
  sql: SessionSql,
  sourceId: string,
  rejected: readonly RejectedKey[],
): Promise<ClusterDiff> {
  await sql`
    create temporary table cluster_diff on commit drop as
    select o.id as organization_id, s.source_key, s.source_hash, s.item,
      c.id as cluster_id, c.slug as old_slug, c.machine_id as old_machine_id, c.region_id as old_region_id,
      c.id is null as is_new,
      c.id is null or c.retired_at is not null or c.source_hash <> s.source_hash as differs,
      coalesce(c.retired_at is not null, false) as was_retired,
      s.item ->> 'provider' as provider,
      s.item #>> '{region,code}' as region_code, s.item #>> '{region,name}' as region_name,
      s.item #>> '{machine,name}' as machine_name, (s.item #>> '{machine,cpu}')::integer as cpu,
      (s.item #>> '{machine,ram}')::numeric as ram, s.item #>> '{machine,ramUnit}' as ram_unit,
      s.item #>> '{user,firstName}' as first_name, s.item #>> '{user,lastName}' as last_name,
      null::integer as provider_id, null::integer as region_id, null::integer as machine_id, null::integer as user_id,
      null::text as slug
    from staged_clusters s
    join organizations o on o.slug = s.organization
    left join clusters c on c.source_id = ${sourceId} and c.organization_id = o.id and c.source_key = s.source_key
    left join machines m on m.id = c.machine_id
    left join regions r on r.id = c.region_id
    where c.id is null or c.retired_at is not null or c.missed_runs > 0 or c.source_hash <> s.source_hash
      or m.excluded_reason = 'unlisted' or r.organization_id is not null`;
  await sql`analyze cluster_diff`;
  // A rejected row counts as seen.
  await sql`
    create temporary table cluster_missing on commit drop as
    select c.id as cluster_id, c.organization_id, o.slug as organization, c.source_key, false as excused
    from clusters c join organizations o on o.id = c.organization_id
    where c.source_id = ${sourceId} and c.retired_at is null
      and not exists (
        select from staged_clusters s where s.organization = o.slug and s.source_key = c.source_key)`;
  await sql`
    with j as (
      select * from unnest(${rejected.map((row) => row.key)}::text[],
                           ${rejected.map((row) => row.organization ?? null)}::text[]) j (key, organization)
    )
    update cluster_missing m set excused = true
    where (m.organization, m.source_key) in (select organization, key from j where organization is not null)
      or m.source_key in (select key from j where organization is null)`;
  if (rejected.includes(OTHERS)) await sql`delete from cluster_missing where not excused`;
  const [row] = await sql<Pick<ClusterDiff, 'known' | 'missing'>[]>`
    select
      (select count(*)::int from clusters where source_id = ${sourceId} and retired_at is null) as known,
      (select count(*)::int from cluster_missing where not excused) as missing`;
  if (!row) throw new Error('unreachable: a select without a table has one row');
  return { ...row, ...(await countChanges(sql)) };
}

/**
 * Leaves in the diff what is safe without a removal that waits for an operator: nothing is missed, and what would come
 * under a missing cluster's name or slug waits as well, since it may be the same cluster under another key.
 * @returns what is left
 */
export async function setRemovalAside(sql: SessionSql): Promise<Pick<ClusterDiff, 'added' | 'changed'>> {
  await sql`
    delete from cluster_diff d using cluster_missing g, clusters c
    where not g.excused and c.id = g.cluster_id and c.organization_id = d.organization_id
      and (c.slug = d.item ->> 'slug' or (d.is_new or d.was_retired) and lower(c.name) = lower(d.item ->> 'name'))`;
  await sql`delete from cluster_missing where not excused`;
  return countChanges(sql);
}

async function countChanges(sql: SessionSql): Promise<Pick<ClusterDiff, 'added' | 'changed'>> {
  const [row] = await sql<Pick<ClusterDiff, 'added' | 'changed'>[]>`
    select count(*) filter (where is_new or was_retired)::int as added,
      count(*) filter (where differs and not is_new and not was_retired)::int as changed
    from cluster_diff`;
  if (!row) throw new Error('unreachable: an aggregate has one row');
  return row;
}

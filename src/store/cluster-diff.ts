/** What staged clusters would change. See catalogue-diff.ts for the machines' side. */
import type { SessionSql } from './connect.ts';
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

/**
 * Takes rows whose organization does not exist, and rows that are there twice, out of the staging table.
 * @returns at most a few more than `REJECTED_KEPT` of them, and how many rows are left
 */
export async function rejectStagedClusters(
  sql: SessionSql,
): Promise<{ rejected: RejectedKey[]; usable: number; orphans: number }> {
  const orphans = await sql<{ organization: string; key: string }[]>`
    with gone as (
      delete from staged_clusters s
      where not exists (select from organizations o where o.slug = s.organization and o.deleted_at is null)
      returning organization, source_key
    )
    select organization, source_key as key from gone
    order by organization collate "C", source_key collate "C" limit ${REJECTED_KEPT + 1}`;
  const twice = await sql<{ organization: string; key: string }[]>`
    with twice as (
      select organization, source_key from staged_clusters group by 1, 2 having count(*) > 1
    ), gone as (
      delete from staged_clusters s using twice t
      where s.organization = t.organization and s.source_key = t.source_key
    )
    select organization, source_key as key from twice
    order by organization collate "C", source_key collate "C" limit ${REJECTED_KEPT + 1}`;
  const [left] = await sql<{ usable: number }[]>`select count(*)::int as usable from staged_clusters`;
  const rejected = [
    ...orphans.map(({ organization, key }) => ({
      key,
      organization,
      reason: `organization "${organization}" does not exist; create it with: fleetbook org create ${organization}`,
    })),
    ...twice.map(({ organization, key }) => ({
      key,
      organization,
      reason: 'reported more than once in one batch; which one holds cannot be told',
    })),
  ];
  return { rejected, usable: left?.usable ?? 0, orphans: orphans.length };
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
      null::integer as provider_id, null::integer as region_id, null::integer as machine_id, null::integer as user_id,
      null::text as slug
    from staged_clusters s
    join organizations o on o.slug = s.organization
    left join clusters c on c.source_id = ${sourceId} and c.organization_id = o.id and c.source_key = s.source_key
    left join machines m on m.id = c.machine_id
    left join regions r on r.id = c.region_id
    where c.id is null or c.retired_at is not null or c.missed_runs > 0 or c.source_hash <> s.source_hash
      or m.excluded_reason = 'unlisted' or r.organization_id is not null`;
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
  const [row] = await sql<ClusterDiff[]>`
    select
      (select count(*)::int from clusters where source_id = ${sourceId} and retired_at is null) as known,
      (select count(*)::int from cluster_missing where not excused) as missing,
      count(*) filter (where is_new or was_retired)::int as added,
      count(*) filter (where differs and not is_new and not was_retired)::int as changed
    from cluster_diff`;
  if (!row) throw new Error('unreachable: an aggregate has one row');
  return row;
}

/** What a diff of clusters would change, for an operator's eyes. */
import type { SessionSql } from '../connect.ts';

/** One field of a cluster, as text. */
export interface FieldChange {
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

export interface ClusterPreviewRow {
  readonly change: 'gone' | 'changed' | 'new';
  readonly organization: string;
  /** What identifies the cluster at its source. */
  readonly key: string;
  readonly name: string;
  /** Those that differ; of a new or missing cluster all of them. */
  readonly fields: readonly FieldChange[];
}

export interface OrganizationChanges {
  readonly organization: string;
  readonly gone: number;
  readonly changed: number;
  readonly new: number;
}

export interface ClusterPreview {
  readonly rows: readonly ClusterPreviewRow[];
  /** Those with the most changes first. */
  readonly organizations: readonly OrganizationChanges[];
  /** How many rows there are of each kind of change. */
  readonly totals: Readonly<Record<ClusterPreviewRow['change'], number>>;
}

/** At most `limit` rows of each kind, by organization; undefined for all. To be called after `computeClusterDiff`. */
export async function clusterPreview(sql: SessionSql, limit: number | undefined): Promise<ClusterPreview> {
  await sql`
    create temporary table cluster_changes on commit drop as
    select case when is_new or was_retired then 'new' else 'changed' end as change, o.slug as organization,
      source_key as key, item ->> 'name' as name, cluster_id
    from cluster_diff d join organizations o on o.id = d.organization_id where differs
    union all
    select 'gone', g.organization, g.source_key, c.name, g.cluster_id
    from cluster_missing g join clusters c on c.id = g.cluster_id where not g.excused`;
  const organizations = await sql<OrganizationChanges[]>`
    select organization, count(*) filter (where change = 'gone')::int as gone,
      count(*) filter (where change = 'changed')::int as changed, count(*) filter (where change = 'new')::int as new
    from cluster_changes group by 1 order by count(*) desc, organization collate "C"`;
  type Fields = Readonly<Record<string, string | null>>;
  const rows = await sql<
    (Omit<ClusterPreviewRow, 'fields'> & { before: Fields | null; after: Fields | null })[]
  >`
    with ranked as (
      select *, row_number() over (
        partition by change order by organization collate "C", name collate "C", key collate "C") as rank
      from cluster_changes
    )
    select x.change, x.organization, x.key, x.name,
      case when x.change = 'new' then null else ${before(sql)} end as before,
      case when x.change = 'gone' then null else ${after(sql)} end as after
    from ranked x
    left join cluster_diff d on d.source_key = x.key and x.change <> 'gone'
      and d.organization_id = (select o.id from organizations o where o.slug = x.organization)
    left join clusters c on c.id = x.cluster_id
    left join regions r on r.id = c.region_id
    left join providers p on p.id = r.provider_id
    left join machines m on m.id = c.machine_id
    left join users u on u.organization_id = c.organization_id and u.id = c.user_id
    where x.rank <= ${limit ?? null}::bigint or ${limit === undefined}
    order by array_position(array['gone', 'changed', 'new'], x.change), x.rank`;
  const sum = (change: ClusterPreviewRow['change']) =>
    organizations.reduce((all, each) => all + each[change], 0);
  return {
    organizations,
    totals: { gone: sum('gone'), changed: sum('changed'), new: sum('new') },
    rows: rows.map(({ before, after, ...row }) => ({ ...row, fields: differences(before, after) })),
  };
}

/** The stored cluster, in the words in which its source may say it again. */
function before(sql: SessionSql) {
  const shape = sql`m.cpu || ' cpu ' || trim_scale(m.ram) || case m.ram_unit when 'Binary' then ' GiB' else ' GB' end`;
  return sql`jsonb_build_object(
    'name', c.name, 'slug', c.slug, 'provider', p.name, 'region', r.code, 'status', c.status,
    'shards', c.shards::text, 'replicas', c.replicas::text, 'user', trim(u.first_name || ' ' || u.last_name),
    'machine', case when d.source_key is null then m.name || ', ' || ${shape} else concat_ws(', ',
      case when d.machine_name is not null then m.name end, case when d.cpu is not null then ${shape} end) end,
    'disks', (
      select string_agg(k.size || ' ' || k.unit || ' ' || t.name || ' at ' || trim_scale(t.source_amount) || ' ' ||
        t.source_currency || '/' || t.source_per || case when k.autoscaling then ', autoscaling' else '' end,
        '; ' order by k.position)
      from disks k join disk_types t on t.id = k.disk_type_id
      where k.organization_id = c.organization_id and k.cluster_id = c.id),
    'created_at', to_char(c.created_at, 'YYYY-MM-DD"T"HH24:MI:SS.US'))`;
}

function after(sql: SessionSql) {
  const shape = sql`d.cpu || ' cpu ' || trim_scale(d.ram) || case d.ram_unit when 'Binary' then ' GiB' else ' GB' end`;
  return sql`jsonb_build_object(
    'name', d.item ->> 'name', 'slug', coalesce(d.item ->> 'slug', c.slug),
    'provider', coalesce((
      select same.name from providers same where lower(same.name) = lower(d.provider) order by same.id limit 1), d.provider),
    'region', d.region_code, 'status', d.item ->> 'status', 'shards', d.item ->> 'shards',
    'replicas', d.item ->> 'replicas', 'user', trim(d.first_name || ' ' || d.last_name),
    'machine', concat_ws(', ', d.machine_name, case when d.cpu is not null then ${shape} end),
    'disks', (
      select string_agg((k ->> 'size')::double precision || ' ' || (k ->> 'unit') || ' ' || (k #>> '{type,name}') ||
        ' at ' || trim_scale((k #>> '{type,price,amount}')::numeric) || ' ' || (k #>> '{type,price,currency}') || '/' ||
        (k #>> '{type,price,per}') || case when (k ->> 'autoscaling')::boolean then ', autoscaling' else '' end,
        '; ' order by position)
      from jsonb_array_elements(d.item -> 'disks') with ordinality e (k, position)),
    'created_at', d.item ->> 'createdAt')`;
}

function differences(
  before: Readonly<Record<string, string | null>> | null,
  after: Readonly<Record<string, string | null>> | null,
): FieldChange[] {
  return Object.keys(after ?? before ?? {})
    .map((field) => ({ field, before: before?.[field] ?? null, after: after?.[field] ?? null }))
    .filter((change) => change.before !== change.after);
}

/** What a diff of clusters would change, for an operator's eyes. */
import type { SessionDatabase } from '../../connection/connect.ts';
import { alias, type Column, desc, eq, integer, pgTable, sql, text } from '../../connection/drizzle.ts';
import { countIf, type RowOf, selectAs } from '../../connection/statements.ts';
import {
  clusters,
  disks,
  diskTypes,
  machines,
  organizations,
  providers,
  regions,
  users,
} from '../../schema.ts';
import { clusterDiff as d, clusterMissing as missing } from './diff.ts';

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

/** Dropped with the transaction, which may write into `cluster_changes` after it. */
const changes = pgTable('cluster_preview', {
  change: text('change', { enum: ['gone', 'changed', 'new'] }).notNull(),
  organization: text('organization').notNull(),
  key: text('key').notNull(),
  name: text('name').notNull(),
  clusterId: integer('cluster_id'),
});

type Fields = Readonly<Record<string, string | null>>;

/** At most `limit` rows of each kind, by organization; undefined for all. To be called after `computeClusterDiff`. */
export async function clusterPreview(
  db: SessionDatabase,
  limit: number | undefined,
): Promise<ClusterPreview> {
  await db.execute(sql`
    create temporary table ${changes} on commit drop as
    ${selectAs(changes, {
      change: sql`case when ${d.isNew} or ${d.wasRetired} then 'new' else 'changed' end`,
      organization: organizations.slug,
      key: d.sourceKey,
      name: sql`${d.item} ->> 'name'`,
      clusterId: d.clusterId,
    })}
    from ${d} join ${organizations} on ${organizations.id} = ${d.organizationId} where ${d.differs}
    union all
    ${selectAs(changes, {
      change: sql`'gone'`,
      organization: missing.organization,
      key: missing.sourceKey,
      name: clusters.name,
      clusterId: missing.clusterId,
    })}
    from ${missing} join ${clusters} on ${clusters.id} = ${missing.clusterId} where not ${missing.tolerated}`);
  const perOrganization = await db
    .select({
      organization: changes.organization,
      gone: countIf(eq(changes.change, 'gone')),
      changed: countIf(eq(changes.change, 'changed')),
      new: countIf(eq(changes.change, 'new')),
    })
    .from(changes)
    .groupBy(changes.organization)
    .orderBy(desc(sql`count(*)`), sql`${changes.organization} collate "C"`);
  type Row = Omit<ClusterPreviewRow, 'fields'> & { before: Fields | null; after: Fields | null };
  const rows = await db.execute<RowOf<Row>>(sql`
    with ranked as (
      select *, row_number() over (
        partition by change order by organization collate "C", name collate "C", key collate "C") as rank
      from ${changes}
    )
    select x.change, x.organization, x.key, x.name,
      case when x.change = 'new' then null else ${BEFORE} end as before,
      case when x.change = 'gone' then null else ${AFTER} end as after
    from ranked x
    left join ${d} on ${d.sourceKey} = x.key and x.change <> 'gone'
      and ${d.organizationId} = (
        select ${organizations.id} from ${organizations} where ${organizations.slug} = x.organization)
    left join ${clusters} on ${clusters.id} = x.cluster_id
    left join ${regions} on ${regions.id} = ${clusters.regionId}
    left join ${providers} on ${providers.id} = ${regions.providerId}
    left join ${machines} on ${machines.id} = ${clusters.machineId}
    left join ${users} on ${users.organizationId} = ${clusters.organizationId} and ${users.id} = ${clusters.userId}
    where x.rank <= ${limit ?? null}::bigint or ${limit === undefined}
    order by array_position(array['gone', 'changed', 'new'], x.change), x.rank`);
  const sum = (change: ClusterPreviewRow['change']) =>
    perOrganization.reduce((all, each) => all + each[change], 0);
  return {
    organizations: perOrganization,
    totals: { gone: sum('gone'), changed: sum('changed'), new: sum('new') },
    rows: rows.map(({ before, after, ...row }) => ({ ...row, fields: differences(before, after) })),
  };
}

/** A shape as text, e.g. `4 cpu 16 GiB`. */
const shapeOf = ({ cpu, ram, ramUnit }: Record<'cpu' | 'ram' | 'ramUnit', Column>) =>
  sql`${cpu} || ' cpu ' || trim_scale(${ram}) || case ${ramUnit} when 'Binary' then ' GiB' else ' GB' end`;

/** The stored cluster, in the words in which its source may say it again. */
const BEFORE = sql`jsonb_build_object(
  'name', ${clusters.name}, 'slug', ${clusters.slug}, 'provider', ${providers.name}, 'region', ${regions.code},
  'status', ${clusters.status}, 'shards', ${clusters.shards}::text, 'replicas', ${clusters.replicas}::text,
  'user', trim(${users.firstName} || ' ' || ${users.lastName}),
  'machine', case when ${d.sourceKey} is null then ${machines.name} || ', ' || ${shapeOf(machines)} else concat_ws(', ',
    case when ${d.machineName} is not null then ${machines.name} end,
    case when ${d.cpu} is not null then ${shapeOf(machines)} end) end,
  'disks', (
    select string_agg(${disks.size} || ' ' || ${disks.unit} || ' ' || ${diskTypes.name} || ' at ' ||
      trim_scale(${diskTypes.sourceAmount}) || ' ' || ${diskTypes.sourceCurrency} || '/' || ${diskTypes.sourcePer} ||
      case when ${disks.autoscaling} then ', autoscaling' else '' end, '; ' order by ${disks.position})
    from ${disks} join ${diskTypes} on ${diskTypes.id} = ${disks.diskTypeId}
    where ${disks.organizationId} = ${clusters.organizationId} and ${disks.clusterId} = ${clusters.id}),
  'created_at', to_char(${clusters.createdAt}, 'YYYY-MM-DD"T"HH24:MI:SS.US'))`;

const sameName = alias(providers, 'same_name');

/** The cluster as its source says it now. */
const AFTER = sql`jsonb_build_object(
  'name', ${d.item} ->> 'name', 'slug', coalesce(${d.item} ->> 'slug', ${clusters.slug}),
  'provider', coalesce((
    select ${sameName.name} from ${providers} ${sameName} where lower(${sameName.name}) = lower(${d.provider})
    order by ${sameName.id} limit 1), ${d.provider}),
  'region', ${d.regionCode}, 'status', ${d.item} ->> 'status', 'shards', ${d.item} ->> 'shards',
  'replicas', ${d.item} ->> 'replicas', 'user', trim(${d.firstName} || ' ' || ${d.lastName}),
  'machine', concat_ws(', ', ${d.machineName}, case when ${d.cpu} is not null then ${shapeOf(d)} end),
  'disks', (
    select string_agg((k ->> 'size')::double precision || ' ' || (k ->> 'unit') || ' ' || (k #>> '{type,name}') ||
      ' at ' || trim_scale((k #>> '{type,price,amount}')::numeric) || ' ' || (k #>> '{type,price,currency}') || '/' ||
      (k #>> '{type,price,per}') || case when (k ->> 'autoscaling')::boolean then ', autoscaling' else '' end,
      '; ' order by position)
    from jsonb_array_elements(${d.item} -> 'disks') with ordinality e (k, position)),
  'created_at', ${d.item} ->> 'createdAt')`;

function differences(before: Fields | null, after: Fields | null): FieldChange[] {
  return Object.keys(after ?? before ?? {})
    .map((field) => ({ field, before: before?.[field] ?? null, after: after?.[field] ?? null }))
    .filter((change) => change.before !== change.after);
}

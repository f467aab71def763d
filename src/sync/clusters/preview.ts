import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { alias, type Column, desc, eq, pgTable, sql } from '../../db/connection/drizzle.ts';
import { countIf, type RowOf, selectAs } from '../../db/connection/statements.ts';
import { CLUSTER_STATE, JOIN_OF_STATE } from '../../db/runs/stored-changes.ts';
import { clusters, machines, organizations, providers, users } from '../../db/schema.ts';
import { type HeldSample, type HeldSampleRow, sampleOf } from '../../domain/held-sample.ts';
import { clusterDiff as d, clusterMissing as missing } from './match.ts';

export interface FieldChange {
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

const CHANGES = ['gone', 'changed', 'new'] as const;

export interface ClusterPreviewRow {
  readonly change: (typeof CHANGES)[number];
  readonly organization: string;
  readonly key: string;
  readonly name: string;
  /** The fields that differ; all fields of a new or missing cluster. */
  readonly fields: readonly FieldChange[];
}

export type OrganizationChanges = { readonly organization: string } & Readonly<
  Record<ClusterPreviewRow['change'], number>
>;

export interface ClusterPreview {
  readonly rows: readonly ClusterPreviewRow[];
  readonly organizations: readonly OrganizationChanges[];
  readonly totals: Readonly<Record<ClusterPreviewRow['change'], number>>;
}

const changes = pgTable('cluster_preview', (c) => ({
  change: c.text('change', { enum: CHANGES }).notNull(),
  organization: c.text('organization').notNull(),
  key: c.text('key').notNull(),
  name: c.text('name').notNull(),
  clusterId: c.integer('cluster_id'),
}));

type Fields = Readonly<Record<string, string | null>>;

/** Call it after `matchClusters`. @param limit rows of each kind, by organization; undefined for all */
export async function clusterPreview(
  db: ConnectionDatabase,
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
      case when x.change <> 'new' then ${BEFORE} end as before, case when x.change <> 'gone' then ${AFTER} end as after
    from ranked x
    left join ${d} on ${d.sourceKey} = x.key and x.change <> 'gone'
      and ${d.organizationId} = (
        select ${organizations.id} from ${organizations} where ${organizations.slug} = x.organization)
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

const shapeOf = ({ cpu, ram, ramUnit }: Record<'cpu' | 'ram' | 'ramUnit', Column>) =>
  sql`${cpu} || ' cpu ' || trim_scale(${ram}) || case ${ramUnit} when 'Binary' then ' GiB' else ' GB' end`;

const m = alias(machines, 'm');

/** The stored cluster of the change `x`. Name and shape of its machine are as far as the source states them. */
const BEFORE = sql`(
  select ${sql.raw(CLUSTER_STATE)} || jsonb_build_object(
    'user', trim(u.first_name || ' ' || u.last_name),
    'machine', case when ${d.sourceKey} is null then m.name || ', ' || ${shapeOf(m)} else concat_ws(', ',
      case when ${d.machineName} is not null then m.name end,
      case when ${d.cpu} is not null then ${shapeOf(m)} end) end)
  from ${clusters} c ${sql.raw(JOIN_OF_STATE)}
  join ${users} u on u.organization_id = c.organization_id and u.id = c.user_id where c.id = x.cluster_id)`;

const sameName = alias(providers, 'same_name');

const AFTER = sql`jsonb_build_object(
  'name', ${d.item} ->> 'name', 'slug', coalesce(${d.item} ->> 'slug', ${d.oldSlug}),
  'provider', coalesce((
    select ${sameName.name} from ${providers} ${sameName} where lower(${sameName.name}) = lower(${d.provider})
    order by ${sameName.id} limit 1), ${d.provider}),
  'region', ${d.regionCode}, 'status', ${d.item} ->> 'status', 'shards', ${d.item} ->> 'shards',
  'replicas', ${d.item} ->> 'replicas', 'user', trim(${d.firstName} || ' ' || ${d.lastName}),
  'machine', concat_ws(', ', ${d.machineName}, case when ${d.cpu} is not null then ${shapeOf(d)} end),
  'engine', ${d.item} #>> '{software,engine}', 'version', ${d.item} #>> '{software,version}',
  'end_of_life', ${d.item} #>> '{software,endOfLife}',
  'disks', (
    select string_agg((k ->> 'size')::double precision || ' ' || (k ->> 'unit') || ' ' || (k #>> '{type,name}') ||
      ' at ' || trim_scale((k #>> '{type,price,amount}')::numeric) || ' ' || (k #>> '{type,price,currency}') ||
      case k #>> '{type,unit}' when 'Binary' then ' per GiB and ' else ' per GB and ' end || (k #>> '{type,price,per}') ||
      case when (k ->> 'autoscaling')::boolean then ', autoscaling' else '' end,
      '; ' order by position)
    from jsonb_array_elements(${d.item} -> 'disks') with ordinality e (k, position)),
  'created_at', ${d.item} ->> 'createdAt')`;

function differences(before: Fields | null, after: Fields | null): FieldChange[] {
  return Object.keys(after ?? before ?? {})
    .map((field) => ({ field, before: before?.[field] ?? null, after: after?.[field] ?? null }))
    .filter((change) => change.before !== change.after);
}

const sumOf = (totals: Readonly<Record<string, number>>) =>
  Object.values(totals).reduce((all, each) => all + each, 0);

export function sampleOfClusters({ rows, totals }: ClusterPreview): HeldSample {
  return sampleOf(
    rows.map((row) => ({ change: row.change, name: row.name, place: row.organization, ...fieldsOf(row) })),
    sumOf(totals),
  );
}

function fieldsOf({ change, fields }: ClusterPreviewRow): Pick<HeldSampleRow, 'before' | 'after'> {
  const values = (of: 'before' | 'after') =>
    fields.map((each) => `${each.field} ${each[of] ?? 'none'}`).join(', ');
  return {
    before: change === 'new' ? null : values('before'),
    after: change === 'gone' ? null : values('after'),
  };
}

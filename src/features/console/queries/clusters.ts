/** Clusters of all organizations, for operators. */
import type { Database } from '../../../db/connection/client.ts';
import { sql } from '../../../db/connection/drizzle.ts';
import {
  directed,
  type Page,
  type PageSearch,
  type RowOf,
  rfc3339,
} from '../../../db/connection/statements.ts';
import type { clusters, disks, diskTypes } from '../../../db/schema.ts';
import { compareVersions } from '../../../domain/lifecycle.ts';
import type { FoundMachine } from './machines.ts';

const BY_NAME = 'lower(c.name) collate "C" %, c.id %';

const ORDERS = {
  name: BY_NAME,
  organization: `o.slug collate "C" %, ${BY_NAME}`,
  provider: `p.name collate "C" %, r.code collate "C" %, ${BY_NAME}`,
  status: `c.status collate "C" %, ${BY_NAME}`,
  engine: `c.engine collate "C" %, c.version collate "C" %, ${BY_NAME}`,
  created: `c.created_at %, ${BY_NAME}`,
};
export type ClusterSort = keyof typeof ORDERS;
export const CLUSTER_SORTS = Object.keys(ORDERS) as ClusterSort[];

export interface ClusterSearch extends PageSearch<ClusterSort> {
  /** Part of the name or slug of the cluster or its organization, in upper or lower case. */
  readonly text?: string | undefined;
  readonly organization?: string | undefined;
  readonly providerId?: number | undefined;
  readonly status?: string | undefined;
  readonly engine?: string | undefined;
  readonly version?: string | undefined;
  readonly retired: 'no' | 'yes' | 'all';
}

type Stored = Pick<
  typeof clusters.$inferSelect,
  | 'id'
  | 'name'
  | 'slug'
  | 'status'
  | 'shards'
  | 'replicas'
  | 'engine'
  | 'version'
  | 'endOfLife'
  | 'createdAt'
  | 'retiredAt'
>;

/** Times are RFC 3339. Status and `createdAt` are as the control plane states them. */
export interface FoundCluster extends Readonly<Stored> {
  readonly organization: { readonly slug: string; readonly name: string };
  readonly provider: { readonly id: number; readonly name: string };
  readonly region: string;
  readonly machine: Pick<
    FoundMachine,
    'id' | 'name' | 'cpu' | 'ram' | 'ramUnit' | 'orderableUntil' | 'retiresAt'
  >;
  /** When it was last changed or added; null if that change is deleted. */
  readonly changedAt: string | null;
}

export type FoundClusters = Page<FoundCluster>;

export async function searchClusters(db: Database, search: ClusterSearch): Promise<FoundClusters> {
  const { sort, descending, limit, offset } = search;
  const order = sql.raw(directed(ORDERS[sort], descending));
  const [rows, [counted]] = await Promise.all([
    // The inner statement finds the page by the columns of its order. The outer one reads the rest for its rows only.
    db.execute<RowOf<FoundCluster>>(sql`
      with f as (
        select c.id from clusters c ${joinOfOrder(search)} where ${conditions(search)}
        order by ${order} limit ${limit} offset ${offset}
      )
      select ${fields()} from f join clusters c on c.id = f.id ${places()} ${machineAndChange()}
      order by ${order}`),
    db.execute<RowOf<{ total: number }>>(
      sql`select count(*)::int as total from clusters c where ${conditions(search)}`,
    ),
  ]);
  return { rows, total: counted?.total ?? 0 };
}

type Disk = Pick<typeof disks.$inferSelect, 'size' | 'unit' | 'autoscaling'>;
type DiskType = Pick<
  typeof diskTypes.$inferSelect,
  'name' | 'sourceAmount' | 'sourcePer' | 'sourceCurrency'
> & {
  /** The unit that the price is for. */
  readonly pricedUnit: 'GB' | 'GiB';
};

export interface ClusterDetails extends FoundCluster {
  readonly organizationId: number;
  readonly source: string;
  /** The cluster's id at its source. */
  readonly key: string;
  readonly regionName: string;
  readonly user: string;
  readonly disks: readonly Readonly<Disk & DiskType>[];
  readonly missedRuns: number;
  /** Freshness of its source; null without a good run. */
  readonly verifiedAt: string | null;
}

export async function clusterDetails(db: Database, id: number): Promise<ClusterDetails | undefined> {
  const [row] = await db.execute<RowOf<ClusterDetails>>(sql`
    select ${fields()}, c.organization_id as "organizationId", c.source_id as source, c.source_key as key, r.name as "regionName",
      trim(u.first_name || ' ' || u.last_name) as user, c.missed_runs as "missedRuns",
      (select coalesce(json_agg(json_build_object('name', t.name, 'size', k.size, 'unit', k.unit,
          'autoscaling', k.autoscaling, 'sourceAmount', trim_scale(t.source_amount)::text, 'sourcePer', t.source_per,
          'sourceCurrency', t.source_currency, 'pricedUnit', case t.unit when 'Binary' then 'GiB' else 'GB' end) order by k.position), '[]')
        from disks k join disk_types t on t.organization_id = k.organization_id and t.id = k.disk_type_id
        where k.organization_id = c.organization_id and k.cluster_id = c.id) as disks,
      ${rfc3339(sql`s.verified_at`)} as "verifiedAt"
    from clusters c ${places()} ${machineAndChange()} join sources s on s.id = c.source_id
    join users u on u.organization_id = c.organization_id and u.id = c.user_id
    where c.id = ${id}`);
  return row;
}

/** Values of the filters, from clusters that are not retired. */
export interface ClusterTerms {
  readonly providers: readonly { readonly id: number; readonly name: string }[];
  readonly statuses: readonly string[];
  /** The versions of each engine by number. */
  readonly engines: readonly { readonly engine: string; readonly versions: readonly string[] }[];
}

const MOST_STATUSES = 200;
const MOST_VERSIONS = 2000;

export async function clusterTerms(db: Database): Promise<ClusterTerms> {
  const [providers, statuses, versions] = await Promise.all([
    db.execute<RowOf<{ id: number; name: string }>>(sql`
      select p.id, p.name from providers p
      where exists (select from regions r join clusters c on c.region_id = r.id
        where r.provider_id = p.id and c.retired_at is null)
      order by p.name collate "C"`),
    db.execute<RowOf<{ status: string }>>(sql`
      select status from clusters where retired_at is null group by 1 order by status collate "C" limit ${MOST_STATUSES}`),
    db.execute<RowOf<{ engine: string; version: string | null }>>(sql`
      select engine, version from clusters where retired_at is null and engine is not null group by 1, 2
      order by engine collate "C", version collate "C" limit ${MOST_VERSIONS}`),
  ]);
  const engines = [...Map.groupBy(versions, ({ engine }) => engine)].map(([engine, rows]) => ({
    engine,
    versions: rows.flatMap(({ version }) => version ?? []).toSorted(compareVersions),
  }));
  return { providers, statuses: statuses.map(({ status }) => status), engines };
}

const places = () => sql`
  join organizations o on o.id = c.organization_id join regions r on r.id = c.region_id
  join providers p on p.id = r.provider_id`;

function machineAndChange() {
  return sql`
    join machines m on m.id = c.machine_id
    left join lateral (
      select greatest(
        (select x.changed_at from cluster_changes x
          where x.organization_id = c.organization_id and x.cluster_id = c.id order by x.id desc limit 1),
        (select n.changed_at from sync_runs n where n.id = c.added_by)) as changed_at
    ) h on true`;
}

function fields() {
  return sql`
    c.id, c.name, c.slug, json_build_object('slug', o.slug, 'name', o.name) as organization,
    json_build_object('id', p.id, 'name', p.name) as provider, r.code as region,
    json_build_object('id', m.id, 'name', m.name, 'cpu', m.cpu, 'ram', m.ram::float, 'ramUnit', m.ram_unit,
      'orderableUntil', ${rfc3339(sql`m.orderable_until`)}, 'retiresAt', ${rfc3339(sql`m.retires_at`)}) as machine,
    c.status, c.shards, c.replicas, c.engine, c.version, c.end_of_life::text as "endOfLife", to_char(c.created_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "createdAt",
    ${rfc3339(sql`h.changed_at`)} as "changedAt", ${rfc3339(sql`c.retired_at`)} as "retiredAt"`;
}

function joinOfOrder({ sort }: ClusterSearch) {
  if (sort === 'organization') return sql`join organizations o on o.id = c.organization_id`;
  if (sort !== 'provider') return sql``;
  return sql`join regions r on r.id = c.region_id join providers p on p.id = r.provider_id`;
}

/** Conditions on clusters `c`. Subqueries find the organizations and regions first, since they are fewer. */
function conditions({ text, organization, providerId, status, engine, version, retired }: ClusterSearch) {
  const isRetired = { no: sql`c.retired_at is null`, yes: sql`c.retired_at is not null`, all: sql`true` };
  const search = text?.toLowerCase() ?? '';
  const holds = (column: string) => sql`strpos(lower(${sql.raw(column)}), ${search}) > 0`;
  return sql`${isRetired[retired]}
    ${organization === undefined ? sql`` : sql`and c.organization_id = (select o.id from organizations o where o.slug = ${organization})`}
    ${providerId === undefined ? sql`` : sql`and c.region_id in (select r.id from regions r where r.provider_id = ${providerId})`}
    ${status === undefined ? sql`` : sql`and c.status = ${status}`}
    ${engine === undefined ? sql`` : sql`and c.engine = ${engine}`}
    ${version === undefined ? sql`` : sql`and c.version = ${version}`}
    ${
      search === ''
        ? sql``
        : sql`and (strpos(c.slug, ${search}) > 0 or ${holds('c.name')} or c.organization_id in (
            select o.id from organizations o where strpos(o.slug, ${search}) > 0 or ${holds('o.name')}))`
    }`;
}

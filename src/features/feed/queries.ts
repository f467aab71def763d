/** Statements of readers about the changes feed. */
import type { Sql } from '../../db/connection/client.ts';
import { instant } from '../../db/connection/instant-text.ts';
import {
  CLUSTER_JSON,
  IS_PUBLISHED_OR_SOLD_OUT,
  JOIN_OF_CLUSTER,
  MACHINE_JSON,
} from '../../db/shown-rows.ts';

/** The state of the feed. */
export interface FeedHead {
  readonly lineage: string;
  /** Of its prices; null while the database does not know it. */
  readonly currency: string | null;
  /** Of the newest change. */
  readonly position: number;
  /** Changes up to this position are deleted. */
  readonly pruned: number;
  /** Encrypts cursors: a UUID. */
  readonly cursorKey: string;
}

/** One change. It shows the current state of its machine or cluster. A later change follows as its own row. */
export interface FeedRow {
  readonly position: number;
  /** RFC 3339, with microseconds. */
  readonly at: string;
  readonly kind: string;
  readonly machineId: number | null;
  readonly providerId: number | null;
  readonly regionId: number | null;
  /** Of a machine: the price that the feed stated before this change, and with it. */
  readonly before: string | null;
  readonly after: string | null;
  readonly slug: string | null;
  /** The cluster, or `{isSoldOut, machine}`, as JSON; null if it is not shown any more. */
  readonly shown: string | null;
}

export interface FeedPage {
  readonly head: FeedHead;
  readonly rows: readonly FeedRow[];
  /** Organizations with cluster changes behind `after`, up to the head. Empty unless requested. */
  readonly organizations: readonly number[];
  readonly next: number;
  readonly more: boolean;
}

export interface FeedQuestion {
  /** The organization of cluster changes; undefined for changes of the catalogue. */
  readonly organizationId: number | undefined;
  readonly after: number;
  /** Changes up to this position; all of them unless given. */
  readonly upTo?: number;
  readonly limit: number;
  readonly withOrganizations?: boolean;
}

/** The head, and one change or none. `place` is the position of the change. */
type PageRow = FeedHead &
  Omit<FeedRow, 'position'> & {
    readonly place: number | null;
    readonly organizations: readonly number[] | null;
  };

/** @param seconds how much older than now a list may be that a client reads */
export async function readFeedStart(sql: Sql, seconds: number): Promise<FeedHead & { start: number }> {
  const rows = await sql<(FeedHead & { start: number })[]>`
    select ${columnsOfHead(sql)},
      coalesce((select min(last - count) from feed_changes where at > now() - ${seconds} * interval '1 second'),
        h.position)::float8 as start
    from ${placeOfFeed(sql)}`;
  const head = headOf(rows);
  return { ...head, start: Math.max(head.pruned, rows[0]?.start ?? 0) };
}

export async function readFeedPage(sql: Sql, question: FeedQuestion): Promise<FeedPage> {
  const { organizationId, after, upTo = Number.MAX_SAFE_INTEGER, limit, withOrganizations } = question;
  const [, found] = await sql.begin('read only', (tx) => [
    tx`select set_config('app.org_id', ${organizationId === undefined ? '' : String(organizationId)}, true)`,
    tx<PageRow[]>`
      with parts as materialized (
        select f.*, sum(f.count) over (order by f.last) - f.count as ahead from (
          select * from feed_changes where ${ofScope(sql, organizationId)} and last > ${after} and last <= ${upTo}
          order by last limit ${limit + 1}
        ) f
      ), changes as materialized (
        select p.last - p.count + c.nth as position, p.at, p.region_id, p.organization_id, c.*
        from parts p cross join lateral unnest(p.kinds, p.machine_ids, p.before, p.after, p.slugs)
          with ordinality c (kind, machine_id, before, after, slug, nth)
        -- Most of the first part may be before the cursor.
        where p.ahead <= ${limit} + (select count from parts order by last limit 1)
          and p.last - p.count + c.nth > ${after}
        order by 1 limit ${limit + 1}
      )
      select ${columnsOfHead(sql)}, touched.organizations, change.position::float8 as place, change.kind,
        ${instant(sql, 'change.at', 'us')} as at,
        change.machine_id as "machineId", r.provider_id as "providerId", change.region_id as "regionId",
        change.before, change.after, change.slug,
        -- A subquery for each row: the plan of a join with a large catalogue is unpredictable.
        (${organizationId === undefined ? machineOf(sql) : clusterOf(sql)})::text as shown
      from ${placeOfFeed(sql)}
      cross join lateral (${withOrganizations ? touchedBehind(sql, after) : sql`select null::int[] as organizations`}) touched
      left join changes change on true
      left join regions r on r.id = change.region_id
      order by change.position`,
  ]);
  const head = headOf(found);
  const organizations = found[0]?.organizations ?? [];
  const rows: FeedRow[] = found.flatMap(({ place, ...row }) =>
    place === null ? [] : [{ ...row, position: place }],
  );
  const more = rows.length > limit;
  if (more) rows.pop();
  const next = more ? (rows.at(-1)?.position ?? after) : Math.max(after, Math.min(upTo, head.position));
  return { head, rows, organizations, next, more };
}

/** The limits state that both tables have one row: without statistics, PostgreSQL expects thousands. */
const placeOfFeed = (sql: Sql) =>
  sql`(select * from feed_head limit 1) h cross join (select * from lineage limit 1) l`;

const columnsOfHead = (sql: Sql) =>
  sql`l.id as lineage, l.currency, h.position::float8 as position, h.pruned::float8 as pruned, h.cursor_key as "cursorKey"`;

function headOf([row]: readonly FeedHead[]): FeedHead {
  if (!row) throw new Error('the database has no feed; run `fleetbook migrate`');
  return row;
}

const touchedBehind = (sql: Sql, after: number) => sql`
  select array_agg(id) as organizations from feed_organizations(${after}, h.position) id`;

const ofScope = (sql: Sql, organizationId: number | undefined) =>
  organizationId === undefined ? sql`organization_id is null` : sql`organization_id = ${organizationId}`;

const machineOf = (sql: Sql) => sql`
  select json_build_object('isSoldOut', m.excluded_reason is not null, 'machine', ${sql.unsafe(MACHINE_JSON)})
  from machines m join regions r on r.id = m.region_id
  join providers p on p.id = r.provider_id
  where m.id = change.machine_id and ${sql.unsafe(IS_PUBLISHED_OR_SOLD_OUT)}`;

const clusterOf = (sql: Sql) => sql`
  select ${sql.unsafe(CLUSTER_JSON)} from clusters c ${sql.unsafe(JOIN_OF_CLUSTER)}
  where c.organization_id = change.organization_id and c.slug = change.slug and c.retired_at is null`;

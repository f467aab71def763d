/** What readers read of the changes feed. */
import type { Sql } from '../../db/connection/client.ts';
import {
  CLUSTER_JSON,
  IS_PUBLISHED_OR_SOLD_OUT,
  JOIN_OF_CLUSTER,
  MACHINE_JSON,
} from '../../db/shown-rows.ts';

/** Where the feed is. */
export interface FeedHead {
  readonly lineage: string;
  /** Of the prices that it shows; null while the database does not know it. */
  readonly currency: string | null;
  /** Of the newest change. */
  readonly position: number;
  /** Changes up to this position are not kept any more. */
  readonly pruned: number;
  /** Encrypts cursors: a UUID. */
  readonly cursorKey: string;
}

/** One change. What it is about is as it is now: what has changed since then follows as a change of its own. */
export interface FeedRow {
  readonly position: number;
  /** RFC 3339, with microseconds. */
  readonly at: string;
  readonly kind: string;
  readonly machineId: number | null;
  readonly providerId: number | null;
  readonly regionId: number | null;
  /** Of a machine: the prices that were told before, and then. */
  readonly before: string | null;
  readonly after: string | null;
  readonly slug: string | null;
  /** The cluster, or the machine with whether it is sold out, as JSON; null for one that is not shown any more. */
  readonly shown: string | null;
}

export interface FeedPage {
  readonly head: FeedHead;
  readonly rows: readonly FeedRow[];
  /** Organizations with cluster changes behind `after`, up to the head. Empty unless the question includes them. */
  readonly organizations: readonly number[];
  /** Where the next page begins: behind the last row, or behind everything that there was. */
  readonly next: number;
  readonly more: boolean;
}

export interface FeedQuestion {
  /** Whose clusters; undefined for the changes that concern everybody. */
  readonly organizationId: number | undefined;
  readonly after: number;
  /** Changes up to this position; all of them unless given. */
  readonly upTo?: number;
  readonly limit: number;
  /** True to read in the same snapshot which organizations have cluster changes behind `after`. */
  readonly withOrganizations?: boolean;
}

/** The head as a statement gives it. */
interface HeadRow {
  readonly lineage: string;
  readonly currency: string | null;
  readonly head: string;
  readonly pruned: string;
  readonly cursorKey: string;
}

/** A row of a page: the head, and one change or none. */
type PageRow = Omit<FeedRow, 'position'> &
  HeadRow & { readonly position: string | null; readonly organizations: readonly number[] | null };

/**
 * Where somebody begins who is about to read the lists: a little before now, since a list that is read after this may be
 * that much older.
 * @param seconds how much older
 */
export async function readFeedStart(sql: Sql, seconds: number): Promise<FeedHead & { start: number }> {
  const rows = await sql<(HeadRow & { start: string })[]>`
    select ${columnsOfHead(sql)},
      coalesce((select min(last - count) from feed_changes where at > now() - ${seconds} * interval '1 second'),
        h.position) as start
    from ${placeOfFeed(sql)}`;
  const head = headOf(rows);
  return { ...head, start: Math.max(head.pruned, Number(rows[0]?.start)) };
}

/** Changes in their order, and where the feed is, in one statement. */
export async function readFeedPage(sql: Sql, question: FeedQuestion): Promise<FeedPage> {
  const { organizationId, after, upTo = Number.MAX_SAFE_INTEGER, limit, withOrganizations } = question;
  const [, found] = await sql.begin('read only', (tx) => [
    tx`select set_config('app.org_id', ${organizationId === undefined ? '' : String(organizationId)}, true)`,
    tx<PageRow[]>`
      with parts as materialized (
        select f.*, sum(f.count) over (order by f.last) - f.count as ahead from (
          select * from feed_changes where ${whose(sql, organizationId)} and last > ${after} and last <= ${upTo}
          order by last limit ${limit + 1}
        ) f
      ), changes as materialized (
        select p.last - p.count + c.nth as position, p.at, p.region_id, p.organization_id, c.*
        from parts p cross join lateral unnest(p.kinds, p.machine_ids, p.before, p.after, p.slugs)
          with ordinality c (kind, machine_id, before, after, slug, nth)
        -- The first part may lie before the cursor for the most part.
        where p.ahead <= ${limit} + (select count from parts order by last limit 1)
          and p.last - p.count + c.nth > ${after}
        order by 1 limit ${limit + 1}
      )
      select ${columnsOfHead(sql)}, touched.organizations, asked.position, asked.kind,
        to_char(asked.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at,
        asked.machine_id as "machineId", r.provider_id as "providerId", asked.region_id as "regionId",
        asked.before, asked.after, asked.slug,
        -- Looked up one by one: what a planner makes of a join to a large catalogue is not to be foreseen.
        (${organizationId === undefined ? machineOf(sql) : clusterOf(sql)})::text as shown
      from ${placeOfFeed(sql)}
      cross join lateral (${withOrganizations ? touchedBehind(sql, after) : sql`select null::int[] as organizations`}) touched
      left join changes asked on true
      left join regions r on r.id = asked.region_id
      order by asked.position`,
  ]);
  const head = headOf(found);
  const organizations = found[0]?.organizations ?? [];
  const rows: FeedRow[] = found.flatMap(({ position, ...row }) =>
    position === null ? [] : [{ ...row, position: Number(position) }],
  );
  const more = rows.length > limit;
  if (more) rows.pop();
  const next = more ? (rows.at(-1)?.position ?? after) : Math.max(after, Math.min(upTo, head.position));
  return { head, rows, organizations, next, more };
}

/**
 * Both tables have one row. PostgreSQL expects thousands of rows in a table without statistics, and millions in a join of
 * two. The limits state the number.
 */
const placeOfFeed = (sql: Sql) =>
  sql`(select * from feed_head limit 1) h cross join (select * from lineage limit 1) l`;

const columnsOfHead = (sql: Sql) =>
  sql`l.id as lineage, l.currency, h.position as head, h.pruned, h.cursor_key as "cursorKey"`;

function headOf([row]: readonly HeadRow[]): FeedHead {
  if (!row) throw new Error('the database has no feed; run `fleetbook migrate`');
  const { lineage, currency, head, pruned, cursorKey } = row;
  return { lineage, currency, position: Number(head), pruned: Number(pruned), cursorKey };
}

const touchedBehind = (sql: Sql, after: number) => sql`
  select array_agg(id) as organizations from feed_organizations(${after}, h.position) id`;

const whose = (sql: Sql, organizationId: number | undefined) =>
  organizationId === undefined ? sql`organization_id is null` : sql`organization_id = ${organizationId}`;

const machineOf = (sql: Sql) => sql`
  select json_build_object('isSoldOut', m.excluded_reason is not null, 'machine', ${sql.unsafe(MACHINE_JSON)})
  from machines m join regions r on r.id = m.region_id
  join providers p on p.id = r.provider_id
  where m.id = asked.machine_id and ${sql.unsafe(IS_PUBLISHED_OR_SOLD_OUT)}`;

const clusterOf = (sql: Sql) => sql`
  select ${sql.unsafe(CLUSTER_JSON)} from clusters c ${sql.unsafe(JOIN_OF_CLUSTER)}
  where c.organization_id = asked.organization_id and c.slug = asked.slug and c.retired_at is null`;

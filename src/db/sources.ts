/** Sources with their state and the freshness of their regions. */
import type { Counted, Disabling, Pause } from '../domain/source.ts';
import type { Sql } from './connection/client.ts';
import type { Database } from './connection/connect.ts';
import { isNull } from './connection/drizzle.ts';
import { instant } from './connection/instant-text.ts';
import type { Page } from './connection/statements.ts';
import { type RunStatus, statusFields } from './runs/status.ts';
import { lineage, type sources } from './schema.ts';
import { IS_PUBLISHED } from './shown-rows.ts';

type Row = Pick<
  typeof sources.$inferSelect,
  'id' | 'kind' | 'adapter' | 'registeredAt' | 'verifiedAt' | 'retiredAt'
>;

export interface StoredSource extends Readonly<Row> {
  readonly disabled: Disabling | null;
}

export async function storedSources(sql: Sql): Promise<StoredSource[]> {
  return sql<StoredSource[]>`
    select s.id, s.kind, s.adapter, ${stateColumns(sql)} from sources s order by s.id collate "C"`;
}

const stateColumns = (sql: Sql) => sql`
  ${instant(sql, 's.verified_at')} as "verifiedAt", ${instant(sql, 's.registered_at')} as "registeredAt",
  ${instant(sql, 's.retired_at')} as "retiredAt",
  case when s.disabled_at is not null then json_build_object(
    'at', ${instant(sql, 's.disabled_at')}, 'by', s.disabled_by, 'reason', s.disabled_reason) end as disabled`;

export interface RegionStatus {
  readonly code: string;
  /** Its freshness; null if no run ever read it. Readers do not see such a region. */
  readonly verifiedAt: string | null;
  /** Since when and why runs cannot read it; null if the last good run read it. */
  readonly unreadSince: string | null;
  readonly reason: string | null;
}

export type RegionsPage = Page<RegionStatus>;

/** Returns one page of a source's regions: those that were never read first, then the oldest. */
export async function sourceRegions(
  sql: Sql,
  sourceId: string,
  limit: number | undefined,
  offset = 0,
): Promise<RegionsPage> {
  const rows = await sql<(RegionStatus & { total: number })[]>`
    with regions_of_source as (${regionsOf(sql, sql`${sourceId}`)}), page as (
      select * from regions_of_source order by verified_at nulls first, code collate "C"
      limit ${limit ?? null} offset ${offset}
    )
    select c.total, p.code, ${instant(sql, 'p.verified_at')} as "verifiedAt",
      ${instant(sql, 'p.first_seen_at')} as "unreadSince", p.reason
    from (select count(*)::int as total from regions_of_source) c left join page p on true
    order by p.verified_at nulls first, p.code collate "C"`;
  return {
    total: rows[0]?.total ?? 0,
    rows: rows.filter(({ code }) => code !== null).map(({ total: _, ...region }) => region),
  };
}

/** Selects code, verified_at, first_seen_at and reason of the regions of one source. */
const regionsOf = (sql: Sql, sourceId: ReturnType<Sql>) => sql`
  select coalesce(f.code, u.code) as code, f.verified_at, u.first_seen_at, u.reason
  from (
    select r.code, x.verified_at from region_freshness x join regions r on r.id = x.region_id
    where x.source_id = ${sourceId}
  ) f full join (
    select q.region_code as code, q.first_seen_at, q.reason from quarantined_rows q
    where q.source_id = ${sourceId} and q.code = 'unread_region'
  ) u on u.code = f.code`;

export interface SourceStatus extends Omit<StoredSource, 'adapter'> {
  /** Set while the source is paused. */
  readonly paused: Pause | null;
  /** The outcome is `running` while it runs, and `interrupted` if its process died. */
  readonly lastRun: RunStatus | null;
  /** The last finished run, without superseded and cancelled ones. */
  readonly lastEnded: RunStatus | null;
  readonly regions: readonly RegionStatus[];
  /** What `known` and `published` count. */
  readonly counted: Counted;
  /** Machines or clusters that are not retired, or currencies. Of a catalogue without machines, its plans of databases. */
  readonly known: number;
  /** Of them, those that readers see. */
  readonly published: number;
  readonly quarantined: number;
  readonly held: number;
  readonly heldSince: string | null;
  /** Failed and interrupted runs since the last good one. */
  readonly failedRuns: number;
  /** The end of the first of them, RFC 3339. */
  readonly failingSince: string | null;
}

/** Returns all sources by id, with their last runs and counts of their rows. */
export async function sourceStatus(sql: Sql): Promise<SourceStatus[]> {
  return sql<SourceStatus[]>`
    select s.id, s.kind, ${stateColumns(sql)},
      case when s.paused_until > now() then json_build_object(
        'until', ${instant(sql, 's.paused_until')}, 'reason', s.paused_reason) end as paused,
      (select coalesce(json_agg(json_build_object('code', g.code, 'verifiedAt', ${instant(sql, 'g.verified_at')},
          'unreadSince', ${instant(sql, 'g.first_seen_at')}, 'reason', g.reason) order by g.code collate "C"), '[]')
        from (${regionsOf(sql, sql`s.id`)}) g) as regions,
      (select json_build_object(${statusFields(sql)}) from sync_runs r where r.source_id = s.id order by r.id desc limit 1) as "lastRun",
      (select json_build_object(${statusFields(sql)}) from sync_runs r
        where r.source_id = s.id and r.outcome not in ('running', 'superseded', 'cancelled') order by r.id desc limit 1) as "lastEnded",
      case when s.kind = 'rates' then 'exchange rates' when s.kind = 'clusters' then 'clusters'
        when plans.known > 0 then 'database plans' else 'machines' end as counted,
      case when s.kind = 'rates' then rates.count
        else coalesce(plans.known, machines.known + coalesce(clusters.count, 0)) end as known,
      case when s.kind = 'rates' then rates.count
        else coalesce(plans.published, machines.published + coalesce(clusters.count, 0)) end as published,
      (select count(*)::int from quarantined_rows q where q.source_id = s.id) as quarantined,
      held.count as held, ${instant(sql, 'held.since')} as "heldSince",
      failed.count as "failedRuns", ${instant(sql, 'failed.since')} as "failingSince"
    from sources s cross join (select count(*)::int as count from exchange_rates) rates
    -- A count per source reads only an index. A group by the source's name compares a million names.
    cross join lateral (
      select count(*)::int as known, (count(*) - count(excluded_reason))::int as published
      from machines m where m.source_id = s.id and m.retired_at is null
    ) machines
    cross join lateral (
      select count(*)::int as count, min(h.held_since) as since
      from held_batches h where h.source_id = s.id and h.status = 'pending'
    ) held
    cross join lateral (
      select count(*)::int as count, min(coalesce(r.finished_at, r.started_at)) as since from sync_runs r
      where r.source_id = s.id and r.outcome in ('failed', 'interrupted') and r.id > coalesce((
        select good.id from sync_runs good
        where good.source_id = s.id and good.outcome in ('changed', 'unchanged', 'held')
        order by good.id desc limit 1), 0)
    ) failed
    left join (
      select source_id, count(*)::int as count from clusters where retired_at is null group by source_id
    ) clusters on clusters.source_id = s.id
    left join (
      select source_id, count(*)::int as known, count(price)::int as published from database_plans
      where retired_at is null group by source_id
    ) plans on plans.source_id = s.id and machines.known = 0
    order by s.id collate "C"`;
}

export async function sourceKind(sql: Sql, sourceId: string): Promise<SourceStatus['kind'] | undefined> {
  const [row] = await sql<Pick<SourceStatus, 'kind'>[]>`select kind from sources where id = ${sourceId}`;
  return row?.kind;
}

export async function exampleRegion(sql: Sql): Promise<{ id: number; providerId: number } | undefined> {
  const [row] = await sql<{ id: number; providerId: number }[]>`
    select r.id, r.provider_id as "providerId" from regions r join machines m on m.region_id = r.id
    where ${sql.unsafe(IS_PUBLISHED)} and r.organization_id is null
    group by r.id order by count(*) desc, r.id limit 1`;
  return row;
}

export type Content = 'sample' | 'live';

/** Reserves the database for the sample or for live data; the first use decides. @throws Error for the other kind */
export async function claimContent(db: Database, content: Content): Promise<void> {
  await db.update(lineage).set({ content }).where(isNull(lineage.content));
  const [row] = await db.select({ content: lineage.content }).from(lineage);
  if (row?.content === content) return;
  throw new Error(
    `this database holds ${row?.content === 'sample' ? 'the sample catalogue' : 'live data'} and ${
      content === 'sample' ? 'the sample' : 'live data'
    } must not mix with it; give another database in DATABASE_URL`,
  );
}

/** Sources with their state and the freshness of their regions. */
import type { Counted, Disabling, Pause } from '../domain/source.ts';
import type { Database } from './connection/client.ts';
import { eq, isNull, type SQL, sql } from './connection/drizzle.ts';
import { type Page, type RowOf, rfc3339 } from './connection/statements.ts';
import { IS_PUBLISHED } from './published-rows.ts';
import { type RunStatus, STATUS_FIELDS } from './runs/status.ts';
import {
  clusters,
  databasePlans,
  exchangeRates,
  heldBatches,
  lifecycles,
  lineage,
  machines,
  quarantinedRows,
  regionFreshness,
  regions,
  sources,
  syncRuns,
} from './schema.ts';

type Row = Pick<
  typeof sources.$inferSelect,
  'id' | 'kind' | 'adapter' | 'registeredAt' | 'verifiedAt' | 'retiredAt'
>;

export interface StoredSource extends Readonly<Row> {
  readonly disabled: Disabling | null;
}

export async function storedSources(db: Database): Promise<StoredSource[]> {
  return db.execute<RowOf<StoredSource>>(sql`
    select ${sources.id}, ${sources.kind}, ${sources.adapter}, ${STATE_COLUMNS} from ${sources}
    order by ${sources.id} collate "C"`);
}

const STATE_COLUMNS = sql`
  ${rfc3339(sources.verifiedAt)} as "verifiedAt", ${rfc3339(sources.registeredAt)} as "registeredAt",
  ${rfc3339(sources.retiredAt)} as "retiredAt",
  case when ${sources.disabledAt} is not null then json_build_object(
    'at', ${rfc3339(sources.disabledAt)}, 'by', ${sources.disabledBy}, 'reason', ${sources.disabledReason}) end as disabled`;

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
  db: Database,
  sourceId: string,
  limit: number | undefined,
  offset = 0,
): Promise<RegionsPage> {
  const rows = await db.execute<RowOf<RegionStatus & { total: number }>>(sql`
    with regions_of_source as (${regionsOf(sql`${sourceId}::text`)}), page as (
      select * from regions_of_source order by verified_at nulls first, code collate "C"
      limit ${limit ?? null} offset ${offset}
    )
    select c.total, p.code, ${rfc3339(sql`p.verified_at`)} as "verifiedAt",
      ${rfc3339(sql`p.first_seen_at`)} as "unreadSince", p.reason
    from (select count(*)::int as total from regions_of_source) c left join page p on true
    order by p.verified_at nulls first, p.code collate "C"`);
  return {
    total: rows[0]?.total ?? 0,
    rows: rows.filter(({ code }) => code !== null).map(({ total: _, ...region }) => region),
  };
}

/** Selects code, verified_at, first_seen_at and reason of the regions of one source. */
const regionsOf = (sourceId: SQL) => sql`
  select coalesce(f.code, u.code) as code, f.verified_at, u.first_seen_at, u.reason
  from (
    select ${regions.code} as code, ${regionFreshness.verifiedAt} as verified_at
    from ${regionFreshness} join ${regions} on ${regions.id} = ${regionFreshness.regionId}
    where ${regionFreshness.sourceId} = ${sourceId}
  ) f full join (
    select ${quarantinedRows.regionCode} as code, ${quarantinedRows.firstSeenAt} as first_seen_at, ${quarantinedRows.reason} as reason
    from ${quarantinedRows} where ${quarantinedRows.sourceId} = ${sourceId} and ${quarantinedRows.code} = 'unread_region'
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
export async function sourceStatus(db: Database): Promise<SourceStatus[]> {
  const { id, kind } = sources;
  return db.execute<RowOf<SourceStatus>>(sql`
    select ${id}, ${kind}, ${STATE_COLUMNS},
      case when ${sources.pausedUntil} > now() then json_build_object(
        'until', ${rfc3339(sources.pausedUntil)}, 'reason', ${sources.pausedReason}) end as paused,
      (select coalesce(json_agg(json_build_object('code', g.code, 'verifiedAt', ${rfc3339(sql`g.verified_at`)},
          'unreadSince', ${rfc3339(sql`g.first_seen_at`)}, 'reason', g.reason) order by g.code collate "C"), '[]')
        from (${regionsOf(sql`${id}`)}) g) as regions,
      (select json_build_object(${sql.raw(STATUS_FIELDS)}) from ${syncRuns} r
        where r.source_id = ${id} order by r.id desc limit 1) as "lastRun",
      (select json_build_object(${sql.raw(STATUS_FIELDS)}) from ${syncRuns} r
        where r.source_id = ${id} and r.outcome not in ('running', 'superseded', 'cancelled') order by r.id desc limit 1) as "lastEnded",
      case when ${kind} = 'rates' then 'exchange rates' when ${kind} = 'clusters' then 'clusters'
        when ${kind} = 'lifecycles' then 'release cycles'
        when of_plans.known > 0 then 'database plans' else 'machines' end as counted,
      case when ${kind} = 'rates' then of_rates.count when ${kind} = 'lifecycles' then of_cycles.count
        else coalesce(of_plans.known, of_machines.known + coalesce(of_clusters.count, 0)) end as known,
      case when ${kind} = 'rates' then of_rates.count when ${kind} = 'lifecycles' then of_cycles.count
        else coalesce(of_plans.published, of_machines.published + coalesce(of_clusters.count, 0)) end as published,
      (select count(*)::int from ${quarantinedRows} where ${quarantinedRows.sourceId} = ${id}) as quarantined,
      held.count as held, ${rfc3339(sql`held.since`)} as "heldSince",
      failed.count as "failedRuns", ${rfc3339(sql`failed.since`)} as "failingSince"
    from ${sources} cross join (select count(*)::int as count from ${exchangeRates}) of_rates
    -- A count per source reads only an index. A group by the source's name compares a million names.
    cross join lateral (
      select count(*)::int as known, (count(*) - count(${machines.excludedReason}))::int as published
      from ${machines} where ${machines.sourceId} = ${id} and ${machines.retiredAt} is null
    ) of_machines
    cross join lateral (
      select count(*)::int as count from ${lifecycles} where ${lifecycles.sourceId} = ${id}
    ) of_cycles
    cross join lateral (
      select count(*)::int as count, min(${heldBatches.heldSince}) as since
      from ${heldBatches} where ${heldBatches.sourceId} = ${id} and ${heldBatches.status} = 'pending'
    ) held
    cross join lateral (
      select count(*)::int as count, min(coalesce(r.finished_at, r.started_at)) as since from ${syncRuns} r
      where r.source_id = ${id} and r.outcome in ('failed', 'interrupted') and r.id > coalesce((
        select good.id from ${syncRuns} good
        where good.source_id = ${id} and good.outcome in ('changed', 'unchanged', 'held')
        order by good.id desc limit 1), 0)
    ) failed
    left join (
      select ${clusters.sourceId} as source, count(*)::int as count from ${clusters} where ${clusters.retiredAt} is null group by 1
    ) of_clusters on of_clusters.source = ${id}
    left join (
      select ${databasePlans.sourceId} as source, count(*)::int as known, count(${databasePlans.price})::int as published
      from ${databasePlans} where ${databasePlans.retiredAt} is null group by 1
    ) of_plans on of_plans.source = ${id} and of_machines.known = 0
    order by ${id} collate "C"`);
}

export async function sourceKind(db: Database, sourceId: string): Promise<SourceStatus['kind'] | undefined> {
  const [row] = await db.select({ kind: sources.kind }).from(sources).where(eq(sources.id, sourceId));
  return row?.kind;
}

export async function exampleRegion(db: Database): Promise<{ id: number; providerId: number } | undefined> {
  const [row] = await db.execute<{ id: number; providerId: number }>(sql`
    select r.id, r.provider_id as "providerId" from ${regions} r join ${machines} m on m.region_id = r.id
    where ${sql.raw(IS_PUBLISHED)} and r.organization_id is null
    group by r.id order by count(*) desc, r.id limit 1`);
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

/** Which sources are stored, and how fresh their regions are. */
import type { Disabling } from '../domain/disabled-source.ts';
import type { Sql } from './connection/client.ts';
import type { Database } from './connection/connect.ts';
import { isNull } from './connection/drizzle.ts';
import { INTERRUPTED, IS_UNDER_WAY } from './runs.ts';
import { lineage } from './schema.ts';
import { IS_PUBLISHED } from './shown-rows.ts';

/** A source as it is stored, without what has to be counted. Times are RFC 3339. */
export interface StoredSource {
  readonly id: string;
  readonly kind: 'catalogue' | 'clusters' | 'rates';
  readonly adapter: string;
  /** When it was first known. */
  readonly registeredAt: string;
  /** When its last good run began to read; null for one that never succeeded. */
  readonly verifiedAt: string | null;
  /** When an operator took its data out of publication. */
  readonly retiredAt: string | null;
  /** That an operator has disabled it. */
  readonly disabled: Disabling | null;
}

/** Every source that was ever known, in the order of their ids. */
export async function storedSources(sql: Sql): Promise<StoredSource[]> {
  return sql<StoredSource[]>`
    select id, kind, adapter,
      to_char(registered_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "registeredAt",
      to_char(verified_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "verifiedAt",
      to_char(retired_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "retiredAt",
      case when disabled_at is not null then json_build_object(
        'at', to_char(disabled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        'by', disabled_by, 'reason', disabled_reason) end as disabled
    from sources order by id collate "C"`;
}

export interface RegionsPage {
  readonly total: number;
  readonly rows: readonly RegionStatus[];
}

/**
 * The freshness of a source's regions: first those that were never read, then the oldest.
 * @param limit of the rows; undefined for all of them
 */
export async function sourceRegions(
  sql: Sql,
  sourceId: string,
  limit: number | undefined,
  offset = 0,
): Promise<RegionsPage> {
  const rows = await sql<(RegionStatus & { total: number })[]>`
    with fresh as (
      select r.code, f.verified_at from region_freshness f join regions r on r.id = f.region_id
      where f.source_id = ${sourceId}
    ), unread as (
      select region_code as code, first_seen_at, reason from quarantined_rows
      where source_id = ${sourceId} and code = 'unread_region'
    ), all_of_it as (
      select coalesce(f.code, u.code) as code, f.verified_at, u.first_seen_at, u.reason
      from fresh f full join unread u on u.code = f.code
    ), page as (
      select * from all_of_it order by verified_at nulls first, code collate "C"
      limit ${limit ?? null} offset ${offset}
    )
    select c.total, p.code,
      to_char(p.verified_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "verifiedAt",
      to_char(p.first_seen_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "unreadSince", p.reason
    from (select count(*)::int as total from all_of_it) c left join page p on true
    order by p.verified_at nulls first, p.code collate "C"`;
  return {
    total: rows[0]?.total ?? 0,
    rows: rows
      .filter(({ code }) => code !== null)
      .map(({ code, verifiedAt, unreadSince, reason }) => ({ code, verifiedAt, unreadSince, reason })),
  };
}

export interface RunStatus {
  readonly startedAt: string;
  readonly finishedAt: string | null;
  readonly outcome: string;
  readonly seen: number | null;
  readonly added: number | null;
  readonly changed: number | null;
  readonly retired: number | null;
  readonly rejected: number | null;
  readonly withdrawn: number | null;
  readonly error: string | null;
}

/** A region of a catalogue: one that was read, or that its source lists and that could not be read yet. */
export interface RegionStatus {
  readonly code: string;
  /** How old its data is, RFC 3339; null for one that was never read well: readers do not see it. */
  readonly verifiedAt: string | null;
  /** Since when it cannot be read, RFC 3339, and why; null when the last good run has read it. */
  readonly unreadSince: string | null;
  readonly reason: string | null;
}

export interface SourceStatus {
  readonly id: string;
  readonly kind: 'catalogue' | 'clusters' | 'rates';
  /** `running`, or how it ended; `interrupted` when the process that ran it is gone. */
  readonly lastRun: RunStatus | null;
  /** The newest run that came to an end of its own: while the last run is under way, what is known until then. */
  readonly lastEnded: RunStatus | null;
  /** RFC 3339; null for a source that never succeeded. */
  readonly verifiedAt: string | null;
  /** When it was first known, RFC 3339. */
  readonly registeredAt: string;
  /** When an operator took its data out of publication, RFC 3339. */
  readonly retiredAt: string | null;
  /** That an operator has disabled it: nothing reads it until it is enabled. */
  readonly disabled: Disabling | null;
  /** Of a catalogue, by code. */
  readonly regions: readonly RegionStatus[];
  /** Machines or clusters that are not retired, or currencies. */
  readonly known: number;
  /** Of those, the ones that readers see. */
  readonly published: number;
  readonly quarantined: number;
  readonly held: number;
}

/** Every source that ever ran, with its last run and what it brought. */
export async function sourceStatus(sql: Sql): Promise<SourceStatus[]> {
  return sql<SourceStatus[]>`
    select s.id, s.kind,
      to_char(s.verified_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "verifiedAt",
      to_char(s.registered_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "registeredAt",
      to_char(s.retired_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "retiredAt",
      case when s.disabled_at is not null then json_build_object(
        'at', to_char(s.disabled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        'by', s.disabled_by, 'reason', s.disabled_reason) end as disabled,
      (select coalesce(json_agg(json_build_object(
          'code', coalesce(f.code, u.code),
          'verifiedAt', to_char(f.verified_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
          'unreadSince', to_char(u.first_seen_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
          'reason', u.reason) order by coalesce(f.code, u.code) collate "C"), '[]')
        from (
          select r.code, f.verified_at from region_freshness f join regions r on r.id = f.region_id
          where f.source_id = s.id
        ) f
        full join (
          select q.region_code as code, q.first_seen_at, q.reason from quarantined_rows q
          where q.source_id = s.id and q.code = 'unread_region'
        ) u on u.code = f.code) as regions,
      (select ${runStatus(sql)} from sync_runs r where r.source_id = s.id order by r.id desc limit 1) as "lastRun",
      (select ${runStatus(sql)} from sync_runs r
        where r.source_id = s.id and r.outcome not in ('running', 'superseded', 'cancelled') order by r.id desc limit 1) as "lastEnded",
      case s.kind
        when 'rates' then (select count(*)::int from exchange_rates)
        else coalesce(counted.known, 0) end as known,
      case s.kind
        when 'rates' then (select count(*)::int from exchange_rates)
        else coalesce(counted.published, 0) end as published,
      (select count(*)::int from quarantined_rows q where q.source_id = s.id) as quarantined,
      (select count(*)::int from held_batches h where h.source_id = s.id and h.status = 'pending') as held
    from sources s
    -- In one pass for all sources: looking for the rows of each took seconds where there are a million.
    left join (
      select source_id, count(*)::int as known, count(*) filter (where excluded_reason is null)::int as published
      from machines where retired_at is null group by source_id
      union all
      select source_id, count(*)::int, count(*)::int from clusters where retired_at is null group by source_id
    ) counted on counted.source_id = s.id
    order by s.id collate "C"`;
}

/** A run `r`. One that is recorded as running, and that no process runs, was interrupted. */
function runStatus(sql: Sql) {
  const isInterrupted = sql`r.outcome = 'running' and not ${sql.unsafe(IS_UNDER_WAY)}`;
  return sql`json_build_object(
    'startedAt', to_char(r.started_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    'finishedAt', to_char(r.finished_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    'outcome', case when ${isInterrupted} then 'interrupted' else r.outcome end,
    'seen', r.seen, 'added', r.added, 'changed', r.changed, 'retired', r.retired, 'rejected', r.rejected, 'withdrawn', r.withdrawn,
    'error', case when ${isInterrupted} then ${INTERRUPTED} else r.error end)`;
}

/** Undefined for a source that never ran. */
export async function sourceKind(sql: Sql, sourceId: string): Promise<SourceStatus['kind'] | undefined> {
  const [row] = await sql<Pick<SourceStatus, 'kind'>[]>`select kind from sources where id = ${sourceId}`;
  return row?.kind;
}

/** How many rows the last good run of a source saw. */
export async function lastSeen(sql: Sql, sourceId: string): Promise<number | undefined> {
  const [row] = await sql<{ seen: number | null }[]>`
    select seen from sync_runs where source_id = ${sourceId} and outcome in ('changed', 'unchanged')
    order by id desc limit 1`;
  return row?.seen ?? undefined;
}

/** A region that has machines to show: the one with the most. */
export async function exampleRegion(sql: Sql): Promise<{ id: number; providerId: number } | undefined> {
  const [row] = await sql<{ id: number; providerId: number }[]>`
    select r.id, r.provider_id as "providerId" from regions r join machines m on m.region_id = r.id
    where ${sql.unsafe(IS_PUBLISHED)} and r.organization_id is null
    group by r.id order by count(*) desc, r.id limit 1`;
  return row;
}

export type Content = 'sample' | 'live';

/**
 * Claims the database for the sample or for live data; the first use decides for good.
 * @throws Error that says what to do when it holds the other kind.
 */
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

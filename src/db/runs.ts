/** The runs of a source, for operators. What a run changed is in changes.ts. */

import type { Naming, RateChange } from '../domain/changes.ts';
import type { ReasonGroup } from '../domain/rejected-rows.ts';
import type { Caused, RunRequests } from '../domain/run.ts';
import type { Sql } from './connection/client.ts';

/** The advisory lock that marks a run as under way, see sync/live-runs.ts. @param id as SQL */
export const markOf = (id: string): string => `hashtextextended('fleetbook run ' || ${id}, 0)`;

/** Of a run `r` that is recorded as running: whether some process has marked it as under way. */
export const IS_UNDER_WAY = `exists (
  select from pg_locks l
  where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and (l.classid::bigint << 32 | l.objid::bigint) = ${markOf('r.id')})`;

/** The error of a run whose process ended early. */
export const INTERRUPTED = 'interrupted: the process that ran it ended before it was done';

/** One run with what came of it; times in RFC 3339. */
export interface RunRecord extends Caused {
  readonly id: number;
  readonly sourceId: string;
  readonly kind: 'catalogue' | 'clusters' | 'rates';
  /** The slot of the schedule that asked for it; null for a run that none asked for. */
  readonly slot: string | null;
  readonly startedAt: string;
  readonly finishedAt: string | null;
  /** `running`, or how it ended. */
  readonly outcome:
    | 'running'
    | 'changed'
    | 'unchanged'
    | 'held'
    | 'failed'
    | 'superseded'
    | 'interrupted'
    | 'cancelled';
  /** Rows, counted; null while it runs and where it failed. */
  readonly seen: number | null;
  readonly added: number | null;
  readonly changed: number | null;
  readonly retired: number | null;
  readonly rejected: number | null;
  readonly withdrawn: number | null;
  readonly error: string | null;
  /** When what it changed took effect; null for one that changed nothing, and where that is not kept (any more). */
  readonly changedAt: string | null;
  /** Names that it changed. */
  readonly namings: readonly Naming[];
  /** Exchange rates that it changed, by currency. */
  readonly rates: readonly RateChange[];
  /** Why rows could not be used, the most frequent reasons first; none of a run that failed, or of an earlier release. */
  readonly reasons: readonly ReasonGroup[];
  /** The batch that it held; an identical read keeps the batch that waits. */
  readonly heldBatch: number | null;
  /** What it carried out of an operator's decision. */
  readonly decision: {
    readonly kind: 'approve' | 'undo';
    readonly batch: number;
    readonly by: string | null;
    readonly reason: string | null;
  } | null;
}

/** The runs of the same source before and after a run; null at either end. */
export interface RunNeighbours {
  readonly previous: number | null;
  readonly next: number | null;
}

export async function runNeighbours(sql: Sql, { id, sourceId }: RunRecord): Promise<RunNeighbours> {
  const [row] = await sql<RunNeighbours[]>`
    select (select max(id)::float from sync_runs where source_id = ${sourceId} and id < ${id}) as previous,
      (select min(id)::float from sync_runs where source_id = ${sourceId} and id > ${id}) as next`;
  return row ?? { previous: null, next: null };
}

export interface RunPage {
  /** How many runs of the source are kept. */
  readonly total: number;
  /** The newest first. */
  readonly rows: readonly RunRecord[];
}

/**
 * Runs of one source, the newest first.
 * @param limit undefined for all
 * @param before the number of a run: only older ones
 */
export async function sourceRuns(
  sql: Sql,
  sourceId: string,
  { limit, before }: { readonly limit: number | undefined; readonly before?: number },
): Promise<RunPage> {
  const [row] = await sql<{ total: number }[]>`
    select count(*)::int as total from sync_runs where source_id = ${sourceId}`;
  const rows = await sql<RunRecord[]>`
    ${records(sql)} where r.source_id = ${sourceId} and (${before ?? null}::bigint is null or r.id < ${before ?? null})
    order by r.id desc limit ${limit ?? null}`;
  return { total: row?.total ?? 0, rows };
}

/** Undefined for a run that there never was, or that is not kept any more. */
export async function runRecord(sql: Sql, runId: number): Promise<RunRecord | undefined> {
  const [record] = await sql<RunRecord[]>`${records(sql)} where r.id = ${runId}`;
  return record;
}

/** The HTTP requests of a run; null for one that made none, is under way, or is of an earlier release. */
export async function runRequests(sql: Sql, runId: number): Promise<RunRequests | null> {
  const [row] = await sql<
    { requests: RunRequests | null }[]
  >`select requests from sync_runs where id = ${runId}`;
  return row?.requests ?? null;
}

/** Why a run `r` began, as SQL, also where an earlier release has recorded it. */
export const CAUSE = `case when r.slot is not null and coalesce(r.cause, 'slot') = 'slot'
    and exists (select from sync_runs e where e.source_id = r.source_id and e.slot = r.slot and e.id < r.id)
  then 'retry' else coalesce(r.cause, case when r.decision is not null then 'decision'
  when r.slot is not null then 'slot' end) end`;

/** The batch that a run `r` held or kept, as SQL. */
export const HELD_BATCH = `(select h.id from held_batches h
  where r.outcome = 'held' and h.source_id = r.source_id and h.run_id <= r.id
    and (h.status = 'pending' or h.decided_at >= r.started_at)
  order by h.id desc limit 1)`;

function records(sql: Sql) {
  const instant = (column: string) =>
    sql`to_char(r.${sql(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
  const isInterrupted = sql`r.outcome = 'running' and not ${sql.unsafe(IS_UNDER_WAY)}`;
  return sql`
    select r.id::float as id, r.source_id as "sourceId", s.kind, ${instant('slot')} as slot,
      ${sql.unsafe(CAUSE)} as cause, r.asked_by as "askedBy",
      ${instant('started_at')} as "startedAt", ${instant('finished_at')} as "finishedAt",
      case when ${isInterrupted} then 'interrupted' else r.outcome end as outcome,
      r.seen, r.added, r.changed, r.retired, r.rejected, r.withdrawn,
      case when ${isInterrupted} then ${INTERRUPTED} else r.error end as error,
      ${instant('changed_at')} as "changedAt", coalesce(r.namings, '[]') as namings,
      coalesce(r.rates, '[]') as rates, coalesce(r.reasons, '[]') as reasons,
      ${sql.unsafe(HELD_BATCH)} as "heldBatch",
      case when r.decision is null then null else json_build_object(
        'kind', r.decision, 'batch', r.decided_batch,
        'by', case r.decision when 'undo' then b.undone_by else b.decided_by end,
        'reason', case r.decision when 'undo' then b.undone_reason else b.reason end) end as decision
    from sync_runs r join sources s on s.id = r.source_id left join held_batches b on b.id = r.decided_batch`;
}

/** Equal steps of time. */
export interface Steps {
  /** Start of the first step, seconds since 1970. */
  readonly from: number;
  /** Seconds of a step. */
  readonly step: number;
  readonly steps: number;
}

/** The runs that ended in one step. */
export interface RunStep {
  /** From 0. */
  readonly index: number;
  /** Runs by outcome. */
  readonly changed: number;
  readonly unchanged: number;
  readonly held: number;
  /** Runs that failed, and runs whose process ended. */
  readonly failed: number;
  /** Seconds of the runs that read their source; null where none did. */
  readonly median: number | null;
  readonly longest: number | null;
  /** Rows that the runs stored. */
  readonly rowsAdded: number;
  readonly rowsChanged: number;
  readonly rowsRetired: number;
}

/** Returns each step with ended runs. A run of more than an hour may be missing from the first steps. */
export async function runSteps(sql: Sql, { from, step, steps }: Steps): Promise<RunStep[]> {
  // Ids rise with time. Reading them backwards visits only the runs of the window, without an index on time.
  const [older] = await sql<{ id: number }[]>`
    select id::float8 as id from sync_runs where started_at < to_timestamp(${from}) - interval '1 hour'
    order by id desc limit 1`;
  return sql<RunStep[]>`
    select floor((extract(epoch from finished_at) - ${from}) / ${step})::int as index,
      count(*) filter (where outcome = 'changed')::int as changed,
      count(*) filter (where outcome = 'unchanged')::int as unchanged,
      count(*) filter (where outcome = 'held')::int as held,
      count(*) filter (where outcome in ('failed', 'interrupted'))::int as failed,
      percentile_cont(0.5) within group (order by extract(epoch from finished_at - started_at))
        filter (where outcome in ('changed', 'unchanged', 'held')) as median,
      max(extract(epoch from finished_at - started_at))
        filter (where outcome in ('changed', 'unchanged', 'held'))::float8 as longest,
      coalesce(sum(added) filter (where outcome = 'changed'), 0)::float8 as "rowsAdded",
      coalesce(sum(changed) filter (where outcome = 'changed'), 0)::float8 as "rowsChanged",
      coalesce(sum(retired) filter (where outcome = 'changed'), 0)::float8 as "rowsRetired"
    from sync_runs
    where id > ${older?.id ?? 0} and finished_at >= to_timestamp(${from})
      and finished_at < to_timestamp(${from + step * steps})
    group by 1`;
}

export interface StripRun {
  readonly id: number;
  /** RFC 3339. */
  readonly startedAt: string;
  /** As `RunStatus.outcome`. */
  readonly outcome: string;
}

export interface SourceStrip {
  readonly id: string;
  /** Oldest first. */
  readonly runs: readonly StripRun[];
  /** When the last run began that stored a change, RFC 3339; null when none of those that are kept did. */
  readonly changedAt: string | null;
}

/** @param perSource runs of each source, at most */
export async function sourceStrips(sql: Sql, perSource: number): Promise<SourceStrip[]> {
  return sql<SourceStrip[]>`
    select s.id,
      (select coalesce(json_agg(json_build_object(
          'id', r.id,
          'startedAt', to_char(r.started_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
          'outcome', case when r.outcome = 'running' and not ${sql.unsafe(IS_UNDER_WAY)} then 'interrupted'
            else r.outcome end) order by r.id), '[]')
        from (select * from sync_runs x where x.source_id = s.id order by x.id desc limit ${perSource}) r) as runs,
      (select to_char(c.started_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') from sync_runs c
        where c.source_id = s.id and c.outcome = 'changed' order by c.id desc limit 1) as "changedAt"
    from sources s order by s.id collate "C"`;
}

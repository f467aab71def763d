/** Runs of sources, for operators. */
import type { Database } from '../../../db/connection/client.ts';
import { desc, eq, lt, sql } from '../../../db/connection/drizzle.ts';
import { only, type RowOf, rfc3339 } from '../../../db/connection/statements.ts';
import { RUN_ERROR, RUN_OUTCOME, type RunStatus } from '../../../db/runs/status.ts';
import { syncRuns } from '../../../db/schema.ts';
import type { ReasonGroup } from '../../../domain/rejected-rows.ts';
import type { Caused, Naming, RateChange, RunRequests } from '../../../domain/run.ts';

/** SQL for the batch that a run `r` held, or read again. */
export const HELD_BATCH = sql`(select h.id from held_batches h
  where r.outcome = 'held' and h.source_id = r.source_id and h.run_id <= r.id
    and (h.status = 'pending' or h.decided_at >= r.started_at)
  order by h.id desc limit 1)`;

type Stored = typeof syncRuns.$inferSelect;

export interface RunRecord extends RunStatus, Caused, Readonly<Pick<Stored, 'id' | 'sourceId' | 'slot'>> {
  readonly kind: 'catalogue' | 'clusters' | 'rates' | 'lifecycles';
  readonly outcome: Stored['outcome'];
  /** When its changes took effect; null for a run without changes, and once its changes are deleted. */
  readonly changedAt: string | null;
  readonly namings: readonly Naming[];
  readonly rates: readonly RateChange[];
  readonly reasons: readonly ReasonGroup[];
  readonly heldBatch: number | null;
  readonly decision: {
    readonly kind: 'approve' | 'undo';
    readonly batch: number;
    readonly by: string | null;
    readonly reason: string | null;
  } | null;
}

export interface RunNeighbours {
  readonly previous: number | null;
  readonly next: number | null;
}

export async function runNeighbours(db: Database, { id, sourceId }: RunRecord): Promise<RunNeighbours> {
  const rows = await db.execute<RowOf<RunNeighbours>>(sql`
    select (select max(id)::float from sync_runs where source_id = ${sourceId} and id < ${id}) as previous,
      (select min(id)::float from sync_runs where source_id = ${sourceId} and id > ${id}) as next`);
  return only(rows);
}

/** Returns runs of one source, the newest first, and the number of all its runs. */
export async function sourceRuns(
  db: Database,
  sourceId: string,
  { limit }: { readonly limit: number | undefined },
): Promise<{ readonly total: number; readonly rows: readonly RunRecord[] }> {
  const total = await db.$count(syncRuns, eq(syncRuns.sourceId, sourceId));
  const rows = await db.execute<RowOf<RunRecord>>(sql`
    ${RECORDS} where r.source_id = ${sourceId} order by r.id desc limit ${limit ?? null}`);
  return { total, rows };
}

export async function runRecord(db: Database, runId: number): Promise<RunRecord | undefined> {
  const [record] = await db.execute<RowOf<RunRecord>>(sql`${RECORDS} where r.id = ${runId}`);
  return record;
}

export async function runRequests(db: Database, runId: number): Promise<RunRequests | null> {
  const { id, requests } = syncRuns;
  const [row] = await db.select({ requests }).from(syncRuns).where(eq(id, runId));
  return row?.requests ?? null;
}

const RECORDS = sql`
  select r.id::float as id, r.source_id as "sourceId", s.kind, ${rfc3339(sql`r.slot`)} as slot,
    r.cause, r.asked_by as "askedBy",
    ${rfc3339(sql`r.started_at`)} as "startedAt", ${rfc3339(sql`r.finished_at`)} as "finishedAt",
    ${sql.raw(RUN_OUTCOME)} as outcome, r.seen, r.added, r.changed, r.retired, r.rejected, r.withdrawn,
    ${sql.raw(RUN_ERROR)} as error, ${rfc3339(sql`r.changed_at`)} as "changedAt",
    coalesce(r.namings, '[]') as namings, coalesce(r.rates, '[]') as rates, coalesce(r.reasons, '[]') as reasons,
    ${HELD_BATCH} as "heldBatch",
    case when r.decision is null then null else json_build_object(
      'kind', r.decision, 'batch', r.decided_batch,
      'by', case r.decision when 'undo' then b.undone_by else b.decided_by end,
      'reason', case r.decision when 'undo' then b.undone_reason else b.reason end) end as decision
  from sync_runs r join sources s on s.id = r.source_id left join held_batches b on b.id = r.decided_batch`;

export interface Steps {
  /** Start of the first step, seconds since 1970. */
  readonly from: number;
  /** Seconds of a step. */
  readonly step: number;
  readonly steps: number;
}

export interface RunStep {
  readonly index: number;
  readonly changed: number;
  readonly unchanged: number;
  readonly held: number;
  readonly failed: number;
  /** Duration of good runs in seconds; null if there were none. */
  readonly median: number | null;
  readonly longest: number | null;
  readonly rowsAdded: number;
  readonly rowsChanged: number;
  readonly rowsRetired: number;
}

/** Returns each step with finished runs. The first steps may lack runs that took more than an hour. */
export async function runSteps(db: Database, { from, step, steps }: Steps): Promise<RunStep[]> {
  // Ids rise with time. So this visits only the runs of the window, without an index on time.
  const [older] = await db
    .select({ id: syncRuns.id })
    .from(syncRuns)
    .where(lt(syncRuns.startedAt, sql`to_timestamp(${from}) - interval '1 hour'`))
    .orderBy(desc(syncRuns.id))
    .limit(1);
  return db.execute<RowOf<RunStep>>(sql`
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
    group by 1`);
}

export type StripRun = Pick<RunStatus, 'startedAt' | 'outcome'> & { readonly id: number };

export interface SourceStrip {
  readonly id: string;
  readonly runs: readonly StripRun[];
  /** Start of the last run that stored a change; null if there is none. */
  readonly changedAt: string | null;
}

/** Returns the last runs of each source. @param perSource largest number of runs of a source */
export async function sourceStrips(db: Database, perSource: number): Promise<SourceStrip[]> {
  return db.execute<RowOf<SourceStrip>>(sql`
    select s.id,
      (select coalesce(json_agg(json_build_object('id', r.id, 'startedAt', ${rfc3339(sql`r.started_at`)},
          'outcome', ${sql.raw(RUN_OUTCOME)}) order by r.id), '[]')
        from (select * from sync_runs x where x.source_id = s.id order by x.id desc limit ${perSource}) r) as runs,
      (select ${rfc3339(sql`c.started_at`)} from sync_runs c
        where c.source_id = s.id and c.outcome = 'changed' order by c.id desc limit 1) as "changedAt"
    from sources s order by s.id collate "C"`);
}

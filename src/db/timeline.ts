/** The runs of a source, the decisions about its batches, and what operators did. */
import type { Caused } from '../domain/run.ts';
import type { MachineChanges } from './changes.ts';
import type { ClusterChanges } from './cluster-changes.ts';
import type { Sql } from './connection/client.ts';
import { CAUSE, HELD_BATCH, INTERRUPTED, IS_UNDER_WAY, type RunRecord } from './runs.ts';
import type { RunStatus } from './sources.ts';

export interface TimelineRun extends RunStatus, Caused {
  readonly id: number;
  /** The slot of its schedule, RFC 3339; null for a run that none asked for. */
  readonly slot: string | null;
  /** The batch that it held, or that it read again. */
  readonly heldBatch: number | null;
}

export interface TimelineBatch {
  readonly id: number;
  readonly status: 'pending' | 'approved' | 'rejected' | 'superseded' | 'undone';
  /** Of a decision, or of one that was taken back. */
  readonly by: string | null;
  readonly reason: string | null;
}

/** What an operator did to the source itself, as the audit log has it. */
export interface TimelineAction {
  readonly action: 'source.disable' | 'source.enable' | 'source.retire' | 'price.accept';
  readonly by: string;
  readonly reason: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/** One thing that happened at an instant, RFC 3339 with microseconds. */
export type TimelineEntry = { readonly at: string } & (
  | { readonly kind: 'run'; readonly run: TimelineRun }
  /** `decided`: the batch was approved or rejected. `undone`: that was taken back. Its run says that it was held. */
  | { readonly kind: 'decided' | 'undone'; readonly batch: TimelineBatch }
  | { readonly kind: 'action'; readonly did: TimelineAction }
);

/** Of a source's rows of the audit log: runs that were asked for are told by the runs, and decisions by their batches. */
const ACTIONS: readonly TimelineAction['action'][] = [
  'source.disable',
  'source.enable',
  'source.retire',
  'price.accept',
];

export interface TimelinePage {
  /** Only what happened before this instant, as an entry states it; undefined for the newest. */
  readonly before: string | undefined;
  readonly limit: number;
}

/** The newest first. What happened at the same instant is in the order in which it follows from each other. */
export async function sourceTimeline(
  sql: Sql,
  sourceId: string,
  { before, limit }: TimelinePage,
): Promise<TimelineEntry[]> {
  const isInterrupted = sql`r.outcome = 'running' and not ${sql.unsafe(IS_UNDER_WAY)}`;
  const instant = (column: string, decimals = '') =>
    sql`to_char(${sql.unsafe(column)} at time zone 'UTC', ${`YYYY-MM-DD"T"HH24:MI:SS${decimals}"Z"`})`;
  const until = before ?? null;
  const batch = (by: string, reason: string) => sql`json_build_object(
    'id', b.id, 'status', b.status, 'by', ${sql.unsafe(by)}, 'reason', ${sql.unsafe(reason)})`;
  const ofBatch = (kind: string, rank: number, column: string, by: string, reason: string) => sql`
    select ${kind} as kind, b.${sql(column)} as happened, ${rank}::int as rank, null::json as run,
      ${batch(by, reason)} as batch, null::json as did
    from held_batches b
    where b.source_id = ${sourceId} and b.${sql(column)} is not null
      and b.${sql(column)} < coalesce(${until}::timestamptz, 'infinity')`;
  const rows = await sql<
    { kind: TimelineEntry['kind']; at: string; run: TimelineRun; batch: TimelineBatch; did: TimelineAction }[]
  >`
    select kind, ${instant('happened', '.US')} as at, run, batch, did from (
      (select 'run' as kind, r.started_at as happened, 0 as rank, json_build_object(
          'id', r.id, 'slot', ${instant('r.slot')}, 'cause', ${sql.unsafe(CAUSE)}, 'askedBy', r.asked_by,
          'startedAt', ${instant('r.started_at')},
          'finishedAt', ${instant('r.finished_at')},
          'outcome', case when ${isInterrupted} then 'interrupted' else r.outcome end,
          'seen', r.seen, 'added', r.added, 'changed', r.changed, 'retired', r.retired, 'rejected', r.rejected,
          'withdrawn', r.withdrawn, 'heldBatch', ${sql.unsafe(HELD_BATCH)},
          'error', case when ${isInterrupted} then ${INTERRUPTED} else r.error end) as run, null::json as batch, null::json as did
        from sync_runs r
        where r.source_id = ${sourceId} and r.started_at < coalesce(${until}::timestamptz, 'infinity')
        order by r.id desc limit ${limit})
      union all (${ofBatch('decided', 2, 'decided_at', 'b.decided_by', 'b.reason')} and b.status <> 'superseded')
      union all (${ofBatch('undone', 3, 'undone_at', 'b.undone_by', 'b.undone_reason')})
      union all (select 'action', a.at, 4, null::json, null::json, json_build_object(
          'action', a.action, 'by', a.by, 'reason', a.reason, 'details', a.details)
        from audit_log a
        where a.subject_kind = 'source' and a.subject_id = ${sourceId} and a.action = any(${[...ACTIONS]})
          and a.at < coalesce(${until}::timestamptz, 'infinity')
        order by a.id desc limit ${limit})
    ) entries order by happened desc, rank desc limit ${limit}`;
  return rows.map(({ kind, at, run, batch: held, did }) => {
    if (kind === 'run') return { kind, at, run };
    return kind === 'action' ? { kind, at, did } : { kind, at, batch: held };
  });
}

/** Changes by kind; of exchange rates the run itself has them. */
export type RunDiff =
  | ({ readonly of: 'machines' } & MachineChanges)
  | ({ readonly of: 'clusters' } & ClusterChanges)
  | { readonly of: 'rates' };

/** Whether it is known what the run changed. */
export function isKept({ changedAt, added, changed, retired }: RunRecord): boolean {
  return changedAt !== null || (added ?? 0) + (changed ?? 0) + (retired ?? 0) === 0;
}

/**
 * How many were changed in nothing that a diff shows: only in a price that was converted anew.
 * @param diff of the whole run, without a search
 */
export function unshown(run: RunRecord, diff: RunDiff): number {
  if (diff.of === 'rates' || run.changedAt === null) return 0;
  const shown =
    diff.of === 'clusters'
      ? diff.totals.changed
      : diff.totals.withdrawn +
        diff.totals.sold_out +
        diff.totals.restocked +
        diff.totals.reshaped +
        diff.totals.repriced +
        diff.totals.excluded +
        diff.totals.changed +
        diff.totals.published;
  return Math.max(0, (run.changed ?? 0) - shown);
}

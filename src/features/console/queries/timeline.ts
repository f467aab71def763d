/** The timeline of a source: runs, decisions about its batches, and actions of operators. */
import type { Sql } from '../../../db/connection/client.ts';
import { instant } from '../../../db/connection/instant-text.ts';
import type { BatchRecord } from '../../../db/held-batches.ts';
import { type RunStatus, STATUS_FIELDS } from '../../../db/runs/status.ts';
import { MACHINE_CHANGES } from '../../../domain/run.ts';
import type { ClusterChanges } from './cluster-changes.ts';
import type { MachineChanges } from './machine-changes.ts';
import { CAUSE, HELD_BATCH, type RunRecord } from './runs.ts';

export interface TimelineRun
  extends RunStatus,
    Pick<RunRecord, 'id' | 'slot' | 'cause' | 'askedBy' | 'heldBatch'> {}

export interface TimelineBatch extends Pick<BatchRecord, 'id' | 'status' | 'reason'> {
  /** Who decided, or undid the decision. */
  readonly by: string | null;
}

export interface TimelineAction {
  readonly action: (typeof ACTIONS)[number];
  readonly by: string;
  readonly reason: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/** `at` is RFC 3339 with microseconds. */
export type TimelineEntry = { readonly at: string } & (
  | { readonly kind: 'run'; readonly run: TimelineRun }
  /** `decided`: an operator approved or rejected the batch. `undone`: an operator undid that. */
  | { readonly kind: 'decided' | 'undone'; readonly batch: TimelineBatch }
  | { readonly kind: 'action'; readonly did: TimelineAction }
);

/** Other actions are on the timeline as runs and decisions. */
const ACTIONS = ['source.disable', 'source.enable', 'source.retire', 'price.accept'] as const;

export interface TimelinePage {
  readonly before: string | undefined;
  readonly limit: number;
}

/** Returns entries, the newest first. Entries of the same time are in causal order. */
export async function sourceTimeline(
  sql: Sql,
  sourceId: string,
  { before, limit }: TimelinePage,
): Promise<TimelineEntry[]> {
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
    select kind, ${instant(sql, 'happened', 'us')} as at, run, batch, did from (
      (select 'run' as kind, r.started_at as happened, 0 as rank, json_build_object(
          'id', r.id, 'slot', ${instant(sql, 'r.slot')}, 'cause', ${sql.unsafe(CAUSE)}, 'askedBy', r.asked_by,
          'heldBatch', ${sql.unsafe(HELD_BATCH)}, ${sql.unsafe(STATUS_FIELDS)}) as run, null::json as batch, null::json as did
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

export type RunDiff =
  | ({ readonly of: 'machines' } & MachineChanges)
  | ({ readonly of: 'clusters' } & ClusterChanges)
  | { readonly of: 'rates' };

/** Returns true if the changes of the run are still stored. */
export function isKept({ changedAt, added, changed, retired }: RunRecord): boolean {
  return changedAt !== null || (added ?? 0) + (changed ?? 0) + (retired ?? 0) === 0;
}

const CHANGED = MACHINE_CHANGES.filter((kind) => !['added', 'returned', 'retired'].includes(kind));

/** Returns how many changed rows the whole diff does not show: only their converted price changed. */
export function unshown(run: RunRecord, diff: RunDiff): number {
  if (diff.of === 'rates' || run.changedAt === null) return 0;
  const shown =
    diff.of === 'clusters' ? diff.totals.changed : CHANGED.reduce((sum, kind) => sum + diff.totals[kind], 0);
  return Math.max(0, (run.changed ?? 0) - shown);
}

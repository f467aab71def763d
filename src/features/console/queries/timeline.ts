/** The timeline of a source: runs, decisions about its batches, and actions of operators. */
import type { Database } from '../../../db/connection/client.ts';
import { type SQL, sql } from '../../../db/connection/drizzle.ts';
import { array, type RowOf, rfc3339 } from '../../../db/connection/statements.ts';
import type { BatchRecord } from '../../../db/held-batches.ts';
import { type RunStatus, STATUS_FIELDS } from '../../../db/runs/status.ts';
import { HELD_BATCH, type RunRecord } from './runs.ts';

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
  db: Database,
  sourceId: string,
  { before, limit }: TimelinePage,
): Promise<TimelineEntry[]> {
  const until = sql`coalesce(${before ?? null}::timestamptz, 'infinity')`;
  const ofBatch = (
    kind: 'decided' | 'undone',
    rank: number,
    [at, by, reason]: readonly [SQL, SQL, SQL],
  ) => sql`
    select ${kind} as kind, ${at} as happened, ${rank}::int as rank, null::json as run,
      json_build_object('id', b.id, 'status', b.status, 'by', ${by}, 'reason', ${reason}) as batch, null::json as did
    from held_batches b
    where b.source_id = ${sourceId} and ${at} is not null and ${at} < ${until}`;
  const decided = ofBatch('decided', 2, [sql`b.decided_at`, sql`b.decided_by`, sql`b.reason`]);
  const undone = ofBatch('undone', 3, [sql`b.undone_at`, sql`b.undone_by`, sql`b.undone_reason`]);
  const rows = await db.execute<
    RowOf<{
      kind: TimelineEntry['kind'];
      at: string;
      run: TimelineRun;
      batch: TimelineBatch;
      did: TimelineAction;
    }>
  >(sql`
    select kind, ${rfc3339(sql`happened`, 'us')} as at, run, batch, did from (
      (select 'run' as kind, r.started_at as happened, 0 as rank, json_build_object(
          'id', r.id, 'slot', ${rfc3339(sql`r.slot`)}, 'cause', r.cause, 'askedBy', r.asked_by,
          'heldBatch', ${HELD_BATCH}, ${sql.raw(STATUS_FIELDS)}) as run, null::json as batch, null::json as did
        from sync_runs r
        where r.source_id = ${sourceId} and r.started_at < ${until}
        order by r.id desc limit ${limit})
      union all (${decided} and b.status <> 'superseded')
      union all (${undone})
      union all (select 'action', a.at, 4, null::json, null::json, json_build_object(
          'action', a.action, 'by', a.by, 'reason', a.reason, 'details', a.details)
        from audit_log a
        where a.subject_kind = 'source' and a.subject_id = ${sourceId} and a.action = any(${array(ACTIONS, 'text')})
          and a.at < ${until}
        order by a.id desc limit ${limit})
    ) entries order by happened desc, rank desc limit ${limit}`);
  return rows.map(({ kind, at, run, batch, did }) => {
    if (kind === 'run') return { kind, at, run };
    return kind === 'action' ? { kind, at, did } : { kind, at, batch };
  });
}

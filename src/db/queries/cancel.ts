/** Cancels the run of a source that is under way: the run can write nothing from then on, and its process stops it. */
import type { Decider } from '../../domain/operator.ts';
import type { Database } from '../database.ts';
import { alias, and, desc, eq, inArray, sql } from '../drizzle.ts';
import { IS_UNDER_WAY } from '../run-mark.ts';
import { scheduleSlots, sources, syncRuns } from '../schema.ts';
import { increment, nameOf } from '../statements.ts';
import { auditRow } from './audit.ts';

const r = alias(syncRuns, 'r');

export type Cancelled =
  | { readonly outcome: 'cancelled'; readonly run: number }
  /** No run of the source is under way, or not the one that was named. */
  | { readonly outcome: 'idle' }
  /** There is no such source. */
  | { readonly outcome: 'unknown' };

/**
 * Raises the source's fence and records the run as cancelled, with name and reason. Its slot is done: no attempt follows.
 * The statement waits for a run that is committing, and such a run keeps its outcome.
 * @param runId only this run; undefined for the one that is under way
 */
export async function cancelRun(
  db: Database,
  sourceId: string,
  runId: number | undefined,
  decider: Decider,
): Promise<Cancelled> {
  return db.transaction(async (tx) => {
    const known = await tx
      .select({ id: sources.id })
      .from(sources)
      .where(eq(sources.id, sourceId))
      .for('update');
    if (known.length === 0) return { outcome: 'unknown' };
    const error = `cancelled by ${decider.by}${decider.reason === undefined ? '' : `: ${decider.reason}`}`;
    const entry = {
      action: 'source.cancel',
      subject: { kind: 'source', id: sourceId },
      details: sql`jsonb_build_object('run', id)`,
    };
    const [row] = await tx.execute<{ id: string }>(sql`
      with cancelled as (
        update ${syncRuns} ${r} set ${nameOf(r.outcome)} = 'cancelled', ${nameOf(r.error)} = ${error},
          ${nameOf(r.finishedAt)} = clock_timestamp()
        where ${r.sourceId} = ${sourceId} and ${r.outcome} = 'running' and ${sql.raw(IS_UNDER_WAY)}
          and (${runId ?? null}::bigint is null or ${r.id} = ${runId ?? null}::bigint)
        returning ${r.id}, ${r.slot}
      ), raised as (
        update ${sources} set ${nameOf(sources.fence)} = ${increment(sources.fence)}
        where ${sources.id} = ${sourceId} and exists (select from cancelled)
      ), done as (
        update ${scheduleSlots} set ${nameOf(scheduleSlots.dueAt)} = null from cancelled
        where ${scheduleSlots.schedule} = ${sourceId} and ${scheduleSlots.slot} = cancelled.slot
      ), audited as (${auditRow(decider, entry)} from cancelled)
      select id from cancelled`);
    return row === undefined ? { outcome: 'idle' } : { outcome: 'cancelled', run: Number(row.id) };
  });
}

/** Those of these runs that were cancelled. */
export async function cancelledRuns(db: Database, ids: readonly number[]): Promise<number[]> {
  const rows = await db
    .select({ id: syncRuns.id })
    .from(syncRuns)
    .where(and(inArray(syncRuns.id, [...ids]), eq(syncRuns.outcome, 'cancelled')));
  return rows.map(({ id }) => id);
}

/** Returns true if the last run of a source began after an instant and was cancelled. */
export async function wasCancelledSince(db: Database, sourceId: string, since: Date): Promise<boolean> {
  const [last] = await db
    .select({
      isCancelled: sql<boolean>`${syncRuns.outcome} = 'cancelled' and ${syncRuns.startedAt} >= ${since.toISOString()}::timestamptz`,
    })
    .from(syncRuns)
    .where(eq(syncRuns.sourceId, sourceId))
    .orderBy(desc(syncRuns.id))
    .limit(1);
  return last?.isCancelled ?? false;
}

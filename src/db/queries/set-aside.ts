/** Which runs ended the process of their worker, so that their source is set aside. */
import type { Database } from '../database.ts';
import { alias, and, desc, eq, inArray, sql } from '../drizzle.ts';
import { IS_UNDER_WAY } from '../run-mark.ts';
import { syncRuns } from '../schema.ts';

/** Newest runs that are read; a source is set aside long before that. */
const RUNS_READ = 10;

const r = alias(syncRuns, 'r');

/** The interrupted runs of a source after its last run that came to an end. */
export interface InterruptedRuns {
  readonly any: boolean;
  /** Ids of those that were alone in their process: each of them ended it. The newest first. */
  readonly alone: readonly number[];
}

export async function interruptedRuns(db: Database, sourceId: string): Promise<InterruptedRuns> {
  const isUnderWay = sql<boolean>`${sql.raw(IS_UNDER_WAY)}`;
  const newest = await db
    .select({ id: r.id, outcome: r.outcome, alone: r.alone, isUnderWay })
    .from(r)
    .where(eq(r.sourceId, sourceId))
    .orderBy(desc(r.id))
    .limit(RUNS_READ);
  const end = newest.findIndex(
    (run) => run.outcome !== 'interrupted' && (run.outcome !== 'running' || run.isUnderWay),
  );
  const interrupted = end === -1 ? newest : newest.slice(0, end);
  return {
    any: interrupted.length > 0,
    alone: interrupted.filter(({ alone }) => alone).map(({ id }) => id),
  };
}

/** Records that these runs were under way in one process. */
export async function notAlone(db: Database, runIds: readonly number[]): Promise<void> {
  await db
    .update(syncRuns)
    .set({ alone: false })
    .where(and(inArray(syncRuns.id, [...runIds]), eq(syncRuns.alone, true)));
}

/** Interrupted runs of the source do not count any more: an operator lets it run again. */
export async function forgiveRuns(db: Database, sourceId: string): Promise<void> {
  await db
    .update(syncRuns)
    .set({ alone: null })
    .where(and(eq(syncRuns.sourceId, sourceId), eq(syncRuns.alone, true)));
}

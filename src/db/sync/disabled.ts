/** Sources that an operator has disabled: no schedule, no watch and no command runs them, and their data stays published. */

import type { Disabling } from '../../domain/disabled-source.ts';
import type { Decider } from '../../domain/operator.ts';
import { audit } from '../audit.ts';
import type { Database } from '../connection/database.ts';
import { alias, and, desc, eq, inArray, isNotNull, isNull, sql } from '../connection/drizzle.ts';
import { increment } from '../connection/statements.ts';
import { IS_UNDER_WAY } from '../runs.ts';
import { sources, syncRuns } from '../schema.ts';

const DISABLING = {
  at: sql<string>`to_char(${sources.disabledAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`,
  by: sql<string>`coalesce(${sources.disabledBy}, '')`,
  reason: sources.disabledReason,
};

export type Disabled =
  | { readonly outcome: 'disabled'; readonly disabling: Disabling }
  /** It was before; who disabled it then, and why, stays as it was. */
  | { readonly outcome: 'already'; readonly disabling: Disabling }
  /** There is no such source. */
  | { readonly outcome: 'unknown' };

/** Disables a source that is stored. A run of it that is under way stores nothing from now on. */
export async function disableSource(db: Database, sourceId: string, decider: Decider): Promise<Disabled> {
  return db.transaction(async (tx) => {
    const [disabling] = await tx
      .update(sources)
      .set({
        disabledAt: sql`now()`,
        disabledBy: decider.by,
        disabledReason: decider.reason ?? null,
        fence: increment(sources.fence),
      })
      .where(and(eq(sources.id, sourceId), isNull(sources.disabledAt)))
      .returning(DISABLING);
    if (disabling === undefined) {
      const before = await disablingOf(tx, sourceId);
      return before === undefined ? { outcome: 'unknown' } : { outcome: 'already', disabling: before };
    }
    await tx
      .update(syncRuns)
      .set({ outcome: 'superseded', finishedAt: sql`clock_timestamp()` })
      .where(and(eq(syncRuns.sourceId, sourceId), eq(syncRuns.outcome, 'running')));
    await audit(tx, decider, { action: 'source.disable', subject: { kind: 'source', id: sourceId } });
    return { outcome: 'disabled', disabling };
  });
}

/**
 * Lets a source run again: the latest slot that passed meanwhile at once, and then as before.
 * @returns false when it is not disabled, or not known
 */
export async function enableSource(db: Database, sourceId: string, decider: Decider): Promise<boolean> {
  return db.transaction(async (tx) => {
    const enabled = await tx
      .update(sources)
      .set({ disabledAt: null, disabledBy: null, disabledReason: null })
      .where(and(eq(sources.id, sourceId), isNotNull(sources.disabledAt)));
    if (enabled.count === 0) return false;
    await forgiveRuns(tx, sourceId);
    await audit(tx, decider, { action: 'source.enable', subject: { kind: 'source', id: sourceId } });
    return true;
  });
}

/** Since when a source is disabled, by whom and why; undefined for one that is not, or that is not known. */
export async function disablingOf(db: Database, sourceId: string): Promise<Disabling | undefined> {
  const [disabling] = await db
    .select(DISABLING)
    .from(sources)
    .where(and(eq(sources.id, sourceId), isNotNull(sources.disabledAt)));
  return disabling;
}

/** The ids of all sources that are disabled. */
export async function disabledSources(db: Database): Promise<ReadonlySet<string>> {
  const rows = await db.select({ id: sources.id }).from(sources).where(isNotNull(sources.disabledAt));
  return new Set(rows.map(({ id }) => id));
}

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
async function forgiveRuns(db: Database, sourceId: string): Promise<void> {
  await db
    .update(syncRuns)
    .set({ alone: null })
    .where(and(eq(syncRuns.sourceId, sourceId), eq(syncRuns.alone, true)));
}

/** Disabled sources: nothing runs them, and their data stays published. */

import type { Decider } from '../../domain/operator.ts';
import type { Disabling } from '../../domain/source.ts';
import { audit } from '../audit.ts';
import type { Database } from '../connection/database.ts';
import { alias, and, desc, eq, inArray, isNotNull, isNull, sql } from '../connection/drizzle.ts';
import { increment, rfc3339 } from '../connection/statements.ts';
import { IS_LIVE } from '../runs/records.ts';
import { sources, syncRuns } from '../schema.ts';

const DISABLING = {
  at: sql<string>`${rfc3339(sources.disabledAt)}`,
  by: sql<string>`coalesce(${sources.disabledBy}, '')`,
  reason: sources.disabledReason,
};

export type Disabled =
  | { readonly outcome: 'disabled' | 'already'; readonly disabling: Disabling }
  | { readonly outcome: 'unknown' };

/** Disables a source. Its live run may not store anything any more. */
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
    await supersedeRuns(tx, sourceId);
    await audit(tx, decider, { action: 'source.disable', subject: { kind: 'source', id: sourceId } });
    return { outcome: 'disabled', disabling };
  });
}

export async function supersedeRuns(db: Database, sourceId: string): Promise<void> {
  await db
    .update(syncRuns)
    .set({ outcome: 'superseded', finishedAt: sql`clock_timestamp()` })
    .where(and(eq(syncRuns.sourceId, sourceId), eq(syncRuns.outcome, 'running')));
}

/** Enables a source. Its latest missed slot runs at once. Returns false if the source is unknown or not disabled. */
export async function enableSource(db: Database, sourceId: string, decider: Decider): Promise<boolean> {
  return db.transaction(async (tx) => {
    const enabled = await tx
      .update(sources)
      .set({ disabledAt: null, disabledBy: null, disabledReason: null })
      .where(and(eq(sources.id, sourceId), isNotNull(sources.disabledAt)));
    if (enabled.count === 0) return false;
    // Earlier interrupted runs do not count any more.
    await tx
      .update(syncRuns)
      .set({ alone: null })
      .where(and(eq(syncRuns.sourceId, sourceId), eq(syncRuns.alone, true)));
    await audit(tx, decider, { action: 'source.enable', subject: { kind: 'source', id: sourceId } });
    return true;
  });
}

/** Returns who disabled a source, when and why; undefined if it is unknown or not disabled. */
export async function disablingOf(db: Database, sourceId: string): Promise<Disabling | undefined> {
  const [disabling] = await db
    .select(DISABLING)
    .from(sources)
    .where(and(eq(sources.id, sourceId), isNotNull(sources.disabledAt)));
  return disabling;
}

export async function disabledSources(db: Database): Promise<ReadonlySet<string>> {
  const rows = await db.select({ id: sources.id }).from(sources).where(isNotNull(sources.disabledAt));
  return new Set(rows.map(({ id }) => id));
}

/** More than enough: a source is disabled after fewer interrupted runs. */
const RUNS_READ = 10;

const r = alias(syncRuns, 'r');

/** Finds the interrupted runs of a source since its last finished run. */
export async function interruptedRuns(db: Database, sourceId: string) {
  const isLive = sql<boolean>`${sql.raw(IS_LIVE)}`;
  const newest = await db
    .select({ id: r.id, outcome: r.outcome, alone: r.alone, isLive })
    .from(r)
    .where(eq(r.sourceId, sourceId))
    .orderBy(desc(r.id))
    .limit(RUNS_READ);
  const end = newest.findIndex(
    (run) => run.outcome !== 'interrupted' && (run.outcome !== 'running' || run.isLive),
  );
  const interrupted = end === -1 ? newest : newest.slice(0, end);
  return {
    any: interrupted.length > 0,
    alone: interrupted.filter(({ alone }) => alone).map(({ id }) => id),
  };
}

export async function notAlone(db: Database, runIds: readonly number[]): Promise<void> {
  await db
    .update(syncRuns)
    .set({ alone: false })
    .where(and(inArray(syncRuns.id, [...runIds]), eq(syncRuns.alone, true)));
}

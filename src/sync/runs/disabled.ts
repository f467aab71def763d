/** Disabled and paused sources: nothing runs them, and their data stays published. */
import { audit } from '../../db/audit.ts';
import type { Database } from '../../db/connection/client.ts';
import { alias, and, desc, eq, inArray, isNotNull, isNull, sql } from '../../db/connection/drizzle.ts';
import { increment, nameOf, only, rfc3339 } from '../../db/connection/statements.ts';
import { INTERRUPTED, IS_LIVE } from '../../db/runs/status.ts';
import { sources, syncRuns } from '../../db/schema.ts';
import type { Decider } from '../../domain/operator.ts';
import type { Disabling, Pause } from '../../domain/source.ts';

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
    await endPause(tx, sourceId);
    await audit(tx, decider, { action: 'source.enable', subject: { kind: 'source', id: sourceId } });
    return true;
  });
}

/** Ends the pause of a source for a person. Its earlier interrupted runs do not count any more. */
export async function endPause(db: Database, sourceId: string): Promise<void> {
  await db.update(sources).set({ pausedUntil: null, pausedReason: null }).where(eq(sources.id, sourceId));
  await db
    .update(syncRuns)
    .set({ alone: null })
    .where(
      and(
        eq(syncRuns.sourceId, sourceId),
        inArray(syncRuns.outcome, ['running', 'interrupted']),
        isNotNull(syncRuns.alone),
      ),
    );
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

/** SQL: whether a source is paused now. */
const IS_PAUSED = sql`${sources.pausedUntil} > now()`;

export async function pausedSources(db: Database): Promise<ReadonlySet<string>> {
  const rows = await db.select({ id: sources.id }).from(sources).where(IS_PAUSED);
  return new Set(rows.map(({ id }) => id));
}

const PAUSE = {
  until: sql<string>`${rfc3339(sources.pausedUntil)}`,
  reason: sql<string>`${sources.pausedReason}`,
};

export async function pauseOf(db: Database, sourceId: string): Promise<Pause | undefined> {
  const [pause] = await db
    .select(PAUSE)
    .from(sources)
    .where(and(eq(sources.id, sourceId), IS_PAUSED));
  return pause;
}

/** Pauses a source for an hour. It then runs again without a person. */
export async function pauseSource(db: Database, sourceId: string, reason: string): Promise<Pause> {
  const [pause] = await db
    .update(sources)
    .set({ pausedUntil: sql`now() + interval '1 hour'`, pausedReason: reason })
    .where(eq(sources.id, sourceId))
    .returning(PAUSE);
  return only(pause === undefined ? [] : [pause]);
}

/** More than enough: a source is paused after fewer interrupted runs. */
const RUNS_READ = 10;

const r = alias(syncRuns, 'r');

/**
 * Finds the interrupted runs of a source since its last finished run, and records those whose process has just ended.
 * @returns whether there are any, and the ids of those of workers within the last hour, newest first: all, and those that were the
 * only run of their process
 */
export async function interruptedRuns(db: Database, sourceId: string) {
  await db.execute(sql`
    update ${syncRuns} ${r} set ${nameOf(r.outcome)} = 'interrupted', ${nameOf(r.error)} = ${INTERRUPTED},
      ${nameOf(r.finishedAt)} = clock_timestamp()
    where ${r.sourceId} = ${sourceId} and ${r.outcome} = 'running' and not ${sql.raw(IS_LIVE)}`);
  const newest = await db
    .select({
      id: r.id,
      outcome: r.outcome,
      alone: r.alone,
      isRecent: sql<boolean>`coalesce(${r.finishedAt} > now() - interval '1 hour', false)`,
    })
    .from(r)
    .where(eq(r.sourceId, sourceId))
    .orderBy(desc(r.id))
    .limit(RUNS_READ);
  const end = newest.findIndex(({ outcome }) => outcome !== 'interrupted');
  const interrupted = end === -1 ? newest : newest.slice(0, end);
  const recent = interrupted.filter(({ alone, isRecent }) => alone !== null && isRecent);
  return {
    any: interrupted.length > 0,
    recent: recent.map(({ id }) => id),
    alone: recent.filter(({ alone }) => alone).map(({ id }) => id),
  };
}

export async function notAlone(db: Database, runIds: readonly number[]): Promise<void> {
  await db
    .update(syncRuns)
    .set({ alone: false })
    .where(and(inArray(syncRuns.id, [...runIds]), eq(syncRuns.alone, true)));
}

/** What watched sources leave in the list of runs, which states that come by the second must not fill. */

import type { Naming, RateChange } from '../../domain/changes.ts';
import { SourceDisabled } from '../../domain/disabled-source.ts';
import type { Decider } from '../../domain/operator.ts';
import type { ReasonGroup } from '../../domain/rejected-rows.ts';
import type { RunCause, RunRequests } from '../../domain/run.ts';
import { auditRow } from '../audit.ts';
import type { Database } from '../connection/database.ts';
import { alias, and, eq, inArray, isNull, lt, max, sql } from '../connection/drizzle.ts';
import { array, increment, insertInto, nameOf } from '../connection/statements.ts';
import { INTERRUPTED, IS_UNDER_WAY, markOf } from '../runs.ts';
import { heldBatches, lineage, sources, syncRuns } from '../schema.ts';
import { disablingOf } from './disabled.ts';

export type RunOutcome = 'changed' | 'unchanged' | 'held' | 'failed' | 'superseded' | 'cancelled';

export interface RunCounts {
  readonly seen: number;
  readonly added: number;
  readonly changed: number;
  readonly retired: number;
  readonly rejected: number;
  /** Machines that readers saw until then and that the run excluded. */
  readonly withdrawn: number;
}

/** Of a run that has stored nothing. */
export const NO_COUNTS: RunCounts = { seen: 0, added: 0, changed: 0, retired: 0, rejected: 0, withdrawn: 0 };

/** A run that has begun. Its fence is the highest of its source until the next run begins. */
export interface Run {
  readonly id: number;
  readonly sourceId: string;
  readonly fence: number;
  /** The HTTP requests of the run, stored with its end; undefined for a run that made none. */
  readonly requests?: () => RunRequests | undefined;
}

const s = alias(sources, 's');
const before = alias(sources, 'before');
const r = alias(syncRuns, 'r');

/** Makes known which sources there are. One that is not configured any more keeps its data and is only not run. */
export async function registerSource(
  db: Database,
  { id, kind, adapter }: Pick<typeof sources.$inferSelect, 'id' | 'kind' | 'adapter'>,
): Promise<void> {
  await db
    .insert(sources)
    .values({ id, kind, adapter })
    .onConflictDoUpdate({
      target: sources.id,
      set: { kind, adapter },
      setWhere: sql`(${sources.kind}, ${sources.adapter}) is distinct from (${kind}, ${adapter})`,
    });
}

/** Why a run begins. */
export interface Asked {
  /** A run of a slot is the `first` by itself, where there was none before. */
  readonly cause: Exclude<RunCause, 'first' | 'retry'>;
  /** The person who asked for it. */
  readonly by?: string | undefined;
  /** Writes `source.run` into the audit log as it begins; absent where who asked has written it before. */
  readonly decider?: Decider | undefined;
}

export interface BeginOptions {
  readonly asked?: Asked | undefined;
  /** Marks the run as under way by a lock of this session, see live-runs.ts. */
  readonly marked?: boolean;
  /** True for the only run of a worker; absent for a run outside of a worker. */
  readonly alone?: boolean;
  /** For what an operator decides: it reads nothing of the source, and is stored though the source is disabled. */
  readonly evenIfDisabled?: boolean;
}

/**
 * Raises the source's fence and records the run; a run that is still under way can write nothing from now on.
 * @throws SourceDisabled when an operator has disabled the source
 */
export async function beginRun(
  db: Database,
  sourceId: string,
  slot: string | undefined,
  { marked = false, evenIfDisabled = false, alone, asked }: BeginOptions = {},
): Promise<Run> {
  const isUnderWay = sql.raw(IS_UNDER_WAY);
  const given = asked?.cause ?? null;
  const cause = sql`case when ${given}::text = 'slot'
    and not exists (select from ${syncRuns} where ${syncRuns.sourceId} = ${sourceId}) then 'first' else ${given} end`;
  const askedBy = asked?.by ?? asked?.decider?.by ?? null;
  const begins = {
    sourceId,
    fence: sql`fence`,
    slot: sql`${slot ?? null}::timestamptz`,
    cause,
    askedBy,
    alone: alone ?? null,
  };
  const subject = { kind: 'source', id: sourceId };
  const details = sql`jsonb_build_object('run', id)`;
  const audited = asked?.decider
    ? sql`, audited as (${auditRow(asked.decider, { action: 'source.run', subject, details })} from begun)`
    : sql``;
  const [row] = await db.execute<{ id: string; fence: string }>(sql`
    with raised as (
      update ${sources} set ${nameOf(sources.fence)} = ${increment(sources.fence)}
      where ${sources.id} = ${sourceId} and (${sources.disabledAt} is null or ${evenIfDisabled})
      returning ${sources.fence}
    ), stale as (
      update ${syncRuns} ${r} set ${nameOf(r.finishedAt)} = now(),
        ${nameOf(r.outcome)} = case when ${isUnderWay} then 'superseded' else 'interrupted' end,
        ${nameOf(r.error)} = case when ${isUnderWay} then null else ${INTERRUPTED} end
      where ${r.sourceId} = ${sourceId} and ${r.outcome} = 'running' and exists (select from raised)
    ), begun as (
      ${insertInto(syncRuns, begins)} from raised
      returning ${syncRuns.id}, ${syncRuns.fence}
    )${audited}
    select id, fence, case when ${marked} then pg_try_advisory_lock_shared(${sql.raw(markOf('id'))}) end from begun`);
  if (!row) {
    const disabling = await disablingOf(db, sourceId);
    throw disabling === undefined
      ? new Error(`source ${sourceId} is not registered`)
      : new SourceDisabled(sourceId, disabling);
  }
  return { id: Number(row.id), sourceId, fence: Number(row.fence) };
}

/** A process that hung for so long that it was taken for dead was not: it learns that a later run has begun. */
const mayBecome = (outcome: RunOutcome) =>
  outcome === 'superseded' ? (['running', 'interrupted'] as const) : (['running'] as const);

/** Locks the source for the rest of the transaction. False when a later run has begun: then nothing may be written. */
export async function holdsFence(db: Database, run: Run): Promise<boolean> {
  const [source] = await db
    .select({ fence: sources.fence })
    .from(sources)
    .where(eq(sources.id, run.sourceId))
    .for('update');
  return source?.fence === run.fence;
}

/**
 * Records how the run ended. A good one makes the source as fresh as what was read, at `readAt`: freshness moves forward
 * only. That of regions is stamped separately, see freshness.ts.
 */
export async function finishRun(
  db: Database,
  run: Run,
  outcome: RunOutcome,
  counts: RunCounts | undefined,
  readAt: string,
  error?: string,
): Promise<void> {
  const requests = run.requests?.();
  const ended = await db
    .update(syncRuns)
    .set({ finishedAt: sql`clock_timestamp()`, outcome, ...counts, error: error ?? null, requests })
    .where(and(eq(syncRuns.id, run.id), inArray(syncRuns.outcome, mayBecome(outcome))));
  // Another process has recorded its end, as superseded or cancelled. Only this one knows its requests.
  if (ended.count === 0 && requests !== undefined)
    await db
      .update(syncRuns)
      .set({ requests })
      .where(and(eq(syncRuns.id, run.id), isNull(syncRuns.requests)));
  if (outcome !== 'changed' && outcome !== 'unchanged') return;
  // The list of providers is as old as its oldest source: the first good run of one changes its freshness.
  await db.execute(sql`
    with verified as (
      update ${sources} ${s}
      set ${nameOf(s.verifiedAt)} = greatest(${s.verifiedAt}, ${readAt}::timestamptz), ${nameOf(s.retiredAt)} = null
      from ${sources} ${before}
      where ${s.id} = ${run.sourceId} and ${before.id} = ${s.id}
      returning (${before.verifiedAt} is null or ${before.retiredAt} is not null) and ${s.kind} = 'catalogue' as first
    )
    update ${lineage} set ${nameOf(lineage.providersVersion)} = ${increment(lineage.providersVersion)}
    where exists (select from verified where first)`);
}

/** Reasons of rejected rows that a run keeps. */
const REASONS_KEPT = 20;

/** Records why rows of the run's batch cannot be used. @param reasons the most frequent first */
export async function recordReasons(db: Database, run: Run, reasons: readonly ReasonGroup[]): Promise<void> {
  if (reasons.length === 0) return;
  await db
    .update(syncRuns)
    .set({ reasons: reasons.slice(0, REASONS_KEPT) })
    .where(eq(syncRuns.id, run.id));
}

/** What a run did, besides its counts. */
export interface RunEffect {
  /** When its changes took effect, RFC 3339; undefined for one that changed nothing. */
  readonly changedAt: string | undefined;
  readonly namings: readonly Naming[];
  readonly rates: readonly RateChange[];
  /** What it carried out. */
  readonly decision: { readonly kind: 'approve' | 'undo'; readonly batchId: number } | undefined;
}

/** Records what the run did. To be called in the transaction that changes the rows. */
export async function recordEffect(
  db: Database,
  run: Run,
  { changedAt, namings, rates, decision }: RunEffect,
): Promise<void> {
  if (changedAt === undefined && decision === undefined) return;
  await db
    .update(syncRuns)
    .set({
      changedAt: changedAt ?? null,
      namings: namings.length > 0 ? namings : null,
      rates: rates.length > 0 ? rates : null,
      decidedBatch: decision?.batchId ?? null,
      decision: decision?.kind ?? null,
    })
    .where(eq(syncRuns.id, run.id));
}

/** Whether one of these sources has not ended a single run yet, good or bad. One that is disabled is not waited for. */
export async function anyNeverRan(db: Database, sourceIds: readonly string[]): Promise<boolean> {
  const [row] = await db.execute<{ waiting: boolean }>(sql`
    select exists (
      select from unnest(${array(sourceIds, 'text')}) w (id)
      where not exists (
        select from ${syncRuns} where ${syncRuns.sourceId} = w.id and ${syncRuns.finishedAt} is not null)
        and not exists (
          select from ${sources} where ${sources.id} = w.id and ${sources.disabledAt} is not null)) as waiting`);
  return row?.waiting ?? false;
}

/** Runs of each source that are kept; older ones go, but for those whose changes or whose held batch are kept. */
const RUNS_KEPT = 2000;

/** Records that a source could not be watched. It raises no fence: a run that is under way goes on. */
export async function recordFailedWatch(db: Database, sourceId: string, error: string): Promise<void> {
  const finishedAt = sql`clock_timestamp()`;
  const { id, fence } = sources;
  await db.execute(sql`
    ${insertInto(syncRuns, { sourceId: id, fence, finishedAt, outcome: 'failed', error, cause: 'watch' })}
    from ${sources} where ${id} = ${sourceId}`);
}

/** After a state that changed nothing: of all that changed nothing and no schedule and no person asked for, only the last run stays. */
export async function foldUnchanged(db: Database, sourceId: string): Promise<void> {
  const ofSource = eq(syncRuns.sourceId, sourceId);
  const latest = db
    .select({ id: max(syncRuns.id) })
    .from(syncRuns)
    .where(ofSource);
  await db
    .delete(syncRuns)
    .where(
      and(
        ofSource,
        isNull(syncRuns.slot),
        sql`${syncRuns.cause} is distinct from 'hand'`,
        inArray(syncRuns.outcome, ['unchanged', 'superseded']),
        sql`${syncRuns.id} < (${latest})`,
      ),
    );
}

/** Forgets all but the newest runs of each source, and those whose changes are kept, and held batches that a younger one superseded a week ago. */
export async function pruneRuns(db: Database): Promise<void> {
  await db
    .delete(heldBatches)
    .where(
      and(eq(heldBatches.status, 'superseded'), lt(heldBatches.decidedAt, sql`now() - interval '7 days'`)),
    );
  await db.execute(sql`
    delete from ${syncRuns} using (
      select ${sources.id}, (
        select ${syncRuns.id} from ${syncRuns} where ${syncRuns.sourceId} = ${sources.id}
        order by ${syncRuns.id} desc offset ${RUNS_KEPT - 1} limit 1) as oldest
      from ${sources}
    ) kept
    where ${syncRuns.sourceId} = kept.id and ${syncRuns.id} < kept.oldest and ${syncRuns.changedAt} is null
      and not exists (select from ${heldBatches} where ${heldBatches.runId} = ${syncRuns.id})`);
}

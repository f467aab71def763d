import { auditRow } from '../../db/audit.ts';
import type { Database } from '../../db/connection/client.ts';
import { alias, and, eq, inArray, isNull, lt, max, sql } from '../../db/connection/drizzle.ts';
import { array, increment, insertInto, nameOf } from '../../db/connection/statements.ts';
import { INTERRUPTED, IS_LIVE, lockKeyOf } from '../../db/runs/status.ts';
import { heldBatches, sources, syncRuns } from '../../db/schema.ts';
import { RAISE } from '../../db/versions.ts';
import type { Decider } from '../../domain/operator.ts';
import type { RunCause, RunRequests } from '../../domain/run.ts';
import { SourceDisabled } from '../../domain/source.ts';
import { disablingOf } from './disabled.ts';

export type RunOutcome = 'changed' | 'unchanged' | 'held' | 'failed' | 'superseded' | 'cancelled';

export const NO_COUNTS = { seen: 0, added: 0, changed: 0, retired: 0, rejected: 0, withdrawn: 0 };

export type RunCounts = Readonly<typeof NO_COUNTS>;

/** A run. It may write while its fence is that of its source, until the next run begins. */
export interface Run {
  readonly id: number;
  readonly sourceId: string;
  readonly fence: number;
  /** Returns the HTTP requests of the run, to store at its end. */
  readonly requests?: () => RunRequests | undefined;
}

export interface ChangedBy {
  readonly runId: number | null;
  readonly sourceId: string;
  readonly now: string;
}

const s = alias(sources, 's');
const before = alias(sources, 'before');
const r = alias(syncRuns, 'r');

/** Stores a configured source. A source that is removed from the configuration keeps its data. */
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

export interface RunOrigin {
  /** `slot` becomes `first` for the first run of a source. */
  readonly cause: Exclude<RunCause, 'first' | 'retry'>;
  readonly by?: string | undefined;
  /** Causes an audit row `source.run`; absent if the row exists already. */
  readonly decider?: Decider | undefined;
}

export interface BeginOptions {
  readonly origin?: RunOrigin | undefined;
  /** Takes the lock of a live run on this connection; see live.ts. */
  readonly isLocked?: boolean;
  /** True for the only run of a worker; absent outside of workers. */
  readonly alone?: boolean;
  /** For decisions of operators, which do not read the source. */
  readonly evenIfDisabled?: boolean;
}

/** Raises the source's fence and records the run. An earlier live run may not write any more. @throws SourceDisabled */
export async function beginRun(
  db: Database,
  sourceId: string,
  slot: string | undefined,
  { isLocked = false, evenIfDisabled = false, alone, origin }: BeginOptions = {},
): Promise<Run> {
  const isLive = sql.raw(IS_LIVE);
  const given = origin?.cause ?? null;
  const slotTime = sql`${slot ?? null}::timestamptz`;
  const earlier = sql`select from ${syncRuns} where ${syncRuns.sourceId} = ${sourceId}`;
  const cause = sql`case when ${given}::text is distinct from 'slot' then ${given}
    when not exists (${earlier}) then 'first'
    when exists (${earlier} and ${syncRuns.slot} = ${slotTime}) then 'retry' else 'slot' end`;
  const askedBy = origin?.by ?? origin?.decider?.by ?? null;
  const begins = {
    sourceId,
    fence: sql`fence`,
    slot: slotTime,
    cause,
    askedBy,
    alone: alone ?? null,
  };
  const subject = { kind: 'source', id: sourceId };
  const details = sql`jsonb_build_object('run', id)`;
  const audited = origin?.decider
    ? sql`, audited as (${auditRow(origin.decider, { action: 'source.run', subject, details })} from begun)`
    : sql``;
  const [row] = await db.execute<{ id: string; fence: string }>(sql`
    with raised as (
      update ${sources} set ${nameOf(sources.fence)} = ${increment(sources.fence)}
      where ${sources.id} = ${sourceId} and (${sources.disabledAt} is null or ${evenIfDisabled})
      returning ${sources.fence}
    ), stale as (
      update ${syncRuns} ${r} set ${nameOf(r.finishedAt)} = now(),
        ${nameOf(r.outcome)} = case when ${isLive} then 'superseded' else 'interrupted' end,
        ${nameOf(r.error)} = case when ${isLive} then null else ${INTERRUPTED} end
      where ${r.sourceId} = ${sourceId} and ${r.outcome} = 'running' and exists (select from raised)
    ), begun as (
      ${insertInto(syncRuns, begins)} from raised
      returning ${syncRuns.id}, ${syncRuns.fence}
    )${audited}
    select id, fence, case when ${isLocked} then pg_try_advisory_lock_shared(${sql.raw(lockKeyOf('id'))}) end from begun`);
  if (!row) {
    const disabling = await disablingOf(db, sourceId);
    throw disabling === undefined
      ? new Error(`source ${sourceId} is not registered`)
      : new SourceDisabled(sourceId, disabling);
  }
  return { id: Number(row.id), sourceId, fence: Number(row.fence) };
}

/** A process that hung was recorded as interrupted. When it continues, it records that a later run superseded it. */
const mayBecome = (outcome: RunOutcome) =>
  outcome === 'superseded' ? (['running', 'interrupted'] as const) : (['running'] as const);

/** Locks the source for the rest of the transaction. Returns false if the run may not write any more. */
export async function holdsFence(db: Database, run: Run): Promise<boolean> {
  const [source] = await db
    .select({ fence: sources.fence })
    .from(sources)
    .where(eq(sources.id, run.sourceId))
    .for('update');
  return source?.fence === run.fence;
}

type RunDetails = Pick<
  typeof syncRuns.$inferInsert,
  'changedAt' | 'namings' | 'rates' | 'reasons' | 'decidedBatch' | 'decision'
>;

/** Records the end of a run. A good run moves the source's freshness forward to `readAt`; regions have their own in freshness.ts. */
export async function finishRun(
  db: Database,
  run: Run,
  outcome: RunOutcome,
  counts: RunCounts | undefined,
  readAt: string,
  error?: string,
  details: RunDetails = {},
): Promise<void> {
  const requests = run.requests?.();
  const ended = await db
    .update(syncRuns)
    .set({
      ...counts,
      ...details,
      finishedAt: sql`clock_timestamp()`,
      outcome,
      error: error ?? null,
      requests,
    })
    .where(and(eq(syncRuns.id, run.id), inArray(syncRuns.outcome, mayBecome(outcome))));
  // Another process recorded the run as superseded or cancelled, without its requests.
  if (ended.count === 0 && requests !== undefined)
    await db
      .update(syncRuns)
      .set({ requests })
      .where(and(eq(syncRuns.id, run.id), isNull(syncRuns.requests)));
  if (outcome !== 'changed' && outcome !== 'unchanged') return;
  // The list of providers is as fresh as its stalest source, so the first good run of a source changes it.
  await db.execute(sql`
    with verified as (
      update ${sources} ${s}
      set ${nameOf(s.verifiedAt)} = greatest(${s.verifiedAt}, ${readAt}::timestamptz), ${nameOf(s.retiredAt)} = null
      from ${sources} ${before}
      where ${s.id} = ${run.sourceId} and ${before.id} = ${s.id}
      returning (${before.verifiedAt} is null or ${before.retiredAt} is not null) and ${s.kind} = 'catalogue' as first
    )
    ${RAISE.providers} where exists (select from verified where first)`);
}

/** Returns true if one of these sources is enabled and has no finished run yet. */
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

const RUNS_PER_SOURCE = 2000;

/** Records a failed watch. It does not raise the fence, so a live run continues. */
export async function recordFailedWatch(db: Database, sourceId: string, error: string): Promise<void> {
  const finishedAt = sql`clock_timestamp()`;
  const { id, fence } = sources;
  await db.execute(sql`
    ${insertInto(syncRuns, { sourceId: id, fence, finishedAt, outcome: 'failed', error, cause: 'watch' })}
    from ${sources} where ${id} = ${sourceId}`);
}

/** Deletes all but the last run of a watched source among those that changed nothing, so that they do not fill the list of runs. */
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

/** Deletes old runs, unless their changes or held batches are stored, and batches that were superseded a week ago. */
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
        order by ${syncRuns.id} desc offset ${RUNS_PER_SOURCE - 1} limit 1) as oldest
      from ${sources}
    ) latest
    where ${syncRuns.sourceId} = latest.id and ${syncRuns.id} < latest.oldest and ${syncRuns.changedAt} is null
      and not exists (select from ${heldBatches} where ${heldBatches.runId} = ${syncRuns.id})`);
}

/**
 * Moves a batch from its source into the database, in the same steps for every kind of source:
 *
 *     fetch → stage → compare → guard → store or hold → finish
 *
 * Staging fills temporary tables of one connection. All later steps are one transaction, which begins and ends here.
 */
import type { ConnectionDatabase, Store } from '../db/connection/connect.ts';
import { sql } from '../db/connection/drizzle.ts';
import { type BatchDecision, decide, isOpen } from '../db/held-batches.ts';
import { writeQuarantine } from '../db/quarantine.ts';
import { groupReasons, type ReasonGroup, type RejectedKey } from '../domain/rejected-rows.ts';
import { COMPLETE, type Completeness, type Naming, type RateChange } from '../domain/run.ts';
import { traced } from '../domain/tracer.ts';
import type { ValidatorItem } from '../sources/source.ts';
import { checkCurrency, type Pricing } from './currency.ts';
import { type BrokenGuard, brokenGuards, type Guard } from './guards.ts';
import { heldReadAt, supersedeHeld } from './runs/hold.ts';
import { cancelledRuns } from './runs/live.ts';
import { finishRun, holdsFence, NO_COUNTS, type Run, type RunCounts } from './runs/run.ts';
import { recordUndo, restoreBefore } from './runs/undo.ts';
import { isUnmodified, saveValidators } from './validators.ts';

/** How a run ended. A held run may have stored the safe part of its batch: docs/decisions/0025. */
export interface SyncResult extends Completeness {
  readonly outcome: 'changed' | 'unchanged' | 'held' | 'superseded' | 'cancelled';
  readonly counts: RunCounts;
  readonly broken: readonly BrokenGuard[];
  /** The unusable rows, at most `REJECTED_KEPT` + 1. `counts` has all of them. */
  readonly rejected: readonly RejectedKey[];
  /** Why published machines are excluded now. */
  readonly withdrawn: readonly ReasonGroup[];
}

export type Progress = (seen: number) => void;

export interface SyncOptions {
  readonly store: Store;
  readonly run: Run;
  /** The key of stored validators, see validators.ts. A run without it stores no validator. */
  readonly parseFingerprint?: string;
  /** True after an operator's approval: broken guards then do not hold the batch. */
  readonly approved?: boolean;
  /** The decision to execute. Nothing is stored after another decision, or after a later run. */
  readonly decision?: BatchDecision;
  readonly now: () => Date;
}

/** A complete batch in the staging tables. */
export interface Staged {
  readonly seen: number;
  readonly validators: readonly ValidatorItem[];
  /** The upstream's own time of the whole batch, RFC 3339. */
  readonly dataTime: string | undefined;
}

export interface Compared {
  readonly counts: Pick<RunCounts, 'seen' | 'rejected'> & Partial<RunCounts>;
  readonly rejected: readonly RejectedKey[];
  readonly guards: readonly Guard[];
  /** Why published machines would be excluded. */
  readonly withdrawn: readonly ReasonGroup[];
  /** Without the regions that have no usable row, which `Written` has. */
  readonly completeness: Completeness;
}

export interface Written {
  readonly changed: boolean;
  readonly counts: Partial<RunCounts>;
  /** Regions without a usable row. They are quarantined in addition to the rejected rows. */
  readonly unread: readonly RejectedKey[];
  readonly namings?: readonly Naming[];
  readonly rates?: readonly RateChange[];
}

/** The steps of one kind of source. All except `stage` run within the pipeline's transaction. */
export interface BatchKind<S extends Staged, C extends Compared> {
  /** Absent for a kind without prices. */
  readonly pricing?: Pricing;
  /** Creates and fills the temporary tables. @throws SourceError if the source cannot be read completely */
  stage(db: ConnectionDatabase): Promise<S>;
  /** Stores that the source is unmodified. Returns the number of stored rows, which count as seen. @param readAt RFC 3339 */
  confirm(db: ConnectionDatabase, readAt: string): Promise<number>;
  /** Locks the rows that another source may change as well, before the comparison. */
  lock(db: ConnectionDatabase): Promise<void>;
  compare(db: ConnectionDatabase, staged: S): Promise<C>;
  /**
   * Stores the batch for an operator's decision.
   * @param held the broken guards, and when the batch was read (RFC 3339)
   * @returns the part of the batch that is safe to store without a decision
   */
  hold(db: ConnectionDatabase, run: Run, compared: C, held: Holding): Promise<C | undefined>;
  /** Stores the current rows, so that an operator can undo an approval. */
  saveBefore(db: ConnectionDatabase, decision: BatchDecision): Promise<void>;
  write(db: ConnectionDatabase, compared: C, writing: Writing): Promise<Written>;
}

export interface Holding {
  readonly broken: readonly BrokenGuard[];
  readonly readAt: string;
}

/** The run that writes, and its times in RFC 3339. */
export interface Writing {
  readonly runId: number;
  /** The time of every change in this transaction. */
  readonly now: string;
  /** When the batch was read; undefined for an undo, which restores the freshness as well. */
  readonly readAt: string | undefined;
}

/**
 * Stores one complete batch, or holds it for an operator. A failure changes nothing.
 * @throws SourceError if the source cannot be read completely
 */
export async function syncBatch<S extends Staged, C extends Compared>(
  kind: BatchKind<S, C>,
  sync: SyncOptions,
): Promise<SyncResult> {
  // The end of the connection is the rollback, also after a failure and after a lost connection.
  await using connection = sync.store.connection();
  const { db } = connection;
  const { run, decision } = sync;
  const began = sync.now().toISOString();
  const staged = await traced('sync read', {}, async (note) => {
    const read = await kind.stage(db);
    note({ 'fleetbook.rows': read.seen });
    return read;
  });
  const times = { now: sync.now().toISOString(), readAt: earlier(began, staged.dataTime) };

  await db.execute(sql`begin`);
  if (!(await holdsFence(db, run)) || !(await isOpen(db, decision))) {
    await db.execute(sql`rollback`);
    await finishRun(db, run, 'superseded', undefined, times.readAt);
    const [cancelled] = await cancelledRuns(db, [run.id]);
    return nothingStored(cancelled === undefined ? 'superseded' : 'cancelled');
  }
  const result = isUnmodified(staged.validators)
    ? await storeUnmodified(db, kind, run, times.readAt)
    : await storeOrHold(db, kind, sync, staged, times);
  await traced('sync commit', {}, () => db.execute(sql`commit`));
  return result;
}

export interface PreviewOptions {
  readonly store: Store;
  readonly sourceId: string;
  readonly limit: number | undefined;
}

export interface Previewed<Diff> {
  readonly diff: Diff;
  /** Why rows of the batch are unusable. */
  readonly reasons: readonly ReasonGroup[];
}

/** Returns the changes that a held batch would make now. It writes nothing: the connection ends without a commit. */
export async function previewBatch<S extends Staged, C extends Compared & { readonly diff: unknown }, Rows>(
  kind: BatchKind<S, C>,
  { store, limit }: PreviewOptions,
  rows: (db: ConnectionDatabase, limit: number | undefined, compared: C) => Promise<Rows>,
): Promise<Previewed<C['diff']> & Rows> {
  await using connection = store.connection();
  const { db } = connection;
  const staged = await kind.stage(db);
  await db.execute(sql`begin`);
  const compared = await kind.compare(db, staged);
  const { diff, rejected } = compared;
  return { diff, reasons: groupReasons(rejected), ...(await rows(db, limit, compared)) };
}

export function earlier(one: string, other: string | undefined): string {
  return other !== undefined && Date.parse(other) < Date.parse(one) ? other : one;
}

/** Stores the result of an unmodified source. It supersedes a held batch. */
async function storeUnmodified(
  db: ConnectionDatabase,
  kind: Pick<BatchKind<Staged, Compared>, 'confirm'>,
  run: Run,
  readAt: string,
): Promise<SyncResult> {
  await supersedeHeld(db, run.sourceId);
  const counts = { ...NO_COUNTS, seen: await kind.confirm(db, readAt) };
  await finishRun(db, run, 'unchanged', counts, readAt);
  return { ...nothingStored('unchanged'), counts };
}

/** Guards that count quarantined rows: an approval of a batch that they hold covers these rows. */
const APPROVED_WITH_ROWS: readonly BrokenGuard['guard'][] = ['rejected', 'duplicates'];

const MOST_REASONS = 20;

async function storeOrHold<S extends Staged, C extends Compared>(
  db: ConnectionDatabase,
  kind: BatchKind<S, C>,
  { run, decision, approved = false, parseFingerprint }: SyncOptions,
  staged: S,
  { now, readAt: ownTime }: { readonly now: string; readonly readAt: string },
): Promise<SyncResult> {
  if (kind.pricing) await checkCurrency(db, kind.pricing);
  // The data of an approved batch is as old as its first reading.
  const readAt = decision === undefined ? ownTime : await heldReadAt(db, decision.batchId);
  await kind.lock(db);
  const compared = await traced('sync compare', {}, () => kind.compare(db, staged));
  const broken = brokenGuards(compared.guards);
  const { rejected, withdrawn, completeness } = compared;
  const { seen, rejected: rejectedCount } = compared.counts;
  const finish = async (
    outcome: 'changed' | 'unchanged' | 'held',
    stored: Partial<RunCounts>,
    { changed, namings, rates, unread = [] }: Partial<Written> = {},
  ) => {
    const counts = { ...NO_COUNTS, ...stored, seen, rejected: rejectedCount };
    const why = outcome === 'held' ? broken.map(({ detail }) => detail).join('; ') : undefined;
    await finishRun(db, run, outcome, counts, readAt, why, {
      changedAt: changed ? now : null,
      namings: unlessEmpty(namings),
      rates: unlessEmpty(rates),
      reasons: unlessEmpty(groupReasons(rejected).slice(0, MOST_REASONS)),
      decidedBatch: decision?.batchId,
      decision: decision?.kind,
    });
    if (decision?.kind === 'undo') await recordUndo(db, decision);
    const all = { ...completeness, unread: completeness.unread + unread.length };
    return { outcome, counts, broken, rejected, withdrawn, ...all };
  };

  const isHeld = broken.length > 0 && !approved;
  const safe = isHeld
    ? await traced('sync hold', {}, () => kind.hold(db, run, compared, { broken, readAt }))
    : compared;
  if (safe === undefined) return finish('held', {});
  const isUndo = decision?.kind === 'undo';
  if (decision?.kind === 'approve') await kind.saveBefore(db, decision);
  const written = await traced('sync write', {}, () =>
    kind.write(db, safe, { runId: run.id, now, readAt: isUndo ? undefined : readAt }),
  );
  if (isUndo) await restoreBefore(db, decision, run.sourceId);
  else {
    const approvesRows = approved && broken.some(({ guard }) => APPROVED_WITH_ROWS.includes(guard));
    const quarantined = [...rejected, ...written.unread];
    await writeQuarantine(db, run.sourceId, quarantined, approvesRows ? now : undefined);
  }
  // A held payload has to be read again, because not all of it is stored.
  await saveValidators(db, run.sourceId, isHeld ? undefined : parseFingerprint, staged.validators, rejected);
  const counts = { ...safe.counts, ...written.counts };
  if (isHeld) return finish('held', counts, written);
  if (decision?.kind === 'approve') await decide(db, decision.batchId, 'approved', decision.decider);
  else if (!approved) await supersedeHeld(db, run.sourceId);
  return finish(written.changed ? 'changed' : 'unchanged', counts, written);
}

const unlessEmpty = <T>(list: readonly T[] = []) => (list.length > 0 ? list : null);

export function nothingStored(outcome: SyncResult['outcome']): SyncResult {
  return { outcome, counts: NO_COUNTS, broken: [], rejected: [], withdrawn: [], ...COMPLETE };
}

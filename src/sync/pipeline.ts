/**
 * The way of a batch from its source into the database, the same for every kind of source:
 *
 *     fetch → stage → compare → guard → store or hold → finish
 *
 * What is read is staged in temporary tables of a session. The rest is one transaction, which begins and ends here. A kind
 * of source says how its rows are staged, compared and written.
 */

import type { SessionDatabase, Store } from '../db/connection/connect.ts';
import { sql } from '../db/connection/drizzle.ts';
import { type BatchDecision, decide, isOpen } from '../db/held-batches.ts';
import { writeQuarantine } from '../db/quarantine.ts';
import { stampEveryRegion } from '../db/sync/freshness.ts';
import { heldReadAt, supersedeHeld } from '../db/sync/hold-batch.ts';
import { cancelledRuns } from '../db/sync/live-runs.ts';
import {
  finishRun,
  holdsFence,
  NO_COUNTS,
  type Run,
  type RunCounts,
  recordEffect,
  recordReasons,
} from '../db/sync/run.ts';
import { recordUndo, restoreBefore } from '../db/sync/undo.ts';
import type { Naming, RateChange } from '../domain/changes.ts';
import { groupReasons, type ReasonGroup, type RejectedKey } from '../domain/rejected-rows.ts';
import { traced } from '../lib/tracer.ts';
import type { ValidatorItem } from '../sources/validator.ts';
import { checkCurrency, type Pricing } from './currency.ts';
import type { BrokenGuard } from './guard.ts';
import { nothingStored, type SyncResult } from './result.ts';
import { isUnmodified, saveValidators } from './validators.ts';

/** Called now and then with the number of rows seen so far. */
export type Progress = (seen: number) => void;

export interface SyncOptions {
  readonly store: Store;
  readonly run: Run;
  /** The payloads' validators are saved under it, see db/sync/validators.ts; none are saved without it. */
  readonly parseFingerprint?: string;
  /** An operator has approved the batch: it is compared again and stored whatever the guards say. */
  readonly approved?: boolean;
  /** The decision that is carried out. Nothing is stored when somebody else has decided, or a run has come since. */
  readonly decision?: BatchDecision;
  readonly now: () => Date;
}

/** A batch that was read whole and staged. */
export interface Staged {
  readonly seen: number;
  readonly validators: readonly ValidatorItem[];
  /** How old all of it is by the upstream's own word, RFC 3339. */
  readonly dataTime: string | undefined;
}

/** What a batch would change. */
export interface Compared {
  readonly counts: Pick<RunCounts, 'seen' | 'rejected'> & Partial<RunCounts>;
  /** The rows that cannot be used; at most one more than are kept. */
  readonly rejected: readonly RejectedKey[];
  readonly broken: readonly BrokenGuard[];
  /** Why machines that readers see would be excluded. */
  readonly withdrawn: readonly ReasonGroup[];
  /** How many regions the batch names. */
  readonly regionCount: number;
}

/** What was written of a batch. */
export interface Written {
  readonly changed: boolean;
  readonly counts: Partial<RunCounts>;
  /** Regions without a usable row, quarantined besides the rejected rows. */
  readonly unread: readonly RejectedKey[];
  /** The names that it changed. */
  readonly namings?: readonly Naming[];
  /** The exchange rates that it changed. */
  readonly rates?: readonly RateChange[];
}

/** What one kind of source does in its own way. All but `stage` is done within the pipeline's transaction. */
export interface BatchKind<S extends Staged, C extends Compared> {
  /** Absent for a kind without prices. */
  readonly pricing?: Pricing;
  /** Makes the temporary tables and fills them. @throws SourceError when the source cannot be read whole */
  stage(db: SessionDatabase): Promise<S>;
  /** How many of its rows are stored: what an unmodified run has seen. */
  countStored(db: SessionDatabase): Promise<number>;
  /** Locks the rows that another source may change too, before anything is compared. */
  lock(db: SessionDatabase): Promise<void>;
  compare(db: SessionDatabase, staged: S): Promise<C>;
  /**
   * Keeps the batch for an operator's decision.
   * @param readAt when it was read, RFC 3339
   * @returns the part of it that is safe to be stored all the same
   */
  hold(db: SessionDatabase, run: Run, compared: C, readAt: string): Promise<C | undefined>;
  /** Keeps what is stored, so that an approval can be undone. */
  saveBefore(db: SessionDatabase, decision: BatchDecision): Promise<void>;
  write(db: SessionDatabase, compared: C, writing: Writing): Promise<Written>;
}

/** Whose changes these are, and when; times in RFC 3339. */
export interface Writing {
  readonly runId: number;
  /** Of every change in this transaction. */
  readonly now: string;
  /** When the batch was read; undefined where freshness is restored with the rest. */
  readonly readAt: string | undefined;
}

/**
 * Stores one whole batch, or holds it for an operator. A failure on the way leaves everything as it was.
 * @throws SourceError when the source cannot be read whole
 */
export async function syncBatch<S extends Staged, C extends Compared>(
  kind: BatchKind<S, C>,
  sync: SyncOptions,
): Promise<SyncResult> {
  // Ending the session is the rollback: nothing that fails on the way leaves a trace, not even a lost connection.
  await using session = sync.store.session();
  const { db } = session;
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
    ? await keepUnmodified(db, run, await kind.countStored(db), times.readAt)
    : await storeOrHold(db, kind, sync, staged, times);
  await traced('sync commit', {}, () => db.execute(sql`commit`));
  return result;
}

export interface PreviewOptions {
  readonly store: Store;
  readonly sourceId: string;
  /** Rows of each kind of change; undefined for all. */
  readonly limit: number | undefined;
}

/** What every preview tells. */
export interface Previewed<Diff> {
  readonly diff: Diff;
  /** Why rows of the batch cannot be used. */
  readonly reasons: readonly ReasonGroup[];
}

/** What a held batch would change now. Nothing is written: the session ends without a commit. */
export async function previewBatch<S extends Staged, C extends Compared & { readonly diff: unknown }, Rows>(
  kind: BatchKind<S, C>,
  { store, limit }: PreviewOptions,
  rows: (db: SessionDatabase, limit: number | undefined, compared: C) => Promise<Rows>,
): Promise<Previewed<C['diff']> & Rows> {
  await using session = store.session();
  const { db } = session;
  const staged = await kind.stage(db);
  await db.execute(sql`begin`);
  const compared = await kind.compare(db, staged);
  const { diff, rejected } = compared;
  return { diff, reasons: groupReasons(rejected), ...(await rows(db, limit, compared)) };
}

/** The earlier of two instants, RFC 3339; the second may not be known. */
export function earlier(one: string, other: string | undefined): string {
  return other !== undefined && Date.parse(other) < Date.parse(one) ? other : one;
}

/** The source said that all is as it was. A held batch is out of date by that. */
async function keepUnmodified(
  db: SessionDatabase,
  run: Run,
  seen: number,
  readAt: string,
): Promise<SyncResult> {
  const counts = { ...NO_COUNTS, seen };
  await supersedeHeld(db, run.sourceId);
  await stampEveryRegion(db, run.sourceId, readAt);
  await finishRun(db, run, 'unchanged', counts, readAt);
  return { ...nothingStored('unchanged'), counts };
}

/** Guards that count quarantined rows: an approval of a batch that they hold covers these rows. */
const APPROVED_WITH_ROWS: readonly BrokenGuard['guard'][] = ['rejected', 'duplicates'];

async function storeOrHold<S extends Staged, C extends Compared>(
  db: SessionDatabase,
  kind: BatchKind<S, C>,
  { run, decision, approved = false, parseFingerprint }: SyncOptions,
  staged: S,
  { now, readAt: ownTime }: { readonly now: string; readonly readAt: string },
): Promise<SyncResult> {
  if (kind.pricing) await checkCurrency(db, kind.pricing);
  // An approval makes the batch's data no younger.
  const readAt = decision === undefined ? ownTime : await heldReadAt(db, decision.batchId);
  await kind.lock(db);
  const compared = await traced('sync compare', {}, () => kind.compare(db, staged));
  const { broken, rejected, withdrawn, regionCount: regions } = compared;
  const { seen, rejected: rejectedCount } = compared.counts;
  const finish = async (outcome: 'changed' | 'unchanged' | 'held', stored: Partial<RunCounts>) => {
    const counts = { ...NO_COUNTS, ...stored, seen, rejected: rejectedCount };
    const why = outcome === 'held' ? broken.map(({ detail }) => detail).join('; ') : undefined;
    await recordReasons(db, run, groupReasons(rejected));
    await finishRun(db, run, outcome, counts, readAt, why);
    if (decision?.kind === 'undo') await recordUndo(db, decision);
    return { outcome, counts, broken, rejected, withdrawn, regions };
  };

  const isHeld = broken.length > 0 && !approved;
  const safe = isHeld ? await traced('sync hold', {}, () => kind.hold(db, run, compared, readAt)) : compared;
  if (safe === undefined) return finish('held', {});
  const isUndo = decision?.kind === 'undo';
  if (decision?.kind === 'approve') await kind.saveBefore(db, decision);
  const written = await traced('sync write', {}, () =>
    kind.write(db, safe, { runId: run.id, now, readAt: isUndo ? undefined : readAt }),
  );
  const { changed, namings = [], rates = [] } = written;
  await recordEffect(db, run, { changedAt: changed ? now : undefined, namings, rates, decision });
  if (isUndo) await restoreBefore(db, decision, run.sourceId);
  else {
    const approvesRows = approved && broken.some(({ guard }) => APPROVED_WITH_ROWS.includes(guard));
    const quarantined = [...rejected, ...written.unread];
    await writeQuarantine(db, run.sourceId, quarantined, approvesRows ? now : undefined);
  }
  // What is held has to be read again: its payload says more than what is stored.
  await saveValidators(db, run.sourceId, isHeld ? undefined : parseFingerprint, staged.validators, rejected);
  const counts = { ...safe.counts, ...written.counts };
  if (isHeld) return finish('held', counts);
  if (decision?.kind === 'approve') await decide(db, decision.batchId, 'approved', decision.decider);
  else if (!approved) await supersedeHeld(db, run.sourceId);
  return finish(written.changed ? 'changed' : 'unchanged', counts);
}

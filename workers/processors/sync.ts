import { DelayedError, type Job, type Queue, UnrecoverableError, WaitingError } from 'bullmq';
import type { Logger } from 'pino';
import { inLogContext } from '../../src/app/log-context.ts';
import type { Worker } from '../../src/app/worker.ts';
import type { Config, SourceConfig } from '../../src/config/config.ts';
import { wasCancelledSince } from '../../src/db/sync/live-runs.ts';
import { anyNeverRan, type RunOrigin } from '../../src/db/sync/run.ts';
import {
  isLatestSlotOpen,
  isSlotCovered,
  isSlotRead,
  releaseSlot,
  type Slot,
  setSlotDue,
} from '../../src/db/sync/slots.ts';
import { SourceDisabled } from '../../src/domain/disabled-source.ts';
import { groupReasons } from '../../src/domain/rejected-rows.ts';
import { latestSlot, nextSlot } from '../../src/domain/schedule.ts';
import { messageOf } from '../../src/lib/driver-error.ts';
import { SourceError } from '../../src/sources/source.ts';
import type { SyncResult } from '../../src/sync/result.ts';
import { AttemptFailed } from '../attempt-failed.ts';
import { enqueueNewlyRated } from '../newly-rated.ts';
import type { SyncJob } from '../queues.ts';
import { nextAttempt } from '../retry.ts';
import { Suspects } from './set-aside.ts';

/** What a job leaves behind, as the queues' page shows it. */
export type SyncJobResult =
  | ({ readonly outcome: 'changed' | 'unchanged'; readonly published: boolean } & SyncResult['counts'])
  | {
      readonly outcome: 'held';
      readonly stored: false;
      /** What each guard that was broken says. */
      readonly reasons: readonly string[];
      /** What an operator does about it. */
      readonly decide: string;
      readonly seen: number;
    }
  | { readonly outcome: 'superseded' | 'cancelled'; readonly stored: false };

export interface SyncDependencies {
  readonly config: Config;
  readonly worker: Worker;
  /** For runs that follow from one. */
  readonly queue: Queue<SyncJob>;
  readonly logger: Logger;
  observe?(sourceId: string, outcome: SyncResult['outcome'] | 'failed', seconds: number): void;
}

/**
 * Runs one source and publishes what changed. A failure that time may heal is tried again, with growing pauses and never
 * before the upstream wants it, until the next slot of the source takes over; one that needs a person is not. The job of
 * a source that was disabled since it was enqueued is passed over.
 */
export function syncProcessor(dependencies: SyncDependencies) {
  const process = jobProcessor(dependencies);
  return (job: Job<SyncJob>, token?: string, signal?: AbortSignal): Promise<SyncJobResult | undefined> =>
    inLogContext({ sourceId: job.data.sourceId, slot: job.data.slot }, () => process(job, token, signal));
}

function jobProcessor(dependencies: SyncDependencies) {
  const { config, worker, queue, logger, observe } = dependencies;
  const suspects = new Suspects();
  return async (
    job: Job<SyncJob>,
    token?: string,
    signal?: AbortSignal,
  ): Promise<SyncJobResult | undefined> => {
    const { sourceId, slot } = job.data;
    const source = config.sources.find(({ id }) => id === sourceId);
    if (!source) {
      logger.warn({ sourceId }, 'a job for a source that is not configured here was dropped');
      return undefined;
    }
    const started = performance.now();
    const seconds = () => (performance.now() - started) / 1000;
    const ownSlot = ownSlotOf(job);
    try {
      if (ownSlot !== undefined && (await isSlotCovered(worker.store.db, ownSlot))) {
        logger.info({ sourceId, slot }, 'a later slot takes over; this one is given up');
        return undefined;
      }
      const begun = new Date(job.timestamp);
      if (job.stalledCounter > 0 && (await wasCancelledSince(worker.store.db, sourceId, begun))) {
        logger.info({ sourceId, slot }, 'an operator has cancelled the run of this job; it is given up');
        await keepDue(dependencies, ownSlot, undefined);
        return { outcome: 'cancelled', stored: false };
      }
      if (ownSlot !== undefined && job.stalledCounter > 0 && (await isSlotRead(worker.store.db, ownSlot))) {
        logger.info(
          { sourceId, slot },
          'the worker that read this slot has died; what followed is made up for',
        );
        await keepDue(dependencies, ownSlot, undefined);
        await publish(worker, logger);
        // Whether machines came with it is not known any more.
        if (source.kind === 'catalogue') await resolveAgain(config, queue, slot);
        return undefined;
      }
      if (await waitsForOthers(source, config, worker)) {
        await job.moveToDelayed(Date.now() + FIRST_RUN_WAIT_MS, token);
        throw new DelayedError();
      }
      using _turn = await suspects.admit(worker.store.db, sourceId, logger, signal);
      const begin = { slot: ownSlot?.slot, origin: originOf(job), signal, inWorker: true };
      const result = await worker.runSource(source, begin);
      observe?.(sourceId, result.outcome, seconds());
      const reasons = result.rejected.length > 0 ? { reasons: groupReasons(result.rejected) } : {};
      logger.info(
        { sourceId, slot, outcome: result.outcome, ...result.counts, ...reasons },
        result.outcome === 'cancelled' ? 'an operator has cancelled the run' : 'synced',
      );
      if (result.outcome === 'held')
        logger.warn({ sourceId, broken: result.broken }, 'the batch is held for an operator');
      await keepDue(dependencies, ownSlot, undefined);
      const published = await publish(worker, logger);
      if (result.outcome !== 'changed' && result.outcome !== 'unchanged') return notStored(sourceId, result);
      if (source.kind === 'catalogue' && result.counts.added > 0) await resolveAgain(config, queue, slot);
      if (source.kind === 'rates') await enqueueNewlyRated(config, worker, queue);
      return { outcome: result.outcome, published, ...result.counts };
    } catch (error) {
      if (error instanceof DelayedError) throw error;
      if (error instanceof SourceDisabled) {
        logger.info({ sourceId, slot }, `passed over: ${error.message}`);
        await giveBack(worker, job, ownSlot);
        return undefined;
      }
      if (signal?.aborted) {
        // The worker stops: the next one takes the job up, and this was no failed attempt.
        await job.moveToWait(token);
        throw new WaitingError();
      }
      observe?.(sourceId, 'failed', seconds());
      throw await failedAttempt(dependencies, { job, source, error, tookMs: seconds() * 1000 });
    }
  };
}

/** The counts of a batch that was not stored would read as if it had been. */
function notStored(sourceId: string, { outcome, broken, counts }: SyncResult): SyncJobResult {
  if (outcome !== 'held') return { outcome: outcome === 'cancelled' ? outcome : 'superseded', stored: false };
  return {
    outcome,
    stored: false,
    reasons: broken.map(({ detail }) => detail),
    decide: `fleetbook hold show ${sourceId}`,
    seen: counts.seen,
  };
}

/** Why a job runs. Who asked for a run has written that into the audit log before it was enqueued. */
function originOf({ data: { isAdditional, askedBy } }: Job<SyncJob>): RunOrigin {
  if (askedBy !== undefined) return { cause: 'hand', by: askedBy };
  return { cause: isAdditional ? 'follow' : 'slot' };
}

/** The slot whose job this is; undefined for a job that runs beside it. */
function ownSlotOf({ data: { sourceId, slot, isAdditional } }: Job<SyncJob>): Slot | undefined {
  return isAdditional ? undefined : { schedule: sourceId, slot };
}

interface Failed {
  readonly job: Job<SyncJob>;
  readonly source: SourceConfig;
  readonly error: unknown;
  readonly tookMs: number;
}

/** Decides what follows, keeps it in Postgres, tells the operator, and gives what the job is to fail with. */
async function failedAttempt(dependencies: SyncDependencies, failed: Failed): Promise<Error> {
  const { worker, logger } = dependencies;
  const { job, source, error, tookMs } = failed;
  const { slot } = job.data;
  const ownSlot = ownSlotOf(job);
  const now = new Date();
  // The slot after the one that the job was made for, also when the job began late.
  const begun = new Date(job.timestamp);
  const next = new Date(nextSlot(source.schedule, begun));
  const { kind, retryAfterMs } =
    error instanceof SourceError ? error : { kind: 'internal' as const, retryAfterMs: undefined };
  const following = nextAttempt(
    {
      kind,
      failures: job.attemptsMade + 1,
      tookMs,
      retryAfterMs,
      now,
      nextSlot: next,
      intervalMs: next.getTime() - Date.parse(latestSlot(source.schedule, begun)),
    },
    Math.random,
  );
  // One chain of attempts for each source: where the slot's own goes on, an additional look is not repeated.
  const isNeedless =
    ownSlot === undefined && (await isLatestSlotOpen(worker.store.db, source.id).catch(() => false));
  const at = isNeedless ? undefined : following.at;
  await keepDue(dependencies, ownSlot, at ?? following.nextSlotNotBefore);
  const told = messageOf(error);
  const again = (at ?? following.nextSlotNotBefore ?? next).toISOString();
  const then = isNeedless ? 'the attempts of its slot go on' : `it is tried again at ${again}`;
  const context = { sourceId: source.id, slot, kind, ...(isNeedless ? {} : { nextAttempt: again }) };
  // What is no failure of the source is told with all that is known of it.
  if (error instanceof SourceError) logger.warn(context, `sync failed: ${told}; ${then}`);
  else logger.warn({ ...context, err: error }, `sync failed; ${then}`);
  return at === undefined
    ? new UnrecoverableError(told)
    : new AttemptFailed(error, at.getTime() - now.getTime());
}

/**
 * The slot of a disabled source is free again, and its job leaves no trace whose id would stop another one: once the
 * source is enabled, the slot is made up for like one that passed meanwhile.
 */
async function giveBack(worker: Worker, job: Job<SyncJob>, slot: Slot | undefined): Promise<void> {
  job.opts.removeOnComplete = true;
  if (slot !== undefined) await releaseSlot(worker.store.db, slot);
}

/** What Postgres knows of the next attempt is for a queue that loses its jobs; without it the job goes on all the same. */
async function keepDue(
  { worker, logger }: SyncDependencies,
  slot: Slot | undefined,
  due: Date | undefined,
): Promise<void> {
  if (slot === undefined) return;
  try {
    await setSlotDue(worker.store.db, slot, due);
  } catch (error) {
    logger.debug({ err: error, ...slot }, 'when the slot is due could not be stored');
  }
}

/** How long a source waits for the first run of those that it builds upon, a look at a time. */
const FIRST_RUN_WAIT_MS = 250;

/**
 * In a new database catalogues come after exchange rates, and clusters after catalogues: a price is to be converted
 * and a machine to be found, not to be held or made up. One run, good or bad, is waited for.
 *
 * The sample's catalogues come one after the other, so that every new sample has the same ids, those of the README. Real
 * ones do not wait for each other: the first run of a large one takes minutes.
 */
export async function waitsForOthers(source: SourceConfig, config: Config, worker: Worker): Promise<boolean> {
  const before = { rates: undefined, catalogue: 'rates', clusters: 'catalogue' }[source.kind];
  const isSample = config.content === 'sample';
  const ids = config.sources
    .filter(
      ({ id, kind }) =>
        kind === before || (isSample && kind === source.kind && kind === 'catalogue' && id < source.id),
    )
    .map(({ id }) => id);
  return ids.length > 0 && (await anyNeverRan(worker.store.db, ids));
}

/** New machines may be those that clusters run on and nobody knew: the cluster sources look again. */
async function resolveAgain(config: Config, queue: Queue<SyncJob>, slot: string): Promise<void> {
  for (const { id, kind } of config.sources) {
    if (kind === 'clusters')
      await queue.add(
        'sync',
        { sourceId: id, slot, isAdditional: true },
        { deduplication: { id: `resolve-${id}` } },
      );
  }
}

/**
 * The stored rows are safe: a cache that is away gets them from the next round.
 * @returns whether it has it already
 */
export async function publish(worker: Worker, logger: Logger): Promise<boolean> {
  try {
    const { published } = await worker.publisher.publishDirty();
    logger.debug({ published }, 'published');
    return true;
  } catch (error) {
    logger.warn({ err: error }, 'publishing failed; the documents stay marked and the next round sends them');
    return false;
  }
}

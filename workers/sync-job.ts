import { DelayedError, type Job, type Queue, UnrecoverableError, WaitingError } from 'bullmq';
import type { Logger } from 'pino';
import { addRun, type SyncJob } from '../src/app/actions/source.ts';
import { inLogContext } from '../src/app/log-context.ts';
import type { Worker } from '../src/app/worker.ts';
import type { Config, SourceConfig } from '../src/config/config.ts';
import { wasCancelledSince } from '../src/db/sync/live-runs.ts';
import { anyNeverRan, type RunOrigin } from '../src/db/sync/run.ts';
import {
  isLatestSlotOpen,
  isSlotCovered,
  isSlotRead,
  releaseSlot,
  type Slot,
  setSlotDue,
} from '../src/db/sync/slots.ts';
import { messageOf } from '../src/domain/errors.ts';
import { groupReasons } from '../src/domain/rejected-rows.ts';
import { latestSlot, nextSlot } from '../src/domain/schedule.ts';
import { SourceDisabled } from '../src/domain/source.ts';
import { SourceError } from '../src/sources/source.ts';
import type { SyncResult } from '../src/sync/pipeline.ts';
import { CrashingSources } from './crashing-sources.ts';
import { enqueueNewlyRated } from './newly-rated.ts';
import { AttemptFailed, nextAttempt } from './retry.ts';

/** The result of a job, as the page of the queues shows it. */
export type SyncJobResult =
  | ({ readonly outcome: 'changed' | 'unchanged'; readonly published: boolean } & SyncResult['counts'])
  | {
      readonly outcome: 'held';
      readonly stored: false;
      readonly reasons: readonly string[];
      readonly decide: string;
      readonly seen: number;
    }
  | { readonly outcome: 'superseded' | 'cancelled'; readonly stored: false };

export interface SyncDependencies {
  readonly config: Config;
  readonly worker: Worker;
  readonly queue: Queue<SyncJob>;
  readonly logger: Logger;
  observe?(sourceId: string, outcome: SyncResult['outcome'] | 'failed', seconds: number): void;
}

/**
 * Returns the processor of sync jobs: it runs one source and publishes the changes. A temporary failure is repeated with
 * growing pauses, but not before the upstream's `Retry-After`, until the source's next slot. A failure that needs an operator
 * is not repeated. The job of a disabled source is skipped.
 */
export function syncProcessor(dependencies: SyncDependencies) {
  const crashing = new CrashingSources();
  return (job: Job<SyncJob>, token?: string, signal?: AbortSignal): Promise<SyncJobResult | undefined> =>
    inLogContext({ sourceId: job.data.sourceId, slot: job.data.slot }, () =>
      processJob(dependencies, crashing, job, token, signal),
    );
}

async function processJob(
  dependencies: SyncDependencies,
  crashing: CrashingSources,
  job: Job<SyncJob>,
  token: string | undefined,
  signal: AbortSignal | undefined,
): Promise<SyncJobResult | undefined> {
  const { config, worker, queue, logger, observe } = dependencies;
  const { sourceId, slot } = job.data;
  const source = config.sources.find(({ id }) => id === sourceId);
  if (!source) {
    logger.warn({ sourceId }, 'the job was dropped: this worker has no such source');
    return undefined;
  }
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1000;
  const ownSlot = ownSlotOf(job);
  try {
    if (ownSlot !== undefined && (await isSlotCovered(worker.store.db, ownSlot))) {
      logger.info({ sourceId, slot }, 'the slot is skipped: a later one is due');
      return undefined;
    }
    const created = new Date(job.timestamp);
    if (job.stalledCounter > 0 && (await wasCancelledSince(worker.store.db, sourceId, created))) {
      logger.info({ sourceId, slot }, 'the job ends: an operator cancelled its run');
      await storeDue(dependencies, ownSlot);
      return { outcome: 'cancelled', stored: false };
    }
    if (ownSlot !== undefined && job.stalledCounter > 0 && (await isSlotRead(worker.store.db, ownSlot))) {
      logger.info(
        { sourceId, slot },
        'the worker that stored this slot has died; this worker publishes its changes',
      );
      await storeDue(dependencies, ownSlot);
      await publish(worker, logger);
      // The number of new machines is unknown.
      if (source.kind === 'catalogue') await enqueueClusterSources(config, queue, slot);
      return undefined;
    }
    if (await waitsForOthers(source, config, worker)) {
      await job.moveToDelayed(Date.now() + FIRST_RUN_WAIT_MS, token);
      throw new DelayedError();
    }
    using _turn = await crashing.admit(worker.store.db, sourceId, logger, signal);
    const begin = { slot: ownSlot?.slot, origin: originOf(job), signal, inWorker: true };
    const result = await worker.runSource(source, begin);
    observe?.(sourceId, result.outcome, seconds());
    const reasons = result.rejected.length > 0 ? { reasons: groupReasons(result.rejected) } : {};
    logger.info(
      { sourceId, slot, outcome: result.outcome, ...result.counts, ...reasons },
      result.outcome === 'cancelled' ? 'an operator cancelled the run' : 'synced',
    );
    if (result.outcome === 'held')
      logger.warn({ sourceId, broken: result.broken }, 'the batch is held for an operator');
    await storeDue(dependencies, ownSlot);
    const published = await publish(worker, logger);
    if (result.outcome !== 'changed' && result.outcome !== 'unchanged') return notStored(sourceId, result);
    if (source.kind === 'catalogue' && result.counts.added > 0)
      await enqueueClusterSources(config, queue, slot);
    if (source.kind === 'rates') await enqueueNewlyRated(config, worker, queue);
    return { outcome: result.outcome, published, ...result.counts };
  } catch (error) {
    if (error instanceof DelayedError) throw error;
    if (error instanceof SourceDisabled) {
      logger.info({ sourceId, slot }, `skipped: ${error.message}`);
      // The job's id would block the same slot later.
      job.opts.removeOnComplete = true;
      if (ownSlot !== undefined) await releaseSlot(worker.store.db, ownSlot);
      return undefined;
    }
    if (signal?.aborted) {
      // The worker stops. Another one continues the job, and this attempt does not count as failed.
      await job.moveToWait(token);
      throw new WaitingError();
    }
    observe?.(sourceId, 'failed', seconds());
    throw await failedAttempt(dependencies, job, source, error, seconds() * 1000);
  }
}

/** Returns a result without counts, which would look like those of a stored batch. */
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

/** Returns the cause of the run. The audit log already has the operator's request. */
function originOf({ data: { isAdditional, askedBy } }: Job<SyncJob>): RunOrigin {
  if (askedBy !== undefined) return { cause: 'hand', by: askedBy };
  return { cause: isAdditional ? 'follow' : 'slot' };
}

/** Returns the job's slot; undefined for a job outside the schedule. */
function ownSlotOf({ data: { sourceId, slot, isAdditional } }: Job<SyncJob>): Slot | undefined {
  return isAdditional ? undefined : { schedule: sourceId, slot };
}

/** Decides about the next attempt, stores and logs it, and returns the error for BullMQ. */
async function failedAttempt(
  dependencies: SyncDependencies,
  job: Job<SyncJob>,
  source: SourceConfig,
  error: unknown,
  tookMs: number,
): Promise<Error> {
  const { worker, logger } = dependencies;
  const { slot } = job.data;
  const ownSlot = ownSlotOf(job);
  const now = new Date();
  // Count from the job's own slot, even if it started late.
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
  // A source has one chain of attempts: while the slot's own job repeats, an additional run does not.
  const isNeedless =
    ownSlot === undefined && (await isLatestSlotOpen(worker.store.db, source.id).catch(() => false));
  const at = isNeedless ? undefined : following.at;
  await storeDue(dependencies, ownSlot, at ?? following.nextSlotNotBefore);
  const message = messageOf(error);
  const again = (at ?? following.nextSlotNotBefore ?? next).toISOString();
  const then = isNeedless ? 'the job of its slot continues' : `the next attempt is at ${again}`;
  const context = { sourceId: source.id, slot, kind, ...(isNeedless ? {} : { nextAttempt: again }) };
  // Failures outside the source are logged with their stack.
  if (error instanceof SourceError) logger.warn(context, `sync failed: ${message}; ${then}`);
  else logger.warn({ ...context, err: error }, `sync failed; ${then}`);
  return at === undefined
    ? new UnrecoverableError(message)
    : new AttemptFailed(error, at.getTime() - now.getTime());
}

/** Stores the next attempt in Postgres, for a queue that loses its jobs. The job continues if this fails. */
async function storeDue(
  { worker, logger }: SyncDependencies,
  slot: Slot | undefined,
  due?: Date,
): Promise<void> {
  if (slot === undefined) return;
  try {
    await setSlotDue(worker.store.db, slot, due);
  } catch (error) {
    logger.debug({ err: error, ...slot }, 'the next attempt of the slot could not be stored');
  }
}

const FIRST_RUN_WAIT_MS = 250;

/**
 * Returns true while other sources have to run first. In a new database catalogues wait for exchange rates, and clusters for
 * catalogues. One run is enough, even a failed one.
 *
 * The sample's catalogues run one after the other: every new sample then has the ids of the README.
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

/** Enqueues all cluster sources after new machines, which their clusters may use. */
async function enqueueClusterSources(config: Config, queue: Queue<SyncJob>, slot: string): Promise<void> {
  for (const { id, kind } of config.sources) {
    if (kind === 'clusters') await addRun(queue, { sourceId: id, slot }, 'resolve');
  }
}

/** Publishes the stored changes. Returns false during an outage; the next round then publishes them. */
export async function publish(worker: Worker, logger: Logger): Promise<boolean> {
  try {
    const { published } = await worker.publisher.publishDirty();
    logger.debug({ published }, 'published');
    return true;
  } catch (error) {
    logger.warn({ err: error }, 'publishing failed; the next round publishes the documents');
    return false;
  }
}

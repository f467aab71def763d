import { DelayedError, type Job, UnrecoverableError, WaitingError } from 'bullmq';
import type { Logger } from 'pino';
import { requestFollowing, type SyncJob } from '../src/app/actions/source.ts';
import { inLogContext } from '../src/app/log-context.ts';
import type { Worker } from '../src/app/worker.ts';
import type { Config, SourceConfig } from '../src/config/config.ts';
import { missingRates } from '../src/db/quarantine.ts';
import { messageOf } from '../src/domain/errors.ts';
import { groupReasons } from '../src/domain/rejected-rows.ts';
import { whatIsMissing } from '../src/domain/run.ts';
import { nextSlot } from '../src/domain/schedule.ts';
import { SourceDisabled, SourcePaused } from '../src/domain/source.ts';
import { SourceError } from '../src/sources/source.ts';
import { currentPricing } from '../src/sync/currency.ts';
import type { SyncResult } from '../src/sync/pipeline.ts';
import { anyNeverRan } from '../src/sync/runs/run.ts';
import {
  beginAttempt,
  endAttempt,
  type OpenAttempt,
  openAttempt,
  postponeAttempt,
  retryAttempt,
  settledSince,
} from '../src/sync/runs/slots.ts';
import { CrashingSources } from './crashing-sources.ts';
import { type FailedAttempt, nextAttempt } from './retry.ts';

/** The result of a job, as the page of the queues shows it. */
export type SyncJobResult =
  | ({
      readonly outcome: 'changed' | 'unchanged';
      readonly published: boolean;
      /** `1 of 2 regions unread`; absent for a complete run. */
      readonly missing?: string;
    } & SyncResult['counts'])
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
  readonly logger: Logger;
  observe?(sourceId: string, outcome: SyncResult['outcome'] | 'failed', seconds: number): void;
}

/**
 * Returns the processor of sync jobs: it runs one attempt of a source, and publishes the changes. BullMQ repeats no job. The row
 * of the slot in PostgreSQL decides: a failure makes the next attempt due after a growing pause, but not before the upstream's
 * `Retry-After`, until the source's next slot. A failure that needs an operator is not repeated.
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
  const { config, worker, logger, observe } = dependencies;
  const { db } = worker.store;
  const { sourceId, slot } = job.data;
  const source = config.sources.find(({ id }) => id === sourceId);
  if (!source) {
    logger.warn({ sourceId }, 'the job was dropped: this worker has no such source');
    return undefined;
  }
  /** Reads or writes the row of the slot. During an outage of PostgreSQL the job waits and is processed again. */
  const onRow = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      logger.warn(
        { err: error, sourceId, slot },
        'PostgreSQL did not store the state of the slot; the job waits for it',
      );
      return putOff(job, token, ROW_PAUSE_MS);
    }
  };
  const open = await onRow(() => openAttempt(db, { ...job.data, schedule: sourceId }));
  if (open === undefined) {
    logger.info({ sourceId, slot }, 'the job ends: its attempt is over, or a later one replaces it');
    return undefined;
  }
  const settled = await onRow(() => settledSince(db, open));
  if (settled === 'cancelled') {
    logger.info({ sourceId, slot }, 'the job ends: an operator cancelled its run');
    await onRow(() => endAttempt(db, open));
    return { outcome: 'cancelled', stored: false };
  }
  if (settled !== undefined) {
    logger.info(
      { sourceId, slot },
      'the worker that stored this slot has died; this worker publishes its changes',
    );
    // The number of new machines is unknown.
    await onRow(() => requestFollowers(source, config, worker));
    await onRow(() => endAttempt(db, open));
    await publish(worker, logger);
    return undefined;
  }
  if (await onRow(() => waitsForOthers(source, config, worker))) return putOff(job, token, FIRST_RUN_WAIT_MS);

  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1000;
  let begun: OpenAttempt | undefined = open;
  let result: SyncResult;
  try {
    using _turn = await crashing.admit(db, sourceId, logger, signal);
    begun = await beginAttempt(db, open);
    if (begun === undefined) return undefined;
    const { cause, askedBy } = begun;
    result = await worker.runSource(source, {
      ...(cause === null
        ? { slot, origin: { cause: 'slot' } }
        : { origin: { cause, by: askedBy ?? undefined } }),
      signal,
      inWorker: true,
    });
  } catch (error) {
    const attempt = begun ?? open;
    if (error instanceof SourceDisabled || error instanceof SourcePaused) {
      logger.info({ sourceId, slot }, `skipped: ${error.message}`);
      await onRow(() => postponeAttempt(db, attempt));
      return undefined;
    }
    if (signal?.aborted) {
      // The worker stops. Another one continues the job, and this attempt does not count as failed.
      await job.moveToWait(token);
      throw new WaitingError();
    }
    observe?.(sourceId, 'failed', seconds());
    const failed = { ...failureOf(error), failures: attempt.failures + 1, tookMs: seconds() * 1000 };
    const next = await onRow(() => scheduleRetry(worker, source, attempt, failed));
    logFailure(logger, { sourceId, slot, kind: failed.kind }, error, next);
    throw new UnrecoverableError(messageOf(error));
  }
  observe?.(sourceId, result.outcome, seconds());
  const reasons = result.rejected.length > 0 ? { reasons: groupReasons(result.rejected) } : {};
  const missing = whatIsMissing(result);
  logger.info(
    { sourceId, slot, outcome: result.outcome, ...result.counts, ...reasons },
    result.outcome === 'cancelled'
      ? 'an operator cancelled the run'
      : `synced${missing === undefined ? '' : `, with ${missing}`}`,
  );
  if (result.outcome === 'held')
    logger.warn({ sourceId, broken: result.broken }, 'the batch is held for an operator');
  const isStored = result.outcome === 'changed' || result.outcome === 'unchanged';
  if (isStored && (source.kind !== 'catalogue' || result.counts.added > 0))
    await onRow(() => requestFollowers(source, config, worker));
  if (isStored && missing !== undefined) {
    const incomplete = { failures: begun.failures + 1, tookMs: seconds() * 1000 };
    const next = await onRow(() =>
      scheduleRetry(worker, source, begun, { ...incomplete, kind: 'incomplete' }),
    );
    logger.warn({ sourceId, slot }, `${missing}; the next attempt is at ${next.toISOString()}`);
  } else await onRow(() => endAttempt(db, begun));
  const published = await publish(worker, logger);
  if (result.outcome !== 'changed' && result.outcome !== 'unchanged') return notStored(sourceId, result);
  return { outcome: result.outcome, published, ...result.counts, ...(missing !== undefined && { missing }) };
}

const FIRST_RUN_WAIT_MS = 250;
const ROW_PAUSE_MS = 15_000;

/** Returns the job to the queue for a while. This is no failure. */
async function putOff(job: Job, token: string | undefined, ms: number): Promise<never> {
  await job.moveToDelayed(Date.now() + ms, token);
  throw new DelayedError();
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

function failureOf(error: unknown): Pick<FailedAttempt, 'kind' | 'retryAfterMs'> {
  if (error instanceof SourceError) return { kind: error.kind, retryAfterMs: error.retryAfterMs };
  return { kind: 'internal' };
}

/** Makes the slot's next attempt due after a failed or incomplete run, or ends the slot. @returns when the source runs again */
async function scheduleRetry(
  { store: { db } }: Worker,
  source: SourceConfig,
  attempt: OpenAttempt,
  failed: Pick<FailedAttempt, 'kind' | 'failures' | 'tookMs' | 'retryAfterMs'>,
): Promise<Date> {
  const slot = new Date(attempt.slot);
  const next = new Date(nextSlot(source.schedule, slot));
  const { at, nextSlotNotBefore } = nextAttempt(
    { ...failed, now: new Date(), nextSlot: next, intervalMs: next.getTime() - slot.getTime() },
    Math.random,
  );
  const due = at ?? nextSlotNotBefore;
  if (due === undefined) await endAttempt(db, attempt);
  else await retryAttempt(db, attempt, { due, failures: failed.failures });
  return due ?? next;
}

function logFailure(logger: Logger, context: object, error: unknown, next: Date): void {
  const again = next.toISOString();
  const then = `the next attempt is at ${again}`;
  const fields = { ...context, nextAttempt: again };
  // Failures outside the source are logged with their stack.
  if (error instanceof SourceError) logger.warn(fields, `sync failed: ${error.message}; ${then}`);
  else logger.warn({ ...fields, err: error }, `sync failed; ${then}`);
}

/**
 * Returns true while other sources have to run first. In a new database catalogues wait for exchange rates, and clusters for
 * catalogues. One run is enough, even a failed one.
 *
 * The sample's catalogues run one after the other: every new sample then has the ids of the README.
 */
export async function waitsForOthers(source: SourceConfig, config: Config, worker: Worker): Promise<boolean> {
  const before = {
    rates: undefined,
    lifecycles: undefined,
    catalogue: 'rates',
    clusters: 'catalogue',
  }[source.kind];
  const isSample = config.content === 'sample';
  const ids = config.sources
    .filter(
      ({ id, kind }) =>
        kind === before || (isSample && kind === source.kind && kind === 'catalogue' && id < source.id),
    )
    .map(({ id }) => id);
  return ids.length > 0 && (await anyNeverRan(worker.store.db, ids));
}

/** Requests runs of the sources that use new data of a source: clusters use new machines, and machines use new rates. */
async function requestFollowers({ kind }: SourceConfig, config: Config, worker: Worker): Promise<void> {
  if (kind === 'rates') await requestNewlyRated(config, worker);
  if (kind !== 'catalogue') return;
  for (const source of config.sources)
    if (source.kind === 'clusters') await requestFollowing(worker.store.db, source);
}

/** Requests a run of each source with machines that lacked an exchange rate which exists now. */
export async function requestNewlyRated(config: Config, { store }: Pick<Worker, 'store'>): Promise<void> {
  const missing = await missingRates(store.db);
  if (missing.size === 0) return;
  const { currency, rates } = await currentPricing(store, config.settings, new Date());
  const isKnown = (code: string) => code === currency || rates[code] !== undefined;
  for (const source of config.sources)
    if (missing.get(source.id)?.some(isKnown)) await requestFollowing(store.db, source);
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

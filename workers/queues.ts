import { type Processor, Queue, type Telemetry } from 'bullmq';
import type { Logger } from 'pino';
import type { Feature, FeatureQueue } from '../src/app/feature.ts';
import { driverError } from '../src/lib/driver-error.ts';
import type { RedisClient } from '../src/redis/redis.ts';
import { AttemptFailed } from './attempt-failed.ts';

/** What a job of the `sync` queue is told. */
export interface SyncJob {
  readonly sourceId: string;
  /** RFC 3339; the slot of the schedule that asked for the run. */
  readonly slot: string;
  /** It runs beside the slot's own job: it follows from another source's run, or an operator asked for it. */
  readonly isAdditional?: true;
  /** The operator who asked for it. */
  readonly askedBy?: string;
}

export const SYNC_QUEUE = 'sync';
export const SWEEP_QUEUE = 'sweep';

/** The hash tag keeps every key of a queue in one slot of a Redis Cluster. */
export const QUEUE_PREFIX = '{fleetbook}';

/** BullMQ wants a number. */
const NO_LIMIT = 1_000_000;

/**
 * A job whose worker died goes back into the queue, as often as that happens: a run that is begun again does no harm, since
 * its fence keeps the one before from writing, and a slot whose job was given up would wait for the next one. It is
 * noticed within 15 seconds, when the lock has run out and the next look comes. A live worker renews the lock every five
 * seconds; one that is silent for ten loses its jobs to others, and what it still does of them takes no effect.
 */
export const NEVER_GIVEN_UP = {
  maxStalledCount: NO_LIMIT,
  stalledInterval: 5000,
  lockDuration: 10_000,
} as const;

/** Ended jobs that BullMQ counts for each minute: the charts of the console show a day. */
export const METRICS = { maxDataPoints: 25 * 60 } as const;

/** BullMQ stores in Redis what a job fails with: the parameters of a query have no place there. */
export function withoutParameters<Data>(process: Processor<Data>): Processor<Data> {
  // BullMQ gives a signal only to a processor that declares three parameters.
  return async (job, token, signal) => {
    try {
      return await process(job, token, signal);
    } catch (error) {
      throw driverError(error);
    }
  };
}

/** After anything else that a job may fail with. */
const ORDINARY_PAUSE_MS = 15_000;

/** BullMQ's `settings.backoffStrategy`: milliseconds until a failed job runs again. */
export function backoffStrategy(_attempts: number, _type?: string, error?: Error): number {
  return error instanceof AttemptFailed ? error.pauseMs : ORDINARY_PAUSE_MS;
}

/** A queue of a feature, open. */
export interface OpenQueue extends FeatureQueue {
  readonly queue: Queue;
}

export interface Queues {
  readonly sync: Queue<SyncJob>;
  readonly sweep: Queue;
  readonly ofFeatures: readonly OpenQueue[];
  readonly all: readonly Queue[];
}

/**
 * Opens the queues for adding jobs.
 * @param producer fails at once while Redis is away. A slot that was not enqueued is found again.
 * @param features whose queues are opened as well
 * @param telemetry receives the spans of syncs
 */
export function openQueues(
  producer: RedisClient,
  logger: Logger,
  features: readonly Pick<Feature, 'queues'>[] = [],
  telemetry?: Telemetry,
): Queues {
  const options = {
    connection: producer,
    prefix: QUEUE_PREFIX,
    defaultJobOptions: {
      removeOnComplete: { count: 200 },
      removeOnFail: { count: 500 },
    },
  };
  // When and whether there is another attempt, each failed one says: see AttemptFailed.
  const repeated = {
    ...options,
    defaultJobOptions: { ...options.defaultJobOptions, attempts: NO_LIMIT, backoff: { type: 'custom' } },
  };
  const sync = new Queue<SyncJob>(SYNC_QUEUE, { ...repeated, ...(telemetry && { telemetry }) });
  const sweep = new Queue(SWEEP_QUEUE, options);
  const ofFeatures = features
    .flatMap(({ queues = [] }) => queues)
    .map((each) => ({ ...each, queue: new Queue(each.name, repeated) }));
  const all = [sync, sweep, ...ofFeatures.map(({ queue }) => queue)];
  // The connection tells of its trouble itself, once; without a listener each queue would print it.
  for (const queue of all)
    queue.on('error', (error) => logger.debug({ err: error, queue: queue.name }, 'queue'));
  return { sync, sweep, ofFeatures, all };
}

/**
 * Derived from the slot, so that a slot that is enqueued twice is one job. A restored database claims slots again whose
 * jobs the queue still remembers: hence the lineage. BullMQ forbids `:` in an id.
 */
export function jobId(schedule: string, slot: string, lineage: string): string {
  return `${schedule}-${slot.replaceAll(':', '-')}-${lineage.slice(0, 8)}`;
}

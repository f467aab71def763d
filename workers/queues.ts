import { type Processor, Queue, type Telemetry } from 'bullmq';
import type { Logger } from 'pino';
import { driverError, messageOf } from '../src/domain/driver-error.ts';
import type { RedisClient } from '../src/redis/redis.ts';

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

/** What a job of the `alerts` queue is told: which webhook's messages to send; without one it looks for what is wrong. */
export interface AlertJob {
  readonly webhook?: string;
}

export const ALERTS_QUEUE = 'alerts';
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

/** An attempt that is to be repeated after a pause. Its message is that of its cause. */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed';
  readonly pauseMs: number;

  constructor(cause: unknown, pauseMs: number) {
    super(messageOf(cause), { cause: driverError(cause) });
    this.pauseMs = pauseMs;
  }
}

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

export interface Queues {
  readonly sync: Queue<SyncJob>;
  readonly sweep: Queue;
  readonly alerts: Queue<AlertJob>;
  readonly all: readonly Queue[];
}

/** Opens the queues for adding jobs. `producer` fails at once while Redis is away; a slot that was not enqueued is found again. `telemetry` hears of syncs. */
export function openQueues(producer: RedisClient, logger: Logger, telemetry?: Telemetry): Queues {
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
  const alerts = new Queue<AlertJob>(ALERTS_QUEUE, repeated);
  const sweep = new Queue(SWEEP_QUEUE, options);
  const all = [sync, sweep, alerts];
  // The connection tells of its trouble itself, once; without a listener each queue would print it.
  for (const queue of all)
    queue.on('error', (error) => logger.debug({ err: error, queue: queue.name }, 'queue'));
  return { sync, sweep, alerts, all };
}

/**
 * Derived from the slot, so that a slot that is enqueued twice is one job. A restored database claims slots again whose
 * jobs the queue still remembers: hence the lineage. BullMQ forbids `:` in an id.
 */
export function jobId(schedule: string, slot: string, lineage: string): string {
  return `${schedule}-${slot.replaceAll(':', '-')}-${lineage.slice(0, 8)}`;
}

import { type Processor, Queue, type Telemetry } from 'bullmq';
import type { Logger } from 'pino';
import type { SyncJob } from '../src/app/actions/source.ts';
import type { Feature, FeatureQueue } from '../src/app/feature.ts';
import type { Database } from '../src/db/connection/connect.ts';
import { databaseName } from '../src/db/lineage.ts';
import { driverError } from '../src/domain/errors.ts';
import type { RedisClient } from '../src/redis/redis.ts';
import type { Attempt } from '../src/sync/runs/slots.ts';

export const SYNC_QUEUE = 'sync';
export const SWEEP_QUEUE = 'sweep';

/** The hash tag keeps every key of a queue in one slot of a Redis Cluster. */
export const QUEUE_PREFIX = '{fleetbook}';

/** Returns the prefix of the queues of one database: deployments that share a Redis must not run each other's jobs. */
export async function queuePrefix(db: Database): Promise<string> {
  return `${QUEUE_PREFIX}:${await databaseName(db)}`;
}

/** A hash: the name of each database whose workers used this Redis for their queues → when a worker last did (RFC 3339). */
const DATABASES_KEY = `${QUEUE_PREFIX}:databases`;

/** Records in Redis that this database has its queues there, for `doctor`. */
export async function recordDatabase(db: Database, redis: RedisClient): Promise<void> {
  await redis.hset(DATABASES_KEY, await databaseName(db), new Date().toISOString());
}

/** Returns when workers of other databases last used the queues of this Redis (RFC 3339), by the name of the database. */
export async function otherDatabases(own: string, redis: RedisClient): Promise<ReadonlyMap<string, string>> {
  const all = new Map(Object.entries(await redis.hgetall(DATABASES_KEY)));
  all.delete(own);
  return all;
}

/** BullMQ requires a number. */
const NO_LIMIT = 1_000_000;

/**
 * A job of a dead worker always returns to the queue, within 15 seconds. A repeated run is harmless: its fence stops the
 * writes of the earlier run. A live worker renews its lock every five seconds. Other workers take its jobs after ten seconds
 * without a renewal.
 */
export const ALWAYS_REPEATED = {
  maxStalledCount: NO_LIMIT,
  stalledInterval: 5000,
  lockDuration: 10_000,
} as const;

/** BullMQ counts ended jobs for each minute. The console's charts show a day. */
export const METRICS = { maxDataPoints: 25 * 60 } as const;

/** Removes the parameters of queries from a job's error, because BullMQ stores the error in Redis. */
export function withoutParameters<Data>(process: Processor<Data>): Processor<Data> {
  // BullMQ passes a signal only to a processor with three parameters.
  return async (job, token, signal) => {
    try {
      return await process(job, token, signal);
    } catch (error) {
      throw driverError(error);
    }
  };
}

export interface Queues {
  readonly sync: Queue<SyncJob>;
  readonly sweep: Queue;
  readonly ofFeatures: readonly (FeatureQueue & { readonly queue: Queue })[];
  readonly all: readonly Queue[];
}

/**
 * Opens the queues for adding jobs.
 * @param prefix see `queuePrefix`
 * @param producer fails at once during an outage of Redis. The scheduler enqueues such a slot later.
 * @param telemetry receives the spans of syncs
 */
export function openQueues(
  producer: RedisClient,
  prefix: string,
  logger: Logger,
  features: readonly Pick<Feature, 'queues'>[] = [],
  telemetry?: Telemetry,
): Queues {
  const options = {
    connection: producer,
    prefix,
    defaultJobOptions: {
      removeOnComplete: { count: 200 },
      removeOnFail: { count: 500 },
    },
  };
  const sync = new Queue<SyncJob>(SYNC_QUEUE, { ...options, ...(telemetry && { telemetry }) });
  const sweep = new Queue(SWEEP_QUEUE, options);
  const ofFeatures = features
    .flatMap(({ queues = [] }) => queues)
    .map((each) => ({ ...each, queue: new Queue(each.name, options) }));
  const all = [sync, sweep, ...ofFeatures.map(({ queue }) => queue)];
  // The connection logs its own errors. Without a listener each queue would print them again.
  for (const queue of all)
    queue.on('error', (error) => logger.debug({ err: error, queue: queue.name }, 'queue'));
  return { sync, sweep, ofFeatures, all };
}

/**
 * Returns the job id of an attempt: an attempt that is enqueued twice is one job. The lineage is a part of it, because a
 * restored database enqueues slots again whose jobs still exist in Redis. BullMQ forbids `:` in an id.
 */
export function jobId({ schedule, slot, attempt }: Attempt, lineage: string): string {
  return `${schedule}-${slot.replaceAll(':', '-')}-${attempt}-${lineage.slice(0, 8)}`;
}

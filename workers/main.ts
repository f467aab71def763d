import type { Telemetry } from 'bullmq';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { SyncJob } from '../src/app/actions/source.ts';
import { openLoggedRedis, queueRedis } from '../src/app/connections.ts';
import { Disposer } from '../src/app/disposer.ts';
import { FEATURES } from '../src/app/features.ts';
import { composeWorker, type Worker } from '../src/app/worker.ts';
import type { Config } from '../src/config/config.ts';
import { BadSetting } from '../src/config/settings.ts';
import type { ClientDatabase, Store } from '../src/db/connection/connect.ts';
import type { ServerSetting } from '../src/db/connection/server-problem.ts';
import { pruneDifferences } from '../src/db/differences.ts';
import { pruneChanges } from '../src/db/runs/stored-changes.ts';
import type { Condition } from '../src/domain/alert.ts';
import { withTimeout } from '../src/domain/clock.ts';
import { makeExports } from '../src/features/exports/job.ts';
import { checkRedis } from '../src/redis/check-server.ts';
import { type RedisClient, redisReady } from '../src/redis/redis.ts';
import type { ComparisonObserver } from '../src/snapshot/publish/comparison.ts';
import { startPublishLoop } from '../src/snapshot/publish/publish-loop.ts';
import { type PublishObserver, startHeartbeat } from '../src/snapshot/publish/publisher.ts';
import type { RetryPolicy } from '../src/sources/http/retries.ts';
import { discontinueEnded } from '../src/sync/catalogue/end-of-sale.ts';
import { pruneRuns } from '../src/sync/runs/run.ts';
import { pruneSlots } from '../src/sync/runs/slots.ts';
import { Consumers } from './consumers.ts';
import { openQueues, type Queues, queuePrefix, recordDatabase, SWEEP_QUEUE, SYNC_QUEUE } from './queues.ts';
import { enqueuer, Scheduler, SWEEP_SCHEDULE, storeSchedules } from './schedule.ts';
import { requestNewlyRated, type SyncDependencies, syncProcessor } from './sync-job.ts';
import { Watches } from './watches.ts';

const CLOSE_WITHIN_MS = 20_000;
/** Limit for steps of a few statements: a hanging Postgres must not block the exit. */
const SHORT_CLOSE_WITHIN_MS = 3000;

export interface WorkerOptions {
  readonly observe?: SyncDependencies['observe'];
  readonly published?: PublishObserver;
  readonly comparison?: ComparisonObserver;
  readonly registry?: Registry;
  /** Milliseconds for running jobs when the worker stops. Unfinished ones then return to their queues. */
  readonly closeWithinMs?: number;
  readonly requestRetries?: RetryPolicy;
  readonly telemetry?: Telemetry | undefined;
  /** See `SchedulerOptions`. */
  readonly checkEveryMs?: number;
}

export interface WorkerProcess extends AsyncDisposable {
  readonly queues: Queues;
}

/** @throws BadSetting if the queues' Redis may evict jobs */
export async function startWorker(
  config: Config,
  logger: Logger,
  options: WorkerOptions = {},
): Promise<WorkerProcess> {
  const { observe, registry, closeWithinMs = CLOSE_WITHIN_MS, telemetry, checkEveryMs } = options;
  const closing = new Disposer();
  try {
    let scheduler: Scheduler | undefined;
    const worker = closing.use(
      composeWorker(config, logger, {
        onPublish: options.published,
        comparison: options.comparison,
        onNewLineage: () => scheduler?.catchUpSoon(),
        requestRetries: options.requestRetries,
      }),
    );
    const server = queueRedis(config);
    const { producer, prefix, queues } = await connectQueues(server, worker.store, closing, {
      logger,
      telemetry,
    });
    const running = { config, worker, logger, ...(observe && { observe }) };
    const consumers = new Consumers(server, prefix, logger);
    closing.defer(() => consumers.disconnect());
    await addConsumers(consumers, { ...running, producer, queues, telemetry });
    const watches = new Watches(running);
    closing.defer(async () => {
      await withTimeout(SHORT_CLOSE_WITHIN_MS, worker.liveRuns.stopping()).catch(() => false);
      return Promise.all([consumers.stop(closeWithinMs), watches.stop(closeWithinMs)]);
    });

    const { publisher, cache, store } = worker;
    closing.use(startHeartbeat(() => publisher.heartbeat()));
    const publishing = startPublishLoop({ publisher, cache, onLost: store.onLost, logger });
    closing.defer(() => withTimeout(SHORT_CLOSE_WITHIN_MS, publishing[Symbol.asyncDispose]()));
    makeExports({ config, logger, closing, store, registry });
    const clocks = new Scheduler({
      db: store.db,
      schedules: [
        ...config.sources.map(({ id, schedule }) => ({ name: id, cron: schedule })),
        SWEEP_SCHEDULE,
        ...queues.ofFeatures.flatMap(({ name, schedule }) => (schedule ? { name, cron: schedule.cron } : [])),
      ],
      enqueue: enqueuer(store, queues),
      logger,
      ...(checkEveryMs === undefined ? {} : { checkEveryMs }),
    });
    closing.defer(() => withTimeout(SHORT_CLOSE_WITHIN_MS, clocks[Symbol.asyncDispose]()));
    scheduler = clocks;
    void adoptCurrency(config, worker, logger);
    clocks.start();
    void storeSchedules(store.db, cache, config.sources, logger);
    watches.start();
    // After an outage of the queue, missed slots run at once and not at the next full minute.
    producer.on('ready', () => clocks.catchUpSoon());
    logger.info({ sources: config.sources.map(({ id }) => id) }, 'worker started');
    return { queues, [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose]() };
  } catch (error) {
    await closing[Symbol.asyncDispose]();
    throw error;
  }
}

/** @throws BadSetting if the queues' Redis may evict jobs */
async function connectQueues(
  server: ServerSetting,
  { db }: Pick<Store, 'db'>,
  closing: Disposer,
  { logger, telemetry }: { readonly logger: Logger; readonly telemetry: Telemetry | undefined },
) {
  const producer = openLoggedRedis(server, 'producer', logger);
  closing.defer(() => producer.disconnect());
  await redisReady(producer, 10_000);
  const problem = await checkRedis(producer, server.setting, false);
  if (problem) throw new BadSetting(`the queues' Redis cannot be used: ${problem.what}; ${problem.remedy}`);
  const prefix = await queuePrefix(db);
  const queues = openQueues(producer, prefix, logger, FEATURES, telemetry);
  closing.defer(() => Promise.all(queues.all.map((queue) => queue.close())));
  // A queue never recovers from a failed first connection, so the start waits for it.
  await Promise.all(queues.all.map((queue) => queue.waitUntilReady()));
  await recordDatabase(db, producer);
  return { producer, prefix, queues };
}

type Consuming = SyncDependencies & {
  readonly producer: RedisClient;
  readonly queues: Queues;
  readonly telemetry: Telemetry | undefined;
};

async function addConsumers(
  consumers: Consumers,
  { producer, queues, telemetry, ...running }: Consuming,
): Promise<void> {
  const { config, worker, logger } = running;
  // Every source has a place: one provider's outage must not delay another one.
  consumers.add<SyncJob>(SYNC_QUEUE, syncProcessor(running), {
    ...(telemetry && { telemetry }),
    concurrency: Math.max(4, config.sources.length),
  });
  consumers.add(SWEEP_QUEUE, async () => {
    await discontinueMachines(worker, logger);
    await pruneSlots(worker.store.db);
    await pruneChanges(worker.store.db, config.settings.CHANGES_KEPT);
    await pruneRuns(worker.store.db);
    await pruneDifferences(worker.store.db);
    await storeSchedules(worker.store.db, worker.cache, config.sources, logger);
    await recordDatabase(worker.store.db, producer);
    for (const { prune } of FEATURES) await prune?.(worker.store.db, config);
  });
  const { store } = worker;
  for (const { name, queue, concurrency, open } of queues.ofFeatures) {
    const context = {
      config,
      store,
      logger,
      queue,
      findConditions: (db: ClientDatabase) => findConditions(db, config),
    };
    consumers.add(name, await open(context), { concurrency: (await concurrency?.(config)) ?? 1 });
  }
}

/** Takes machines out of the catalogue whose sale has ended. */
async function discontinueMachines({ store, publisher }: Worker, logger: Logger): Promise<void> {
  const machines = await discontinueEnded(store.db, new Date().toISOString());
  if (machines === 0) return;
  logger.info({ machines }, 'machines left the catalogue: from today on, their providers do not sell them');
  await publisher.publishDirty();
}

async function findConditions(db: ClientDatabase, config: Config): Promise<Condition[]> {
  const found = await Promise.all(FEATURES.map(({ conditions }) => conditions?.find(db, config) ?? []));
  return found.flat();
}

/** Converts all prices to the configured currency at a worker's start, because the next run may be a day away. */
async function adoptCurrency(config: Config, worker: Worker, logger: Logger): Promise<void> {
  const logged = (message: string) => (error: unknown) => logger.debug({ err: error }, message);
  await worker
    .adoptCurrency()
    .catch(
      logged('the prices could not be converted to the configured currency; the next run converts them'),
    );
  await requestNewlyRated(config, worker).catch(
    logged('runs for new exchange rates could not be requested; the sources wait for their slots'),
  );
}

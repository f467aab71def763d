import type { Telemetry } from 'bullmq';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { openLoggedRedis, queueRedis } from '../src/app/connections.ts';
import { Disposer } from '../src/app/disposer.ts';
import { FEATURES } from '../src/app/features.ts';
import { composeWorker } from '../src/app/worker.ts';
import type { Config } from '../src/config/config.ts';
import { BadSetting } from '../src/config/settings.ts';
import { pruneChanges } from '../src/db/changes.ts';
import type { Sql } from '../src/db/connection/client.ts';
import type { ServerSetting } from '../src/db/connection/server-problem.ts';
import { pruneDifferences } from '../src/db/differences.ts';
import { pruneRuns } from '../src/db/sync/run.ts';
import { pruneSlots } from '../src/db/sync/slots.ts';
import type { Condition } from '../src/domain/condition.ts';
import { withTimeout } from '../src/domain/timeout.ts';
import { redisMisfit } from '../src/redis/misfit.ts';
import { redisReady } from '../src/redis/redis.ts';
import type { PublishObserver } from '../src/snapshot/publish/publisher.ts';
import { keepPulse } from '../src/snapshot/publish/pulse.ts';
import { isRefusal } from '../src/snapshot/publish/refusal.ts';
import type { RetryPolicy } from '../src/sources/http/retries.ts';
import { type CompareObserver, Comparer, compareNowAndThen } from './compare.ts';
import { Consumers } from './consumers.ts';
import { adoptCurrency } from './newly-rated.ts';
import { type SyncDependencies, syncProcessor } from './processors/sync.ts';
import { openQueues, type Queues, SWEEP_QUEUE, SYNC_QUEUE, type SyncJob } from './queues.ts';
import { enqueuer, Scheduler, SWEEP_SCHEDULE } from './schedule.ts';
import { openWatches } from './watching.ts';

/** How soon rows that no job has published are noticed, e.g. a token that a command made while the cache was away. */
const DIRTY_CHECK_MS = 2000;
/** The same while PostgreSQL or the cache is away: when it is back the database may be in an earlier state. */
const AWAY_CHECK_MS = 200;
const CLOSE_WITHIN_MS = 20_000;
/** What is only a few statements gets this long; a Postgres that hangs must not keep the process. */
const LET_GO_WITHIN_MS = 3000;

export interface WorkerOptions {
  /** Counts runs. */
  readonly observe?: SyncDependencies['observe'];
  /** Counts rounds of publishing. */
  readonly published?: PublishObserver;
  /** Hears what the comparer finds of the cache. */
  readonly comparison?: CompareObserver;
  /** Takes the series of features. */
  readonly registry?: Registry;
  /** Milliseconds that jobs under way get to end when the worker stops; then they are handed back. */
  readonly closeWithinMs?: number;
  /** As `composeWorker` takes them. */
  readonly requestRetries?: RetryPolicy;
  /** Hears of syncs, from the slot to the end. */
  readonly telemetry?: Telemetry | undefined;
}

export interface WorkerProcess extends AsyncDisposable {
  readonly queues: Queues;
}

/**
 * Starts a worker: clocks, queue consumers, and the publisher's rounds.
 * @throws BadSetting when the queues' Redis may evict jobs.
 */
export async function startWorker(
  config: Config,
  logger: Logger,
  {
    observe,
    published,
    comparison,
    registry,
    closeWithinMs = CLOSE_WITHIN_MS,
    requestRetries,
    telemetry,
  }: WorkerOptions = {},
): Promise<WorkerProcess> {
  const closing = new Disposer();
  try {
    let scheduler: Scheduler | undefined;
    const worker = closing.use(
      composeWorker(config, logger, {
        onPublish: published,
        onNewLineage: () => scheduler?.catchUpSoon(),
        requestRetries,
      }),
    );
    const server = queueRedis(config);
    const { producer, queues } = await connectQueues(server, closing, logger, telemetry);
    const running = { config, worker, logger, ...(observe && { observe }) };
    const consumers = new Consumers(server, logger);
    closing.defer(() => consumers.disconnect());
    addConsumers(consumers, { ...running, queues, telemetry });
    const watches = openWatches(running);
    closing.defer(async () => {
      await withTimeout(LET_GO_WITHIN_MS, worker.store.liveRuns.stopping()).catch(() => false);
      return Promise.all([consumers.stop(closeWithinMs), watches.stop(closeWithinMs)]);
    });

    const pulse = keepPulse(() => worker.publisher.pulse());
    closing.defer(() => pulse[Symbol.dispose]());
    const rounds = publishingRounds(worker, logger);
    closing.defer(() => withTimeout(LET_GO_WITHIN_MS, rounds[Symbol.asyncDispose]()));
    const comparer = new Comparer({
      db: worker.store.db,
      cache: worker.cache,
      publisher: worker.publisher,
      logger,
      observe: comparison,
    });
    const comparing = compareNowAndThen(comparer, logger);
    closing.defer(() => withTimeout(LET_GO_WITHIN_MS, comparing[Symbol.asyncDispose]()));
    const { store } = worker;
    for (const { work } of FEATURES) work?.({ config, logger, closing, store, registry });
    const clocks = new Scheduler({
      db: worker.store.db,
      schedules: [
        ...config.sources.map(({ id, schedule }) => ({ name: id, cron: schedule })),
        SWEEP_SCHEDULE,
        ...queues.ofFeatures.flatMap(({ name, schedule }) => (schedule ? { name, cron: schedule.cron } : [])),
      ],
      enqueue: enqueuer(store, queues),
      logger,
    });
    closing.defer(() => withTimeout(LET_GO_WITHIN_MS, clocks[Symbol.asyncDispose]()));
    scheduler = clocks;
    void adoptCurrency(config, worker, queues.sync, logger);
    clocks.start();
    watches.start();
    // Slots that passed while the queue was away are due at once, not at the next full minute.
    producer.on('ready', () => clocks.catchUpSoon());
    logger.info({ sources: config.sources.map(({ id }) => id) }, 'worker started');
    return { queues, [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose]() };
  } catch (error) {
    await closing[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Opens the queues for adding jobs.
 * @throws BadSetting when the queues' Redis may evict jobs
 */
async function connectQueues(
  server: ServerSetting,
  closing: Disposer,
  logger: Logger,
  telemetry: Telemetry | undefined,
) {
  const producer = openLoggedRedis(server, 'producer', logger);
  closing.defer(() => producer.disconnect());
  await redisReady(producer, 10_000);
  const misfit = await redisMisfit(producer, server.setting, false);
  if (misfit) throw new BadSetting(`the queues' Redis cannot be used: ${misfit.what}; ${misfit.remedy}`);
  const queues = openQueues(producer, logger, FEATURES, telemetry);
  closing.defer(() => Promise.all(queues.all.map((queue) => queue.close())));
  // A queue whose first connection fails never recovers, so the start waits for it and fails.
  await Promise.all(queues.all.map((queue) => queue.waitUntilReady()));
  return { producer, queues };
}

type Consuming = Omit<SyncDependencies, 'queue'> & {
  readonly queues: Queues;
  readonly telemetry: Telemetry | undefined;
};

/** Adds a consumer for each queue. */
function addConsumers(consumers: Consumers, { queues, telemetry, ...running }: Consuming): void {
  const { config, worker, logger } = running;
  // One provider's outage must not keep another one waiting: there is room for every source.
  consumers.add<SyncJob>(SYNC_QUEUE, syncProcessor({ ...running, queue: queues.sync }), {
    ...(telemetry && { telemetry }),
    concurrency: Math.max(4, config.sources.length),
  });
  consumers.add(SWEEP_QUEUE, async () => {
    await pruneSlots(worker.store.db);
    await pruneChanges(worker.store.db, config.settings.CHANGES_KEPT);
    await pruneRuns(worker.store.db);
    await pruneDifferences(worker.store.db);
    for (const { prune } of FEATURES) await prune?.(worker.store.db, config);
    return worker.publisher.sweep();
  });
  const { store } = worker;
  for (const { name, queue, concurrency, open } of queues.ofFeatures) {
    const context = { config, store, logger, queue, findConditions: () => findConditions(store.sql, config) };
    consumers.add(name, open(context), { concurrency: concurrency?.(config) ?? 1 });
  }
}

/** What features report for alerts. */
async function findConditions(sql: Sql, config: Config): Promise<Condition[]> {
  const found = await Promise.all(FEATURES.map(({ conditions }) => conditions?.find(sql, config) ?? []));
  return found.flat();
}

/**
 * Publishes what is dirty every now and then, and everything that differs as soon as a lost cache or database is back:
 * the cache may have lost what it held, and the database may have gone back to an earlier state.
 */
function publishingRounds(worker: ReturnType<typeof composeWorker>, logger: Logger): AsyncDisposable {
  let under: Promise<unknown> | undefined;
  let mayDiffer = true;
  let again = false;
  let hasFailed = false;
  let isOver = false;
  let timer: NodeJS.Timeout;
  const next = (ms: number) => {
    clearTimeout(timer);
    if (!isOver) timer = setTimeout(round, ms);
  };
  const round = () => {
    // The end of the round that is under way sees to the next one, and so does a cache that is ready again.
    if (under || worker.cache.status !== 'ready') return next(DIRTY_CHECK_MS);
    const sweeps = mayDiffer;
    mayDiffer = false;
    again = false;
    let isAway = false;
    const began = performance.now();
    under = (sweeps ? worker.publisher.sweep() : worker.publisher.publishDirty())
      .then(
        () => {
          hasFailed = false;
        },
        (error: unknown) => {
          isAway = !isRefusal(error);
          mayDiffer ||= sweeps || isAway;
          logger[hasFailed ? 'debug' : 'warn']({ err: error }, 'publishing failed; it is tried again');
          hasFailed = true;
        },
      )
      .finally(() => {
        under = undefined;
        // What takes long before it fails is not repeated all the time.
        const soon = Math.min(DIRTY_CHECK_MS, Math.max(AWAY_CHECK_MS, performance.now() - began));
        next(again || isAway ? soon : DIRTY_CHECK_MS);
      });
  };
  const now = () => {
    mayDiffer = true;
    again = true;
    if (!under) round();
  };
  next(DIRTY_CHECK_MS);
  worker.cache.on('ready', now);
  worker.store.onLost(now);
  return {
    async [Symbol.asyncDispose]() {
      isOver = true;
      clearTimeout(timer);
      worker.cache.off('ready', now);
      await under;
    },
  };
}

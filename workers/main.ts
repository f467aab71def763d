import { type Telemetry, UnrecoverableError, Worker } from 'bullmq';
import type { Logger } from 'pino';
import { databaseUrls, openLoggedRedis, queueRedis } from '../src/app/connections.ts';
import { Disposer } from '../src/app/disposer.ts';
import { composeWorker } from '../src/app/worker.ts';
import type { Config } from '../src/config/config.ts';
import { BadSetting } from '../src/config/settings.ts';
import { pruneAlerts } from '../src/db/alert-deliveries.ts';
import { pruneChanges } from '../src/db/changes.ts';
import { pruneFeed } from '../src/db/feed-events.ts';
import { readLineage } from '../src/db/lineage.ts';
import { EVERY_MINUTE } from '../src/db/operating.ts';
import { type RedisClient, redisReady } from '../src/db/redis.ts';
import { redisMisfit } from '../src/db/redis-misfit.ts';
import { pruneRuns } from '../src/db/sync/run.ts';
import { pruneSlots, slotsWaitUntil } from '../src/db/sync/slots.ts';
import { withTimeout } from '../src/domain/timeout.ts';
import type { ComparisonObserver } from '../src/snapshot/publish/comparison.ts';
import type { PublishObserver } from '../src/snapshot/publish/publisher.ts';
import { keepPulse } from '../src/snapshot/publish/pulse.ts';
import { publishingRounds } from '../src/snapshot/publish/rounds.ts';
import type { RetryPolicy } from '../src/sources/http/retries.ts';
import { ALERTS_SCHEDULE, alertProcessor } from './alerts.ts';
import { type ExportObserver, exportNowAndThen } from './exports.ts';
import { enqueueNewlyRated } from './newly-rated.ts';
import { type SyncDependencies, syncProcessor } from './processors/sync.ts';
import {
  ALERTS_QUEUE,
  type AlertJob,
  AttemptFailed,
  backoffStrategy,
  jobId,
  METRICS,
  NEVER_GIVEN_UP,
  openQueues,
  QUEUE_PREFIX,
  type Queues,
  SWEEP_QUEUE,
  SYNC_QUEUE,
  type SyncJob,
  withoutParameters,
} from './queues.ts';
import { Scheduler } from './schedule.ts';
import { openWatches } from './watching.ts';

const CLOSE_WITHIN_MS = 20_000;
/** What is only a few statements gets this long; a Postgres that hangs must not keep the process. */
const LET_GO_WITHIN_MS = 3000;
const SWEEP_SCHEDULE = { name: EVERY_MINUTE, cron: '* * * * *' };

export interface WorkerOptions {
  /** Counts runs. */
  readonly observe?: SyncDependencies['observe'];
  /** Counts rounds of publishing. */
  readonly published?: PublishObserver;
  /** Counts what the comparison of the cache finds. */
  readonly comparison?: ComparisonObserver;
  /** Counts attempts to make the files of the catalogue. */
  readonly exported?: ExportObserver;
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
    exported,
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
        comparison,
        onNewLineage: () => scheduler?.catchUpSoon(),
        requestRetries,
      }),
    );
    const server = queueRedis(config);
    const producer = openLoggedRedis(server, 'producer', logger);
    closing.defer(() => producer.disconnect());
    await redisReady(producer, 10_000);
    const misfit = await redisMisfit(producer, server.setting, false);
    if (misfit) throw new BadSetting(`the queues' Redis cannot be used: ${misfit.what}; ${misfit.remedy}`);
    const queues = openQueues(producer, logger, telemetry);
    closing.defer(() => Promise.all(queues.all.map((queue) => queue.close())));
    // A queue whose first look at Redis fails stays broken for good: the start fails instead.
    await Promise.all(queues.all.map((queue) => queue.waitUntilReady()));

    const consumer = openLoggedRedis(server, 'worker', logger);
    const copies = keepCopies(consumer);
    closing.defer(() => {
      for (const connection of [consumer, ...copies])
        if (connection.status !== 'end') connection.disconnect();
    });
    const consume = { connection: consumer, prefix: QUEUE_PREFIX, metrics: METRICS, ...NEVER_GIVEN_UP };
    const workers = [
      new Worker<SyncJob>(
        SYNC_QUEUE,
        withoutParameters(
          syncProcessor({
            config,
            worker,
            queue: queues.sync,
            logger,
            ...(observe === undefined ? {} : { observe }),
          }),
        ),
        // One provider's outage must not keep another one waiting: there is room for every source.
        {
          ...consume,
          ...(telemetry && { telemetry }),
          concurrency: Math.max(4, config.sources.length),
          settings: { backoffStrategy },
        },
      ),
      new Worker(
        SWEEP_QUEUE,
        withoutParameters(async () => {
          await pruneSlots(worker.store.db);
          await pruneChanges(worker.store.db, config.settings.CHANGES_KEPT);
          await pruneFeed(worker.store.db, config.settings.CHANGES_KEPT);
          await pruneRuns(worker.store.db);
          await pruneAlerts(worker.store.db);
        }),
        consume,
      ),
      new Worker<AlertJob>(
        ALERTS_QUEUE,
        withoutParameters(alertProcessor({ config, db: worker.store.db, queue: queues.alerts, logger })),
        // A receiver that hangs must not keep the next look waiting.
        { ...consume, concurrency: config.alerts.webhooks.length + 1, settings: { backoffStrategy } },
      ),
    ];
    for (const worker of workers) {
      worker.on('error', (error) => logger.debug({ err: error, queue: worker.name }, 'queue consumer'));
      // What a source said is told where it is known which one it was.
      worker.on('failed', (job, error) => {
        const told = error instanceof UnrecoverableError || error instanceof AttemptFailed;
        logger[told ? 'debug' : 'warn']({ err: error, queue: worker.name, job: job?.id }, 'job failed');
      });
    }
    const watches = openWatches({
      config,
      worker,
      logger,
      ...(observe === undefined ? {} : { observe }),
    });
    closing.defer(async () => {
      await withTimeout(LET_GO_WITHIN_MS, worker.store.liveRuns.stopping()).catch(() => false);
      const isRedisThere = [consumer, ...copies].every(({ status }) => status === 'ready');
      const end = (worker: Worker) => (isRedisThere ? drain(worker, closeWithinMs, logger) : abandon(worker));
      return Promise.all([...workers.map(end), watches.stop(closeWithinMs)]);
    });

    const pulse = keepPulse(() => worker.publisher.pulse());
    closing.defer(() => pulse[Symbol.dispose]());
    const { publisher, cache, store } = worker;
    const rounds = publishingRounds({ publisher, cache, onLost: store.onLost, logger });
    closing.defer(() => withTimeout(LET_GO_WITHIN_MS, rounds[Symbol.asyncDispose]()));
    const { EXPORT_EVERY } = config.settings;
    if (EXPORT_EVERY > 0) {
      const exporting = exportNowAndThen({
        sql: worker.store.sql,
        ...databaseUrls(config),
        everyMs: EXPORT_EVERY * 1000,
        logger,
        observe: exported,
      });
      closing.defer(() => withTimeout(LET_GO_WITHIN_MS, exporting[Symbol.asyncDispose]()));
    }
    const clocks = new Scheduler({
      db: worker.store.db,
      schedules: [
        ...config.sources.map(({ id, schedule }) => ({ name: id, cron: schedule })),
        SWEEP_SCHEDULE,
        ALERTS_SCHEDULE,
      ],
      enqueue: async ({ schedule, slot }) => {
        const options = { jobId: jobId(schedule, slot, await readLineage(worker.store.sql)) };
        if (schedule === SWEEP_SCHEDULE.name) {
          await queues.sweep.add('sweep', {}, options);
          return;
        }
        if (schedule === ALERTS_SCHEDULE.name) {
          // The next one comes in a minute.
          await queues.alerts.add('evaluate', {}, { ...options, attempts: 1 });
          return;
        }
        const until = await slotsWaitUntil(worker.store.db, schedule);
        const delay = Math.max(0, (until?.getTime() ?? 0) - Date.now());
        await queues.sync.add('sync', { sourceId: schedule, slot }, { ...options, delay });
      },
      logger,
    });
    closing.defer(() => withTimeout(LET_GO_WITHIN_MS, clocks[Symbol.asyncDispose]()));
    scheduler = clocks;
    // At once and not with the next run, which may be a day away; where it cannot be yet, with that.
    void worker
      .adoptCurrency()
      .catch((error: unknown) => logger.debug({ err: error }, 'the currency is not adopted yet'))
      .then(() => enqueueNewlyRated(config, worker, queues.sync))
      .catch((error: unknown) =>
        logger.debug({ err: error }, 'sources with a new rate wait for their slots'),
      );
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
 * BullMQ copies the connection that it is given, and while Redis is away it never lets go of the copy, which connects
 * again and again. So copies are kept here, and ended here.
 */
function keepCopies(connection: RedisClient): readonly RedisClient[] {
  const copies: RedisClient[] = [];
  const duplicate = connection.duplicate.bind(connection) as (...options: unknown[]) => RedisClient;
  const kept = (...options: unknown[]) => {
    const copy = duplicate(...options);
    copies.push(copy);
    return copy;
  };
  connection.duplicate = kept as typeof connection.duplicate;
  return copies;
}

/**
 * BullMQ waits for jobs without a limit, and to close by force is no use once it closes: what does not end in time
 * is told to stop, and goes back into the queue. The fence keeps a run that does not even hear that from writing.
 */
async function drain(worker: Worker, ms: number, logger: Logger): Promise<void> {
  const closed = worker.close();
  if (await withTimeout(ms, closed)) return;
  logger.warn({ queue: worker.name }, 'jobs did not end in time and are handed back');
  worker.cancelAllJobs('the worker stops');
  await withTimeout(LET_GO_WITHIN_MS, closed);
}

/** Without Redis no job can be told to have ended, and BullMQ would wait for it to come back. */
async function abandon(worker: Worker): Promise<void> {
  worker.cancelAllJobs('the worker stops');
  await withTimeout(LET_GO_WITHIN_MS, worker.close(true));
}

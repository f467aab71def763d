import { type Processor, UnrecoverableError, Worker, type WorkerOptions } from 'bullmq';
import type { Logger } from 'pino';
import { openLoggedRedis } from '../src/app/connections.ts';
import type { ServerSetting } from '../src/db/connection/server-problem.ts';
import { withTimeout } from '../src/lib/timeout.ts';
import type { RedisClient } from '../src/redis/redis.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { backoffStrategy, METRICS, NEVER_GIVEN_UP, QUEUE_PREFIX, withoutParameters } from './queues.ts';

/** Milliseconds that BullMQ gets to note in Redis that a consumer has ended. */
const LET_GO_WITHIN_MS = 3000;

/** The consumers of a worker's queues. */
export class Consumers {
  readonly #logger: Logger;
  readonly #connection: RedisClient;
  readonly #copies: readonly RedisClient[];
  readonly #consumers: Worker[] = [];

  constructor(server: ServerSetting, logger: Logger) {
    this.#logger = logger;
    this.#connection = openLoggedRedis(server, 'worker', logger);
    this.#copies = keepCopies(this.#connection);
  }

  /** Starts to process the jobs of a queue. */
  add<Data>(
    queue: string,
    process: Processor<Data>,
    options: Pick<WorkerOptions, 'concurrency' | 'telemetry'> = {},
  ): void {
    const consumer = new Worker<Data>(queue, withoutParameters(process), {
      connection: this.#connection,
      prefix: QUEUE_PREFIX,
      metrics: METRICS,
      ...NEVER_GIVEN_UP,
      settings: { backoffStrategy },
      ...options,
    });
    consumer.on('error', (error) => this.#logger.debug({ err: error, queue }, 'queue consumer'));
    consumer.on('failed', (job, error) => {
      // The processor has logged these with the name of the source.
      const isLogged = error instanceof UnrecoverableError || error instanceof AttemptFailed;
      this.#logger[isLogged ? 'debug' : 'warn']({ err: error, queue, job: job?.id }, 'job failed');
    });
    this.#consumers.push(consumer);
  }

  /** Takes no more jobs, and hands back those that do not end in time. */
  async stop(withinMs: number): Promise<void> {
    const isRedisThere = [this.#connection, ...this.#copies].every(({ status }) => status === 'ready');
    const end = (consumer: Worker) =>
      isRedisThere ? drain(consumer, withinMs, this.#logger) : abandon(consumer);
    await Promise.all(this.#consumers.map(end));
  }

  disconnect(): void {
    for (const connection of [this.#connection, ...this.#copies])
      if (connection.status !== 'end') connection.disconnect();
  }
}

/**
 * Collects the copies that BullMQ makes of a connection. While Redis is away BullMQ never closes them, and they connect again
 * and again.
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
 * Waits for the jobs under way. BullMQ waits without a limit, and a forced close has no effect once it closes: jobs that do not
 * end in time are cancelled and go back into the queue. The fence keeps a run that ignores this from writing.
 */
async function drain(consumer: Worker, ms: number, logger: Logger): Promise<void> {
  const closed = consumer.close();
  if (await withTimeout(ms, closed)) return;
  logger.warn({ queue: consumer.name }, 'jobs did not end in time and are handed back');
  consumer.cancelAllJobs('the worker stops');
  await withTimeout(LET_GO_WITHIN_MS, closed);
}

/** Cancels all jobs. Without Redis no end of a job can be stored, and BullMQ would wait for its return. */
async function abandon(consumer: Worker): Promise<void> {
  consumer.cancelAllJobs('the worker stops');
  await withTimeout(LET_GO_WITHIN_MS, consumer.close(true));
}

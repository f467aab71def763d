import { type Processor, UnrecoverableError, Worker, type WorkerOptions } from 'bullmq';
import type { Logger } from 'pino';
import { openLoggedRedis } from '../src/app/connections.ts';
import type { ServerSetting } from '../src/db/connection/server-problem.ts';
import { withTimeout } from '../src/domain/clock.ts';
import type { RedisClient } from '../src/redis/redis.ts';
import { ALWAYS_REPEATED, METRICS, withoutParameters } from './queues.ts';

/** Milliseconds for BullMQ to store the end of a consumer in Redis. */
const END_WITHIN_MS = 3000;

export class Consumers {
  readonly #logger: Logger;
  readonly #prefix: string;
  readonly #connection: RedisClient;
  readonly #copies: readonly RedisClient[];
  readonly #consumers: Worker[] = [];

  /** @param prefix of the queues, see queues.ts */
  constructor(server: ServerSetting, prefix: string, logger: Logger) {
    this.#prefix = prefix;
    this.#logger = logger;
    this.#connection = openLoggedRedis(server, 'worker', logger);
    this.#copies = collectCopies(this.#connection);
  }

  add<Data>(
    queue: string,
    process: Processor<Data>,
    options: Pick<WorkerOptions, 'concurrency' | 'telemetry'> = {},
  ): void {
    const consumer = new Worker<Data>(queue, withoutParameters(process), {
      connection: this.#connection,
      prefix: this.#prefix,
      metrics: METRICS,
      ...ALWAYS_REPEATED,
      ...options,
    });
    consumer.on('error', (error) => this.#logger.debug({ err: error, queue }, 'queue consumer'));
    consumer.on('failed', (job, error) => {
      // The processor has logged it with the name of the source.
      const isLogged = error instanceof UnrecoverableError;
      this.#logger[isLogged ? 'debug' : 'warn']({ err: error, queue, job: job?.id }, 'job failed');
    });
    this.#consumers.push(consumer);
  }

  /** Takes no more jobs, and returns unfinished ones to their queues. */
  async stop(withinMs: number): Promise<void> {
    const isConnected = [this.#connection, ...this.#copies].every(({ status }) => status === 'ready');
    const end = (consumer: Worker) =>
      isConnected ? drain(consumer, withinMs, this.#logger) : abandon(consumer);
    await Promise.all(this.#consumers.map(end));
  }

  disconnect(): void {
    for (const connection of [this.#connection, ...this.#copies])
      if (connection.status !== 'end') connection.disconnect();
  }
}

/** Collects BullMQ's copies of a connection. During an outage of Redis BullMQ does not close them, and they reconnect forever. */
function collectCopies(connection: RedisClient): readonly RedisClient[] {
  const copies: RedisClient[] = [];
  const duplicate = connection.duplicate.bind(connection) as (...options: unknown[]) => RedisClient;
  connection.duplicate = ((...options: unknown[]) => {
    const copy = duplicate(...options);
    copies.push(copy);
    return copy;
  }) as typeof connection.duplicate;
  return copies;
}

/**
 * Waits for the running jobs, then cancels them, which returns them to the queue. BullMQ's own close waits without a limit
 * and cannot be forced afterwards. The fence stops the writes of a run that ignores its cancellation.
 */
async function drain(consumer: Worker, ms: number, logger: Logger): Promise<void> {
  const closed = consumer.close();
  if (await withTimeout(ms, closed)) return;
  logger.warn({ queue: consumer.name }, 'jobs did not end in time; they return to the queue');
  consumer.cancelAllJobs('the worker stops');
  await withTimeout(END_WITHIN_MS, closed);
}

/** Cancels all jobs. Without Redis no job can end properly, and BullMQ would wait for Redis. */
async function abandon(consumer: Worker): Promise<void> {
  consumer.cancelAllJobs('the worker stops');
  await withTimeout(END_WITHIN_MS, consumer.close(true));
}

import cron, { type ScheduledTask } from 'node-cron';
import type { Logger } from 'pino';
import type { SourceConfig } from '../src/config/config.ts';
import type { ClientDatabase, Database, Store } from '../src/db/connection/connect.ts';
import { readLineage } from '../src/db/lineage.ts';
import { latestSlot } from '../src/domain/schedule.ts';
import type { RedisClient } from '../src/redis/redis.ts';
import { SCHEDULES_KEY } from '../src/snapshot/document/keys.ts';
import { disabledSources } from '../src/sync/runs/disabled.ts';
import {
  type Attempt,
  attemptEnqueued,
  attemptsToEnqueue,
  claimSlot,
  databaseNow,
  EVERY_MINUTE,
} from '../src/sync/runs/slots.ts';
import { jobId, type Queues } from './queues.ts';

export interface Schedule {
  /** A source's id, or the name of an internal job. */
  readonly name: string;
  readonly cron: string;
}

export const SWEEP_SCHEDULE: Schedule = { name: EVERY_MINUTE, cron: '* * * * *' };

export interface SchedulerOptions {
  readonly db: ClientDatabase;
  readonly schedules: readonly Schedule[];
  /** Adds the attempt's job to its queue. It is called again after a failure. */
  readonly enqueue: (attempt: Attempt) => Promise<void>;
  readonly logger: Logger;
  readonly now?: () => Date;
  /** Milliseconds between two checks for due attempts without a job; 1,000 by default. */
  readonly checkEveryMs?: number;
  readonly databaseNow?: () => Promise<Date>;
}

/** Largest accepted difference (ms) between the clocks of this machine and of PostgreSQL. */
const CLOCKS_MAY_DIFFER_MS = 60_000;
/** Milliseconds between two checks for due slots that do not depend on node-cron. */
const CATCH_UP_EVERY_MS = 60_000;

/** A claimed slot without a job is enqueued after this time (ms): its worker has died, or Redis was not available. */
const ENQUEUE_GRACE_MS = 5000;
const CHECK_EVERY_MS = 1000;

/**
 * Enqueues the attempts of slots when they are due. node-cron fires in every worker; the worker that inserts the slot's row in
 * Postgres enqueues its first attempt. Any worker enqueues later ones: retries, and runs that were requested. Redis stores no
 * schedule, so a flush of Redis loses no slot.
 *
 * A wrong clock loses no slot either. After a clock was set back, node-cron waits; a timer therefore checks for due slots
 * as well. A claimed slot in the future would cover all slots before it; the scheduler therefore uses PostgreSQL's clock if
 * the two differ too much.
 */
export class Scheduler implements AsyncDisposable {
  readonly #options: SchedulerOptions;
  readonly #now: () => Date;
  readonly #tasks: ScheduledTask[] = [];
  readonly #running = new Set<Promise<void>>();
  #checks: NodeJS.Timeout | undefined;
  #isChecking = false;
  #catchingUp: NodeJS.Timeout | undefined;
  #isClockLogged = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => new Date());
  }

  /** Starts the timers, and claims the latest slot of each schedule if no worker has claimed it. */
  start(): void {
    for (const schedule of this.#options.schedules) {
      this.#tasks.push(
        cron.schedule(schedule.cron, () => this.#background(this.claimDue([schedule])), { timezone: 'UTC' }),
      );
    }
    this.#checks = setInterval(() => this.#checkSoon(), this.#options.checkEveryMs ?? CHECK_EVERY_MS);
    this.#catchingUp = setInterval(() => this.catchUpSoon(), CATCH_UP_EVERY_MS);
    this.catchUpSoon();
  }

  catchUpSoon(): void {
    this.#background(this.catchUp());
  }

  /** Claims and enqueues due slots. It is safe at any time, in any number of workers. */
  async claimDue(schedules: readonly Schedule[] = this.#options.schedules): Promise<void> {
    const now = await this.#time();
    for (const schedule of schedules) {
      const slot = { schedule: schedule.name, slot: latestSlot(schedule.cron, now) };
      if (await claimSlot(this.#options.db, slot)) await this.#enqueue({ ...slot, attempt: 0 });
    }
  }

  async catchUp(): Promise<void> {
    await this.claimDue();
    await this.#enqueueDue('warn');
  }

  async #enqueueDue(failureLevel: 'warn' | 'debug'): Promise<void> {
    const configured = new Set(this.#options.schedules.map(({ name }) => name));
    for (const attempt of await attemptsToEnqueue(this.#options.db, ENQUEUE_GRACE_MS)) {
      if (configured.has(attempt.schedule)) await this.#enqueue(attempt, failureLevel);
    }
  }

  /** Failures are only logged for debugging: the check of every minute warns about them. */
  #checkSoon(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const check = this.#enqueueDue('debug')
      .catch((error: unknown) =>
        this.#options.logger.debug({ err: error }, 'due attempts without a job could not be read'),
      )
      .finally(() => {
        this.#isChecking = false;
      });
    this.#background(check);
  }

  /** Returns the time of this machine, or PostgreSQL's if the two differ too much. */
  async #time(): Promise<Date> {
    const { db, logger, databaseNow: readDatabase = () => databaseNow(db) } = this.#options;
    const [database, own] = [await readDatabase(), this.#now()];
    const aheadMs = own.getTime() - database.getTime();
    const isWrong = Math.abs(aheadMs) > CLOCKS_MAY_DIFFER_MS;
    if (isWrong && !this.#isClockLogged)
      logger.warn(
        { aheadSeconds: Math.round(aheadMs / 1000) },
        "this machine's clock differs from PostgreSQL's; the worker uses PostgreSQL's until you correct it",
      );
    this.#isClockLogged = isWrong;
    return isWrong ? database : own;
  }

  async #enqueue(attempt: Attempt, failureLevel: 'warn' | 'debug' = 'warn'): Promise<void> {
    try {
      await this.#options.enqueue(attempt);
    } catch (error) {
      this.#options.logger[failureLevel](
        { err: error, ...attempt },
        'the slot could not be enqueued; the worker retries it',
      );
      return;
    }
    await attemptEnqueued(this.#options.db, attempt);
  }

  #background(work: Promise<void>): void {
    const guarded = work.catch((error: unknown) =>
      this.#options.logger.warn(
        { err: error },
        'slots could not be claimed; the worker retries within a minute',
      ),
    );
    this.#running.add(guarded);
    void guarded.finally(() => this.#running.delete(guarded));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#checks);
    clearInterval(this.#catchingUp);
    for (const task of this.#tasks) await task.destroy();
    await Promise.all(this.#running);
  }
}

export function enqueuer({ db }: Pick<Store, 'db'>, queues: Queues): SchedulerOptions['enqueue'] {
  return async (attempt) => {
    const { schedule, slot } = attempt;
    const options = { jobId: jobId(attempt, await readLineage(db.$client)) };
    if (schedule === SWEEP_SCHEDULE.name) {
      await queues.sweep.add('sweep', {}, options);
      return;
    }
    const ofFeature = queues.ofFeatures.find(({ name }) => name === schedule);
    if (ofFeature?.schedule) {
      await ofFeature.queue.add(ofFeature.schedule.job, {}, options);
      return;
    }
    // The attempt is due, so an ended job with its id is from before: its worker died, or lost PostgreSQL, before the end was stored.
    const former = await queues.sync.getJob(options.jobId);
    if (former?.finishedOn !== undefined) await former.remove();
    await queues.sync.add('sync', { sourceId: schedule, slot, attempt: attempt.attempt }, options);
  };
}

/** Seconds after which the schedules of stopped workers are gone. */
const STORED_FOR_S = 300;

/** Stores in the cache when sources run, for readers. A disabled source is left out. It never fails. */
export async function storeSchedules(
  db: Database,
  cache: RedisClient,
  sources: readonly Pick<SourceConfig, 'id' | 'schedule'>[],
  logger: Logger,
): Promise<void> {
  try {
    const disabled = await disabledSources(db);
    const running = sources.filter(({ id }) => !disabled.has(id));
    if (disabled.size > 0) await cache.hdel(SCHEDULES_KEY, ...disabled.keys());
    if (running.length > 0)
      await cache.hset(SCHEDULES_KEY, Object.fromEntries(running.map(({ id, schedule }) => [id, schedule])));
    await cache.expire(SCHEDULES_KEY, STORED_FOR_S);
  } catch (error) {
    logger.debug({ err: error }, 'the schedules were not stored; the worker retries it in a minute');
  }
}

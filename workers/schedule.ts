import cron, { type ScheduledTask } from 'node-cron';
import type { Logger } from 'pino';
import type { ClientDatabase, Store } from '../src/db/connection/connect.ts';
import { readLineage } from '../src/db/lineage.ts';
import {
  claimSlot,
  databaseNow,
  EVERY_MINUTE,
  type Slot,
  slotEnqueued,
  slotsToEnqueue,
  slotsWaitUntil,
} from '../src/db/sync/slots.ts';
import { latestSlot } from '../src/domain/schedule.ts';
import { jobId, type Queues } from './queues.ts';

export interface Schedule {
  /** The source's id, or the name of a job of the house. */
  readonly name: string;
  /** Five cron fields, UTC. */
  readonly cron: string;
}

export const SWEEP_SCHEDULE: Schedule = { name: EVERY_MINUTE, cron: '* * * * *' };

export interface SchedulerOptions {
  readonly db: ClientDatabase;
  readonly schedules: readonly Schedule[];
  /** Puts the slot's job into its queue; called again for a slot that did not get there. */
  readonly enqueue: (slot: Slot) => Promise<void>;
  readonly logger: Logger;
  /** This machine's clock. */
  readonly now?: () => Date;
  /** Milliseconds between two looks for slots that did not get into the queue; 5,000 unless given. */
  readonly lookEveryMs?: number;
  /** PostgreSQL's clock; it is asked unless given. */
  readonly databaseNow?: () => Promise<Date>;
}

/** A machine's clock that differs by more than this (ms) from PostgreSQL's is not believed. */
const CLOCKS_MAY_DIFFER_MS = 60_000;
/** How often what is due is looked for besides, whatever the clocks say (ms). */
const CATCH_UP_EVERY_MS = 60_000;

/** A claimed slot that is not in the queue after this long (ms) was claimed by a worker that died, or Redis was away. */
const ENQUEUE_GRACE_MS = 5000;
/** Milliseconds between two looks for such slots: a schedule may have an hour to the next one. */
const LOOK_EVERY_MS = 5000;

/**
 * One slot, one run. node-cron fires in every worker; who inserts the slot's row in Postgres enqueues its job.
 * Nothing about the schedule is kept in Redis, so that a flushed one loses nothing.
 *
 * A clock that is wrong loses nothing either: one that was set back keeps node-cron waiting until that time has come
 * again, so what is due is looked for by a timer too; and a slot of the future, claimed, would cover every one until
 * then, so a clock that is far from PostgreSQL's is not believed.
 */
export class Scheduler implements AsyncDisposable {
  readonly #options: SchedulerOptions;
  readonly #now: () => Date;
  readonly #tasks: ScheduledTask[] = [];
  readonly #running = new Set<Promise<void>>();
  #looks: NodeJS.Timeout | undefined;
  #isLooking = false;
  #catchingUp: NodeJS.Timeout | undefined;
  #isClockTold = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => new Date());
  }

  /** Starts the clocks. Slots that passed while no worker ran are claimed at once: the latest of each schedule. */
  start(): void {
    for (const schedule of this.#options.schedules) {
      this.#tasks.push(
        cron.schedule(schedule.cron, () => this.#background(this.claimDue([schedule])), { timezone: 'UTC' }),
      );
    }
    this.#looks = setInterval(() => this.#lookSoon(), this.#options.lookEveryMs ?? LOOK_EVERY_MS);
    this.#catchingUp = setInterval(() => this.catchUpSoon(), CATCH_UP_EVERY_MS);
    this.catchUpSoon();
  }

  /** `catchUp` in the background; a failure is logged. */
  catchUpSoon(): void {
    this.#background(this.catchUp());
  }

  /** Claims what is due and enqueues it; safe at any time, in any number of workers. */
  async claimDue(schedules: readonly Schedule[] = this.#options.schedules): Promise<void> {
    const now = await this.#time();
    for (const schedule of schedules) {
      const slot = { schedule: schedule.name, slot: latestSlot(schedule.cron, now) };
      if (await claimSlot(this.#options.db, slot)) await this.#enqueue(slot);
    }
  }

  /** Claims what is due, and enqueues slots that were claimed and never got into the queue. */
  async catchUp(): Promise<void> {
    await this.claimDue();
    await this.#enqueueLost();
  }

  async #enqueueLost(): Promise<void> {
    const configured = new Set(this.#options.schedules.map(({ name }) => name));
    for (const slot of await slotsToEnqueue(this.#options.db, ENQUEUE_GRACE_MS)) {
      if (configured.has(slot.schedule)) await this.#enqueue(slot);
    }
  }

  /** What fails here is told by the look of every minute, which fails as well. */
  #lookSoon(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const look = this.#enqueueLost()
      .catch((error: unknown) => this.#options.logger.debug({ err: error }, 'no look for lost slots'))
      .finally(() => {
        this.#isLooking = false;
      });
    this.#background(look);
  }

  /** This machine's, which fires to the second, unless it is wrong. */
  async #time(): Promise<Date> {
    const { db, logger, databaseNow: ask = () => databaseNow(db) } = this.#options;
    const [database, own] = [await ask(), this.#now()];
    const aheadMs = own.getTime() - database.getTime();
    const isWrong = Math.abs(aheadMs) > CLOCKS_MAY_DIFFER_MS;
    if (isWrong && !this.#isClockTold)
      logger.warn(
        { aheadSeconds: Math.round(aheadMs / 1000) },
        "this machine's clock differs from PostgreSQL's, by which slots are due until it is set right",
      );
    this.#isClockTold = isWrong;
    return isWrong ? database : own;
  }

  async #enqueue(slot: Slot): Promise<void> {
    try {
      await this.#options.enqueue(slot);
    } catch (error) {
      this.#options.logger.warn({ err: error, ...slot }, 'the slot could not be enqueued; it is tried again');
      return;
    }
    await slotEnqueued(this.#options.db, slot);
  }

  #background(work: Promise<void>): void {
    const guarded = work.catch((error: unknown) =>
      this.#options.logger.warn(
        { err: error },
        'slots could not be claimed; they are tried again within a minute',
      ),
    );
    this.#running.add(guarded);
    void guarded.finally(() => this.#running.delete(guarded));
  }

  /** Stops the clocks and waits for claims that are under way. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#looks);
    clearInterval(this.#catchingUp);
    for (const task of this.#tasks) await task.destroy();
    await Promise.all(this.#running);
  }
}

/** Returns a function that adds the job of a slot to its queue. */
export function enqueuer(
  { db, sql }: Pick<Store, 'db' | 'sql'>,
  queues: Queues,
): SchedulerOptions['enqueue'] {
  return async ({ schedule, slot }) => {
    const options = { jobId: jobId(schedule, slot, await readLineage(sql)) };
    if (schedule === SWEEP_SCHEDULE.name) {
      await queues.sweep.add('sweep', {}, options);
      return;
    }
    const ofFeature = queues.ofFeatures.find(({ name }) => name === schedule);
    if (ofFeature?.schedule) {
      // The next slot follows.
      await ofFeature.queue.add(ofFeature.schedule.job, {}, { ...options, attempts: 1 });
      return;
    }
    const until = await slotsWaitUntil(db, schedule);
    const delay = Math.max(0, (until?.getTime() ?? 0) - Date.now());
    await queues.sync.add('sync', { sourceId: schedule, slot }, { ...options, delay });
  };
}

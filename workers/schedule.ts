import cron, { type ScheduledTask } from 'node-cron';
import type { Logger } from 'pino';
import type { ClientDatabase } from '../src/db/connect.ts';
import { claimSlot, type Slot, slotEnqueued, slotsToEnqueue } from '../src/db/queries/slots.ts';
import { latestSlot } from '../src/domain/slots.ts';

export interface Schedule {
  /** The source's id, or the name of a job of the house. */
  readonly name: string;
  /** Five cron fields, UTC. */
  readonly cron: string;
}

export interface SchedulerOptions {
  readonly db: ClientDatabase;
  readonly schedules: readonly Schedule[];
  /** Puts the slot's job into its queue; called again for a slot that did not get there. */
  readonly enqueue: (slot: Slot) => Promise<void>;
  readonly logger: Logger;
  readonly now?: () => Date;
}

/** A claimed slot that is not in the queue after this long (ms) was claimed by a worker that died, or Redis was away. */
const ENQUEUE_GRACE_MS = 5000;

/**
 * One slot, one run. node-cron fires in every worker; who inserts the slot's row in Postgres enqueues its job.
 * Nothing about the schedule is kept in Redis, so that a flushed one loses nothing.
 */
export class Scheduler implements AsyncDisposable {
  readonly #options: SchedulerOptions;
  readonly #now: () => Date;
  readonly #tasks: ScheduledTask[] = [];
  readonly #running = new Set<Promise<void>>();

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
    this.#tasks.push(cron.schedule('* * * * *', () => this.catchUpSoon(), { timezone: 'UTC' }));
    this.catchUpSoon();
  }

  /** `catchUp` in the background; a failure is logged. */
  catchUpSoon(): void {
    this.#background(this.catchUp());
  }

  /** Claims what is due and enqueues it; safe at any time, in any number of workers. */
  async claimDue(schedules: readonly Schedule[] = this.#options.schedules): Promise<void> {
    for (const schedule of schedules) {
      const slot = { schedule: schedule.name, slot: latestSlot(schedule.cron, this.#now()) };
      if (await claimSlot(this.#options.db, slot)) await this.#enqueue(slot);
    }
  }

  /** Claims what is due, and enqueues slots that were claimed and never got into the queue. */
  async catchUp(): Promise<void> {
    await this.claimDue();
    const configured = new Set(this.#options.schedules.map(({ name }) => name));
    for (const slot of await slotsToEnqueue(this.#options.db, ENQUEUE_GRACE_MS)) {
      if (configured.has(slot.schedule)) await this.#enqueue(slot);
    }
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
    for (const task of this.#tasks) await task.destroy();
    await Promise.all(this.#running);
  }
}

import { Unavailable } from '../../document/answer.ts';

/** Too many callers wait already: nothing is said about what is behind the gate. */
export class SemaphoreFull extends Unavailable {}

/** Lets a fixed number of calls through at once, a few wait for their turn, and the rest are told to come back. */
export class Semaphore {
  readonly #atOnce: number;
  readonly #waitingAtMost: number;
  readonly #deadlineMs: number;
  readonly #waiting = new Set<() => void>();
  #running = 0;

  constructor(options: { atOnce: number; waitingAtMost: number; deadlineMs: number }) {
    this.#atOnce = options.atOnce;
    this.#waitingAtMost = options.waitingAtMost;
    this.#deadlineMs = options.deadlineMs;
  }

  /**
   * Runs `call` when there is room. The deadline holds for waiting and running together. A call that outlives it
   * keeps its place until it ends, so that a hung Postgres is not asked more and more.
   * @throws SemaphoreFull when too many wait already.
   * @throws Unavailable when the deadline passes.
   */
  async run<T>(call: () => Promise<T>): Promise<T> {
    const { promise: expired, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Unavailable('PostgreSQL did not answer in time')),
      this.#deadlineMs,
    );
    try {
      await this.#enter(expired);
      const work = call().finally(() => this.#leave());
      return await Promise.race([work, expired]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #enter(expired: Promise<never>): Promise<void> {
    if (this.#running < this.#atOnce) {
      this.#running += 1;
      return;
    }
    if (this.#waiting.size >= this.#waitingAtMost)
      throw new SemaphoreFull('too many reads wait for PostgreSQL');
    const { promise: turn, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    try {
      await Promise.race([turn, expired]);
    } catch (error) {
      // Handed the place in the very moment in which it gave up: the next one gets it.
      if (!this.#waiting.delete(resolve)) this.#leave();
      throw error;
    }
  }

  #leave(): void {
    // The place goes to the next in line without being freed in between.
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      next();
      return;
    }
    this.#running -= 1;
  }
}

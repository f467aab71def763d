import { Unavailable } from '../../document/answer.ts';

/** Too many callers wait. The call did not run. */
export class SemaphoreFull extends Unavailable {}

/** Runs a fixed number of calls at once. Some wait for their turn, the rest are rejected. */
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
   * Runs `call` in its turn. The deadline covers waiting and running. A call that outlives it keeps its place until it ends, so
   * that a hung Postgres does not get more and more reads.
   * @throws SemaphoreFull if too many wait
   * @throws Unavailable after the deadline
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
      // It got the place at the moment of its deadline: the next one takes it.
      if (!this.#waiting.delete(resolve)) this.#leave();
      throw error;
    }
  }

  #leave(): void {
    // The next in line takes the place. It is never free in between.
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      next();
      return;
    }
    this.#running -= 1;
  }
}

import { Unavailable } from '../../document/answer.ts';

/** Too many callers wait. The call did not run. */
export class SemaphoreFull extends Unavailable {}

export interface SemaphoreLimits {
  readonly atOnce: number;
  readonly waitingAtMost: number;
  readonly deadlineMs: number;
}

/** Runs a fixed number of calls at once. Some wait for their turn, the rest are rejected. */
export class Semaphore {
  readonly #limits: SemaphoreLimits;
  readonly #waiting = new Set<() => void>();
  #running = 0;

  constructor(limits: SemaphoreLimits) {
    this.#limits = limits;
  }

  /**
   * Runs `call` in its turn. The deadline covers waiting and running. A call that outlives it stays counted until it ends, so
   * that a hung Postgres does not get more and more reads.
   * @throws SemaphoreFull, Unavailable after the deadline
   */
  async run<T>(call: () => Promise<T>): Promise<T> {
    const { promise: expired, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Unavailable('PostgreSQL did not answer in time')),
      this.#limits.deadlineMs,
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
    if (this.#running < this.#limits.atOnce) {
      this.#running += 1;
      return;
    }
    if (this.#waiting.size >= this.#limits.waitingAtMost)
      throw new SemaphoreFull('too many reads wait for PostgreSQL');
    const { promise: turn, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    try {
      await Promise.race([turn, expired]);
    } catch (error) {
      // Its turn came at the moment of its deadline: the next call gets it.
      if (!this.#waiting.delete(resolve)) this.#leave();
      throw error;
    }
  }

  #leave(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#running -= 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}

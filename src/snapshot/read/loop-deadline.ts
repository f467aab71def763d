/** The deadline is this many ticks. */
const TICKS = 5;

interface Waiting {
  readonly until: number;
  readonly expire: () => void;
}

/**
 * Rejects promises that take long. Time is counted in ticks of the event loop. While this process stalls no time passes, because
 * the server may have answered already.
 */
export class LoopDeadline {
  readonly #tickMs: number;
  /** The oldest first. */
  readonly #waiting = new Set<Waiting>();
  #tick = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param ms of an event loop that does not stall; up to a fifth more */
  constructor(ms: number) {
    this.#tickMs = ms / TICKS;
  }

  /** @throws Error after the deadline, and the promise's rejection */
  within<T>(reply: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      // The next tick may come at once.
      const until = this.#tick + TICKS + 1;
      const waiting: Waiting = { until, expire: () => reject(new Error('no answer in time')) };
      this.#waiting.add(waiting);
      this.#timer ??= setInterval(() => this.#onTick(), this.#tickMs);
      reply.then(resolve, reject).finally(() => this.#waiting.delete(waiting));
    });
  }

  #onTick(): void {
    this.#tick += 1;
    for (const waiting of this.#waiting) {
      if (waiting.until > this.#tick) break;
      this.#waiting.delete(waiting);
      waiting.expire();
    }
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

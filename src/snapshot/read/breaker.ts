/** Refuses calls to something that keeps failing, and lets one through now and then to see whether it is back. */
export class Breaker {
  readonly #failuresToOpen: number;
  readonly #retryAfterMs: number;
  readonly #now: () => number;
  #failures = 0;
  #openUntil = 0;

  constructor(options: { failuresToOpen: number; retryAfterMs: number; now: () => number }) {
    this.#failuresToOpen = options.failuresToOpen;
    this.#retryAfterMs = options.retryAfterMs;
    this.#now = options.now;
  }

  /** True while nothing is refused. */
  get isClosed(): boolean {
    return this.#failures < this.#failuresToOpen;
  }

  /** False while calls are refused. The first one after the pause is let through alone. */
  allows(): boolean {
    if (this.isClosed) return true;
    const now = this.#now();
    if (now < this.#openUntil) return false;
    this.#openUntil = now + this.#retryAfterMs;
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures += 1;
    if (this.#failures >= this.#failuresToOpen) this.#openUntil = this.#now() + this.#retryAfterMs;
  }
}

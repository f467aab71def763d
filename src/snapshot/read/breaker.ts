/** A circuit breaker: refuses calls after repeated failures, and lets one through after each pause. */
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

  /** True while no call is refused. */
  get isClosed(): boolean {
    return this.#failures < this.#failuresToOpen;
  }

  /** Returns false for a call that is refused. After the pause one call passes. */
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

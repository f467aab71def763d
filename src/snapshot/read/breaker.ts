/** A circuit breaker: refuses calls after repeated failures, and lets one through after each pause. */
export class Breaker {
  readonly #options: { failuresToOpen: number; retryAfterMs: number; now: () => number };
  #failures = 0;
  #openUntil = 0;

  constructor(options: { failuresToOpen: number; retryAfterMs: number; now: () => number }) {
    this.#options = options;
  }

  /** True while no call is refused. */
  get isClosed(): boolean {
    return this.#failures < this.#options.failuresToOpen;
  }

  /** Returns false for a call that is refused. */
  allows(): boolean {
    if (this.isClosed) return true;
    if (this.#options.now() < this.#openUntil) return false;
    this.#pause();
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures += 1;
    if (!this.isClosed) this.#pause();
  }

  #pause(): void {
    this.#openUntil = this.#options.now() + this.#options.retryAfterMs;
  }
}

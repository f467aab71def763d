import { setTimeout as sleep } from 'node:timers/promises';
import type { SourceError } from '../source.ts';

export interface RetryBackoffOptions {
  /** The first pause at most; each further one is twice as long. */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** From the first failure to the end of the last pause. */
  readonly givesUpAfterMs: number;
}

/** Time as the backoff sees it; a test has one of its own. */
export interface Clock {
  /** Milliseconds since some moment. */
  now(): number;
  /** @throws the signal's reason when that aborts */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

const SYSTEM_CLOCK: Clock = {
  now: () => performance.now(),
  async wait(ms, signal) {
    await sleep(ms, undefined, { signal }).catch(() => {
      throw signal.reason;
    });
  },
};

/** Exponential backoff with jitter: how soon and for how long something that fails is tried again. */
export class RetryBackoff {
  readonly #options: RetryBackoffOptions;
  readonly #clock: Clock;
  #failures = 0;
  #firstFailureAt = 0;

  constructor(options: RetryBackoffOptions, clock: Clock = SYSTEM_CLOCK) {
    this.#options = options;
    this.#clock = clock;
  }

  /** It works: the next failure counts as the first. */
  reset(): void {
    this.#failures = 0;
  }

  /**
   * Waits before the next attempt: longer each time, by chance up to half less, never less than the upstream asked for.
   * @param beforePause is told the length of the pause
   * @throws the failure, when the pause would last too long; the signal's reason when that aborts
   */
  async pause(
    failure: SourceError,
    signal: AbortSignal,
    beforePause: (ms: number) => void = () => {},
  ): Promise<void> {
    const { firstPauseMs, longestPauseMs, givesUpAfterMs } = this.#options;
    const now = this.#clock.now();
    if (this.#failures === 0) this.#firstFailureAt = now;
    const most = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    const pause = Math.max(most * (0.5 + Math.random() / 2), failure.retryAfterMs ?? 0);
    if (now - this.#firstFailureAt + pause > givesUpAfterMs) throw failure;
    beforePause(pause);
    await this.#clock.wait(pause, signal);
  }
}

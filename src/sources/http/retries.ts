import { setTimeout as sleep } from 'node:timers/promises';
import { type Retries, SourceError } from '../source.ts';

/** For a failure that passes within seconds. A longer failure ends the run, which the job queue repeats. */
export const REQUEST_RETRIES = {
  /** The longest first pause. The others are twice as long: a gateway restarts within 7.5 s. The queue's pauses begin at 15 s. */
  firstPauseMs: 500,
  longestPauseMs: 4_000,
  mostOfRequest: 4,
  // Enough for a Retry-After of providers that limit requests per minute.
  givesUpAfterMs: 60_000,
  // Limits a run whose upstream fails in every region.
  mostOfRun: 20,
};
export type RetryPolicy = Readonly<typeof REQUEST_RETRIES>;
type RetryBackoffOptions = Omit<RetryPolicy, 'mostOfRequest' | 'mostOfRun'>;

export interface Clock {
  now(): number;
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

export class RetryBackoff {
  readonly #options: RetryBackoffOptions;
  readonly #clock: Clock;
  #failures = 0;
  #firstFailureAt = 0;

  constructor(options: RetryBackoffOptions, clock: Clock = SYSTEM_CLOCK) {
    this.#options = options;
    this.#clock = clock;
  }

  /** After a success the next failure counts as the first one. */
  reset(): void {
    this.#failures = 0;
  }

  /**
   * The pause doubles each time, minus a random part of up to a half, and is never shorter than the upstream's Retry-After.
   * @throws the failure if the pause would last too long; the signal's reason when it aborts
   */
  async pause(failure: SourceError, signal: AbortSignal, beforePause?: (ms: number) => void): Promise<void> {
    const { firstPauseMs, longestPauseMs, givesUpAfterMs } = this.#options;
    const now = this.#clock.now();
    if (this.#failures === 0) this.#firstFailureAt = now;
    const most = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    const pause = Math.max(most * (0.5 + Math.random() / 2), failure.retryAfterMs ?? 0);
    if (now - this.#firstFailureAt + pause > givesUpAfterMs) throw failure;
    beforePause?.(pause);
    await this.#clock.wait(pause, signal);
  }
}

export interface Retry {
  readonly failure: SourceError;
  readonly attempt: number;
  readonly pauseMs: number;
  readonly ofRun: number;
}

export class RequestRetries implements Retries {
  readonly #policy: RetryPolicy;
  readonly #onRetry: (retry: Retry) => void;
  readonly #clock: Clock | undefined;
  #ofRun = 0;

  constructor(policy: RetryPolicy, onRetry: (retry: Retry) => void = () => {}, clock?: Clock) {
    this.#policy = policy;
    this.#onRetry = onRetry;
    this.#clock = clock;
  }

  /** Repeats a request after a pause while it fails with a SourceError `retry`. @throws the last failure */
  async run<T>(request: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { mostOfRequest, mostOfRun } = this.#policy;
    const backoff = new RetryBackoff(this.#policy, this.#clock);
    for (let attempt = 1; ; attempt++) {
      try {
        return await request();
      } catch (error) {
        if (!(error instanceof SourceError) || error.kind !== 'retry') throw error;
        if (attempt > mostOfRequest || this.#ofRun >= mostOfRun) throw error;
        await backoff.pause(error, signal, (pauseMs) => {
          this.#ofRun += 1;
          this.#onRetry({ failure: error, attempt, pauseMs, ofRun: this.#ofRun });
        });
      }
    }
  }
}

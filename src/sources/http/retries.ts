import { type Retries, SourceError } from '../source.ts';
import { type Clock, RetryBackoff, type RetryBackoffOptions } from './retry-backoff.ts';

export interface RetryPolicy extends RetryBackoffOptions {
  /** Further attempts at one request. */
  readonly mostOfRequest: number;
  /** Further attempts at all requests of one run together. */
  readonly mostOfRun: number;
}

/** For a failure that passes within seconds. One that lasts ends the run, which the job queue repeats. */
export const REQUEST_RETRIES: RetryPolicy = {
  // At most 0.5, 1, 2 and 4 s: a gateway restarts in that. The queue's own pauses begin at 15 s.
  firstPauseMs: 500,
  longestPauseMs: 4_000,
  mostOfRequest: 4,
  // Long enough for a Retry-After of providers that count requests by the minute.
  givesUpAfterMs: 60_000,
  // Bounds a run whose upstream fails in every region, each of which would be asked four times more.
  mostOfRun: 20,
};

/** A request that is about to be repeated. */
export interface Retry {
  /** Names the address without its query, and no secret. */
  readonly failure: SourceError;
  /** Of the attempt that failed, from 1. */
  readonly attempt: number;
  readonly pauseMs: number;
  /** How many requests of the run were repeated, this one included. */
  readonly ofRun: number;
}

/** The repetitions of single requests within one run. */
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

  /**
   * Makes one request, again after a pause while it fails with a SourceError `retry`.
   * @throws what the last attempt failed with; the signal's reason when that aborts
   */
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

import { setTimeout as sleep } from 'node:timers/promises';
import type { SourceError } from '../../source.ts';

export interface PatienceOptions {
  /** The first pause at most; each further one is twice as long. */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** Failures that follow each other for longer than this are its owner's to know of. */
  readonly givesUpAfterMs: number;
}

/** How often, how soon and how long something that fails is tried again. */
export class Patience {
  readonly #options: PatienceOptions;
  #failures = 0;
  #since = 0;

  constructor(options: PatienceOptions) {
    this.#options = options;
  }

  /** It works. */
  reset(): void {
    this.#failures = 0;
  }

  /**
   * Waits before the next attempt: longer each time, by chance up to half less, never less than the server asked for.
   * @throws the failure, once it has lasted too long; the signal's reason when that aborts
   */
  async pause(failure: SourceError, signal: AbortSignal): Promise<void> {
    const { firstPauseMs, longestPauseMs, givesUpAfterMs } = this.#options;
    const now = performance.now();
    if (this.#failures === 0) this.#since = now;
    const most = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    const pause = Math.max(most * (0.5 + Math.random() / 2), failure.retryAfterMs ?? 0);
    if (now - this.#since + pause > givesUpAfterMs) throw failure;
    await sleep(pause, undefined, { signal });
  }
}

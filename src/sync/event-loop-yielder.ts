import { setImmediate } from 'node:timers/promises';

/** Milliseconds of work between two turns of the event loop. */
const TURN_MS = 8;
/** Rows between two readings of the clock. */
const CHECK_EVERY = 64;

/** Yields to the event loop regularly, because rows in memory are processed without any waiting. */
export class EventLoopYielder {
  #rows = 0;
  #since = performance.now();

  /** Counts a row and returns true if `yieldToEventLoop` is due. */
  isDue(): boolean {
    this.#rows += 1;
    return this.#rows % CHECK_EVERY === 0 && performance.now() - this.#since > TURN_MS;
  }

  async yieldToEventLoop(): Promise<void> {
    await setImmediate();
    this.#since = performance.now();
  }
}

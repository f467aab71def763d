import { setImmediate } from 'node:timers/promises';

/** Milliseconds of work after which everything else in this process gets its turn. */
const TURN_MS = 8;
/** Rows between two looks at the clock. */
const LOOK_EVERY = 64;

/** Yields to the event loop now and then: rows that are in memory already are processed without ever waiting. */
export class EventLoopYielder {
  #rows = 0;
  #since = performance.now();

  /** Called for every row: whether it is time to `yieldToEventLoop`. */
  isDue(): boolean {
    this.#rows += 1;
    return this.#rows % LOOK_EVERY === 0 && performance.now() - this.#since > TURN_MS;
  }

  async yieldToEventLoop(): Promise<void> {
    await setImmediate();
    this.#since = performance.now();
  }
}

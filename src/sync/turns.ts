import { setImmediate } from 'node:timers/promises';

/** Milliseconds after which everything else in this process gets its turn. */
const TURN_MS = 8;
/** Rows between two looks at the clock. */
const LOOK_EVERY = 64;

/** Shares the event loop while rows are made: those that are there already never wait for anything by themselves. */
export class Turns {
  #rows = 0;
  #since = performance.now();

  /** Called for every row: whether it is time to `pass` the turn. */
  isOver(): boolean {
    this.#rows += 1;
    return this.#rows % LOOK_EVERY === 0 && performance.now() - this.#since > TURN_MS;
  }

  async pass(): Promise<void> {
    await setImmediate();
    this.#since = performance.now();
  }
}

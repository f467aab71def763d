import type { Clock } from '../../../src/sources/http/retries.ts';

/** A clock that only pauses advance; a test does not wait for them. */
export interface FakeClock extends Clock {
  /** Every pause, in milliseconds. */
  readonly waits: readonly number[];
}

/** @param during is called in each pause */
export function fakeClock(during: (ms: number) => void = () => {}): FakeClock {
  const waits: number[] = [];
  let now = 0;
  return {
    waits,
    now: () => now,
    async wait(ms, signal) {
      waits.push(ms);
      now += ms;
      during(ms);
      signal.throwIfAborted();
    },
  };
}

/** Pulses of a slow worker. Readers read PostgreSQL while none arrives, and so make it slower. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Publisher } from '../../../src/snapshot/publish/publisher.ts';
import { startPulse } from '../../../src/snapshot/publish/pulse.ts';
import { sceneForEachTest } from '../scene.ts';

const scene = sceneForEachTest();

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** A publisher whose rounds last this long (ms) by a test clock. */
function slowPublisher(roundMs: number) {
  const real = performance.now.bind(performance);
  let ahead = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => real() + ahead);
  const rounds: string[] = [];
  const publisher = new Publisher(scene.store.db, scene.cache, {
    observe(outcome) {
      rounds.push(outcome);
      ahead += roundMs;
    },
  });
  const wait = (ms: number) => {
    ahead += ms;
  };
  return { publisher, rounds, wait };
}

describe('a publisher', () => {
  it('publishes before the first pulse after a gap', async () => {
    const { publisher, rounds, wait } = slowPublisher(0);
    await publisher.pulse();
    wait(400);
    await publisher.pulse();
    expect(rounds).toEqual([]);
    wait(2000);
    await publisher.pulse();
    expect(rounds).toEqual(['published']);
  });

  it('needs no second publication when the first one lasted longer than a gap', async () => {
    const { publisher, rounds, wait } = slowPublisher(5000);
    await publisher.pulse();
    wait(2000);
    await publisher.pulse();
    expect(rounds).toEqual(['published']);
    wait(400);
    await publisher.pulse();
    expect(rounds).toEqual(['published']);
  });
});

describe('the pulses', () => {
  it('start at equal intervals, and at once after a late one', async () => {
    vi.useFakeTimers();
    const pulses: PromiseWithResolvers<void>[] = [];
    const running = startPulse(() => {
      const pulse = Promise.withResolvers<void>();
      pulses.push(pulse);
      return pulse.promise;
    }, 500);
    await vi.advanceTimersByTimeAsync(200);
    pulses.at(-1)?.resolve();
    await vi.advanceTimersByTimeAsync(299);
    expect(pulses).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(pulses).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(700);
    expect(pulses).toHaveLength(2);
    pulses.at(-1)?.resolve();
    await vi.advanceTimersByTimeAsync(1);
    expect(pulses).toHaveLength(3);
    running[Symbol.dispose]();
    pulses.at(-1)?.resolve();
    await vi.advanceTimersByTimeAsync(2000);
    expect(pulses).toHaveLength(3);
  });
});

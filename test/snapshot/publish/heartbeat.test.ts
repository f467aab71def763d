/** Heartbeats of a slow worker. Readers read PostgreSQL while none arrives, and so make it slower. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Publisher, startHeartbeat } from '../../../src/snapshot/publish/publisher.ts';
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
  it('publishes before the first heartbeat after a gap', async () => {
    const { publisher, rounds, wait } = slowPublisher(0);
    await publisher.heartbeat();
    wait(400);
    await publisher.heartbeat();
    expect(rounds).toEqual([]);
    wait(2000);
    await publisher.heartbeat();
    expect(rounds).toEqual(['published']);
  });

  it('needs no second publication when the first one lasted longer than a gap', async () => {
    const { publisher, rounds, wait } = slowPublisher(5000);
    await publisher.heartbeat();
    wait(2000);
    await publisher.heartbeat();
    expect(rounds).toEqual(['published']);
    wait(400);
    await publisher.heartbeat();
    expect(rounds).toEqual(['published']);
  });
});

describe('the heartbeats', () => {
  it('start at equal intervals, and at once after a late one', async () => {
    vi.useFakeTimers();
    const heartbeats: PromiseWithResolvers<void>[] = [];
    const running = startHeartbeat(() => {
      const heartbeat = Promise.withResolvers<void>();
      heartbeats.push(heartbeat);
      return heartbeat.promise;
    }, 500);
    await vi.advanceTimersByTimeAsync(200);
    heartbeats.at(-1)?.resolve();
    await vi.advanceTimersByTimeAsync(299);
    expect(heartbeats).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(heartbeats).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(700);
    expect(heartbeats).toHaveLength(2);
    heartbeats.at(-1)?.resolve();
    await vi.advanceTimersByTimeAsync(1);
    expect(heartbeats).toHaveLength(3);
    running[Symbol.dispose]();
    heartbeats.at(-1)?.resolve();
    await vi.advanceTimersByTimeAsync(2000);
    expect(heartbeats).toHaveLength(3);
  });
});

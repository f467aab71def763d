/** Heartbeats of a slow worker. Readers read PostgreSQL while none arrives, and so make it slower. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { openStore } from '../../../src/db/connection/connect.ts';
import { openRedis, redisReady } from '../../../src/redis/redis.ts';
import { withFence } from '../../../src/snapshot/publish/fence.ts';
import { Publisher, startHeartbeat } from '../../../src/snapshot/publish/publisher.ts';
import { faultProxy } from '../../support/fault-proxy.ts';
import { reprice } from '../rows.ts';
import { sceneForEachTest } from '../scene.ts';

const scene = sceneForEachTest();
/** Longer than two heartbeats may be apart (ms). */
const GAP_MS = 1100;

afterEach(() => {
  vi.useRealTimers();
});

/** A publisher whose rounds last this long (ms). */
function slowPublisher(roundMs: number) {
  const rounds: string[] = [];
  const publisher = new Publisher(scene.store.db, scene.cache, {
    observe: (outcome) => rounds.push(outcome),
    followers: [() => sleep(roundMs)],
  });
  return { publisher, rounds };
}

const heartbeats = async () => {
  const entries = await scene.cache.xrange(scene.keys.stream, '-', '+');
  return entries.filter(([, fields]) => fields[5] === 'heartbeat').length;
};

describe('a publisher', () => {
  it('publishes before its first heartbeat, and before the first one after a gap', async () => {
    await scene.publisher.publishDirty();
    const { publisher, rounds } = slowPublisher(0);
    await publisher.heartbeat();
    expect([rounds, await heartbeats()]).toEqual([['published'], 1]);
    await sleep(350);
    await publisher.heartbeat();
    expect([rounds, await heartbeats()]).toEqual([['published'], 2]);
    await sleep(GAP_MS);
    await publisher.heartbeat();
    expect([rounds, await heartbeats()]).toEqual([['published', 'published'], 3]);
  });

  it('notices that the stream has lost its end, and not that it is silent', async () => {
    await scene.publisher.publishDirty();
    const { cache, keys } = scene;
    const { publisher } = slowPublisher(0);
    let losses = 0;
    publisher.onLost(() => {
      losses += 1;
    });
    await publisher.heartbeat();
    const earlier = await cache.dumpBuffer(keys.stream);
    await sleep(400);
    await publisher.heartbeat();
    await sleep(400);
    await publisher.heartbeat();
    expect(losses).toBe(0);
    await cache.restore(keys.stream, 0, earlier, 'REPLACE');
    await publisher.heartbeat();
    await publisher.heartbeat();
    expect(losses).toBe(1);
    await cache.del(keys.stream);
    await publisher.heartbeat();
    await publisher.heartbeat();
    expect(losses).toBe(2);
  });

  it('needs no second publication when the first one lasted longer than a gap', async () => {
    await scene.publisher.publishDirty();
    const { publisher, rounds } = slowPublisher(GAP_MS);
    await publisher.heartbeat();
    expect([rounds, await heartbeats()]).toEqual([['published'], 1]);
    await publisher.heartbeat();
    expect(rounds).toEqual(['published']);
  });

  it('sends no heartbeat while PostgreSQL has dirty documents that it cannot publish', async () => {
    await scene.publisher.publishDirty();
    await using database = await faultProxy(scene.db.url);
    await database.refuse();
    await using store = openStore({
      url: database.url,
      role: 'worker',
      connections: 1,
      statementTimeoutMs: 1000,
    });
    const publisher = new Publisher(store.db, scene.cache);
    await publisher.heartbeat();
    expect(await heartbeats()).toBe(0);
  });

  it('whose heartbeat hung on its way publishes first: the server refuses the late one', async () => {
    await using way = await faultProxy(scene.redis.url);
    const connection = withFence(openRedis(way.url, 'publisher', () => {}));
    await redisReady(connection, 5000);
    const rounds: string[] = [];
    const publisher = new Publisher(scene.store.db, connection, {
      observe: (outcome) => rounds.push(outcome),
    });
    await publisher.publishDirty();
    await publisher.heartbeat();
    const before = await heartbeats();
    rounds.length = 0;
    way.hang();
    const hanging = publisher.heartbeat();
    await reprice(scene.sql, scene.sample.small, '0.75');
    await sleep(GAP_MS);
    await way.heal();
    await hanging;
    const entries = await scene.cache.xrange(scene.keys.stream, '-', '+');
    const last = entries.map(([, fields]) => fields[5]).slice(-2);
    expect([rounds, last]).toEqual([['published'], [`region:${scene.sample.region}`, 'heartbeat']]);
    expect(await heartbeats()).toBe(before + 1);
    connection.disconnect();
  });
});

describe('the heartbeats', () => {
  it('start at equal intervals, and at once after a late one', async () => {
    vi.useFakeTimers();
    const sent: PromiseWithResolvers<void>[] = [];
    const running = startHeartbeat(() => {
      const heartbeat = Promise.withResolvers<void>();
      sent.push(heartbeat);
      return heartbeat.promise;
    }, 500);
    await vi.advanceTimersByTimeAsync(200);
    sent.at(-1)?.resolve();
    await vi.advanceTimersByTimeAsync(299);
    expect(sent).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(sent).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(700);
    expect(sent).toHaveLength(2);
    sent.at(-1)?.resolve();
    await vi.advanceTimersByTimeAsync(1);
    expect(sent).toHaveLength(3);
    running[Symbol.dispose]();
    sent.at(-1)?.resolve();
    await vi.advanceTimersByTimeAsync(2000);
    expect(sent).toHaveLength(3);
  });
});

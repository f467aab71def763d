/** Reads from a cache that is late, and from a Postgres that is away or late. */
import { performance } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { until } from '../support/until.ts';
import { sceneForEachTest, TestClock, type TestReader } from './scene.ts';

const scene = sceneForEachTest({ redis: 'of the test' });

let database: FaultProxy;
const proxies: FaultProxy[] = [];
beforeEach(async () => {
  database = await faultProxy(scene.db.url);
  proxies.push(database);
  await scene.publisher.publishDirty();
});
afterEach(() => database.heal());
afterAll(() => Promise.all(proxies.map((used) => used[Symbol.asyncDispose]())));

/** Milliseconds until a reply is late. */
const DEADLINE_MS = 200;

const machines = (reader: TestReader) =>
  reader.catalogue.machines(scene.sample.provider, scene.sample.region);

async function timed<T>(work: () => Promise<T> | T): Promise<[T, number]> {
  const start = performance.now();
  const result = await work();
  return [result, performance.now() - start];
}

/** Resolves once the cache is late for all commands that were sent before. Postgres is then read too. */
async function untilLate(reader: TestReader): Promise<void> {
  // Reads of one turn of the event loop are sent at its end.
  await turn();
  expect(await reader.link.commands.run((redis) => redis.ping())).toBeUndefined();
}

describe.each<[string, () => Promise<void> | void]>([
  ['refuses connections', () => database.refuse()],
  ['hangs', () => database.hang()],
])('while Postgres %s', (_, strike) => {
  it('a document of the cache is given once a late cache answers', async () => {
    const reader = await scene.linkedReader({ databaseUrl: database.url, cacheDeadlineMs: DEADLINE_MS });
    await reader.catalogue.machine(scene.sample.small);
    await strike();
    scene.redis.pause();
    const reading = timed(() =>
      Promise.all([
        reader.clusters.cluster(scene.sample.a, 'cluster-test'),
        reader.clusters.clusters(scene.sample.b),
        reader.catalogue.machines(scene.sample.provider, scene.sample.emptyRegion),
        reader.catalogue.machine(scene.sample.big),
      ]),
    );
    await untilLate(reader);
    scene.redis.resume();
    const [answers, took] = await reading;
    expect(answers.map((answer) => answer?.tier)).toEqual(['redis', 'redis', 'redis', 'memory']);
    expect(took).toBeLessThan(1500);
  });

  it('the region of a machine is found once a late cache answers', async () => {
    const reader = await scene.linkedReader({ databaseUrl: database.url, cacheDeadlineMs: DEADLINE_MS });
    await machines(reader);
    await strike();
    scene.redis.pause();
    const reading = timed(() => reader.catalogue.machine(scene.sample.big));
    await untilLate(reader);
    scene.redis.resume();
    const [answer, took] = await reading;
    expect(answer?.tier).toBe('memory');
    expect(took).toBeLessThan(1500);
  });
});

describe('while the cache is late', () => {
  const clusters = (reader: TestReader) => reader.clusters.clusters(scene.sample.a);

  it('Postgres answers, and the region of a machine comes from it', async () => {
    const reader = await scene.linkedReader({ cacheDeadlineMs: DEADLINE_MS });
    scene.redis.pause();
    const [answers, took] = await timed(() =>
      Promise.all([clusters(reader), reader.catalogue.machine(scene.sample.big)]),
    );
    expect(answers.map((answer) => answer?.tier)).toEqual(['postgres', 'postgres']);
    expect(took).toBeLessThan(1500);
    scene.redis.resume();
  });

  it('its answer counts if Postgres is later', async () => {
    const reader = await scene.linkedReader({ databaseUrl: database.url, cacheDeadlineMs: DEADLINE_MS });
    database.hang();
    scene.redis.pause();
    const reading = clusters(reader);
    await untilLate(reader);
    scene.redis.resume();
    expect((await reading).tier).toBe('redis');
  });

  it('a document of memory answers if neither does', async () => {
    const clock = new TestClock();
    const reader = await scene.linkedReader({
      databaseUrl: database.url,
      cacheDeadlineMs: DEADLINE_MS,
      now: clock.now,
    });
    const before = await machines(reader);
    database.hang();
    scene.redis.pause();
    await until(() => !reader.link.linked);
    // Its confirmation is too old to answer without a comparison.
    clock.forward(1100);
    const [answer, took] = await timed(() => machines(reader));
    expect([answer.tier, answer.body]).toEqual(['memory', before.body]);
    expect(took).toBeLessThan(1000);
    scene.redis.resume();
  });
});

describe('while Postgres hangs', () => {
  it('memory answers for data that the cache lost, without a wait for Postgres', async () => {
    const reader = await scene.linkedReader({ databaseUrl: database.url });
    const before = await machines(reader);
    database.hang();
    const { epoch } = reader.link;
    await scene.cache.flushall();
    await until(() => reader.link.linked && reader.link.epoch > epoch);
    for (let i = 0; i < 20; i++) {
      const [answer, took] = await timed(() => machines(reader));
      expect([answer.tier, answer.body]).toEqual(['memory', before.body]);
      expect(took).toBeLessThan(1000);
    }
  });

  it('no request has to detect that it still hangs', async () => {
    const clock = new TestClock();
    const reader = await scene.linkedReader({
      databaseUrl: database.url,
      postgresDeadlineMs: 500,
      now: clock.now,
    });
    database.hang();
    const unknown = (id: number) =>
      timed(async () => {
        try {
          await reader.catalogue.machine(id);
          return 'there';
        } catch {
          return 'away';
        }
      });
    await Promise.all([4001, 4002, 4003].map(unknown));
    for (let id = 5000; id < 5006; id++) {
      clock.forward(1001);
      const [what, took] = await unknown(id);
      expect(what).toBe('away');
      expect(took).toBeLessThan(1000);
    }
    await database.heal();
    clock.forward(1001);
    await until(async () => {
      clock.forward(1001);
      return (await unknown(6000))[0] === 'there';
    });
  });
});

import { performance } from 'node:perf_hooks';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Answer } from '../../src/snapshot/answer.ts';
import { createToken } from '../../src/store/tokens.ts';
import { until } from '../support/until.ts';
import { reprice } from './rows.ts';
import { sceneForEachTest, TestClock, type TestReader } from './scene.ts';

const scene = sceneForEachTest({ redis: 'of the test' });

let token: string;

beforeEach(async () => {
  const organizationId = scene.sample.a;
  ({ token } = await createToken(scene.store.db, { organizationId, scopes: ['clusters:read'] }));
  await scene.publisher.publishDirty();
});

/** Everything that the contract has, as body and hash. */
async function everything(reader: TestReader): Promise<unknown> {
  const answers: (Answer | undefined)[] = [
    await reader.catalogue.providers(),
    await reader.catalogue.machines(scene.sample.provider, scene.sample.region),
    await reader.catalogue.machines(scene.sample.provider, scene.sample.emptyRegion),
    await reader.catalogue.machines(77, 77),
    await reader.catalogue.machine(scene.sample.small),
    await reader.catalogue.machine(scene.sample.gpu),
    await reader.catalogue.machine(987_654),
    await reader.clusters.clusters(scene.sample.a),
    await reader.clusters.cluster(scene.sample.a, 'cluster-test'),
    await reader.clusters.cluster(scene.sample.b, 'cluster-test'),
    await reader.clusters.cluster(scene.sample.a, 'none'),
  ];
  const grant = await reader.tokens.verify(token);
  return [...answers.map((answer) => answer && [answer.body.identity.toString(), answer.body.hash]), grant];
}

async function linked(reader: TestReader): Promise<TestReader> {
  await until(async () => (await reader.catalogue.providers()) && reader.link.linked, { timeoutMs: 10_000 });
  return reader;
}

const outages: [string, () => Promise<void> | void][] = [
  ['is killed', () => scene.redis.kill()],
  ['hangs', () => scene.redis.pause()],
  ['starts again empty', () => scene.redis.restart()],
  ['is flushed', async () => void (await scene.cache.flushall())],
];

describe.each(outages)('when the cache %s', (_, strike) => {
  it('a warm and a cold reader give the very same answers, and none takes a second', async () => {
    const warm = await linked(scene.reader());
    const cold = await linked(scene.reader());
    const before = await everything(warm);
    await strike();
    for (const reader of [warm, cold]) {
      for (let round = 0; round < 3; round++) {
        const start = performance.now();
        expect(await everything(reader)).toEqual(before);
        expect(performance.now() - start).toBeLessThan(round === 0 ? 1000 : 500);
      }
    }
    scene.redis.resume();
  });

  it('a reader that starts then answers the same', async () => {
    const before = await everything(await linked(scene.reader()));
    await strike();
    const late = scene.reader();
    const start = performance.now();
    expect(await everything(late)).toEqual(before);
    expect(performance.now() - start).toBeLessThan(1000);
    scene.redis.resume();
  });
});

describe('while the cache is away', () => {
  it('a change in Postgres is seen within a second all the same', async () => {
    const clock = new TestClock();
    const reader = await linked(scene.reader({ now: clock.now }));
    const price = async () => {
      const { body } = await reader.catalogue.machines(scene.sample.provider, scene.sample.region);
      return JSON.parse(body.identity.toString()).map((machine: { price: number }) => machine.price);
    };
    expect(await price()).toEqual([0.0001, 0.01]);
    await scene.redis.kill();
    await until(() => !reader.link.linked);
    await reprice(scene.sql, scene.sample.small, '0.5');
    clock.forward(1001);
    expect(await price()).toEqual([0.01, 0.5]);
  });

  it('memory is compared by version alone, not read again', async () => {
    const clock = new TestClock();
    const reader = await linked(scene.reader({ now: clock.now }));
    const first = await reader.documents.get({ kind: 'region', regionId: scene.sample.region });
    await scene.redis.kill();
    await until(() => !reader.link.linked);
    clock.forward(1001);
    const second = await reader.documents.get({ kind: 'region', regionId: scene.sample.region });
    expect(second.document).toBe(first.document);
  });

  it('a hung cache is asked a few times only, and then left alone for a moment', async () => {
    const reader = await linked(scene.reader());
    scene.redis.pause();
    await until(() => !reader.link.linked, { timeoutMs: 5000 });
    const start = performance.now();
    for (let i = 0; i < 30; i++) await reader.clusters.clusters(2000 + i);
    // Thirty misses, of which each would wait for 50 ms without the breaker.
    expect(performance.now() - start).toBeLessThan(750);
    scene.redis.resume();
  });
});

describe('when the cache is back', () => {
  it.each([
    ['after a crash, empty', () => scene.redis.kill(), () => scene.redis.restart()],
    ['after having hung', () => scene.redis.pause(), () => scene.redis.resume()],
  ])('%s, readers link to it and hear of changes within moments', async (_, strike, heal) => {
    const reader = await linked(scene.reader());
    const name = { kind: 'region', regionId: scene.sample.region } as const;
    await reader.documents.get(name);
    await strike();
    await until(() => !reader.link.linked, { timeoutMs: 5000 });
    const { epoch } = reader.link;
    await heal();
    await until(() => reader.link.linked, { timeoutMs: 5000 });
    expect(reader.link.epoch).toBeGreaterThan(epoch);
    await until(() => scene.cache.status === 'ready');
    await scene.publisher.sweep();
    const version = await reprice(scene.sql, scene.sample.small, '0.6');
    await scene.publisher.publishDirty();
    const start = performance.now();
    await until(async () => (await reader.documents.get(name)).document?.version === version);
    expect(performance.now() - start).toBeLessThan(250);
    const fresh = await linked(scene.reader());
    expect((await fresh.documents.get(name)).tier).toBe('redis');
  });
});

/** A cache that answers but accepts no writes. A full one takes heartbeats and announcements, one without replicas takes nothing. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { withFence } from '../../src/snapshot/publish/fence.ts';
import { Publisher, startHeartbeat } from '../../src/snapshot/publish/publisher.ts';
import { until } from '../support/until.ts';
import { addOrganization, reprice, setStatus, verify } from './rows.ts';
import { sceneForEachTest } from './scene.ts';

const scene = sceneForEachTest({ redis: 'of the test' });
/** Milliseconds. The product allows more, for busy machines. */
const silentAfterMs = 1200;
const region = () => ({ kind: 'region', regionId: scene.sample.region }) as const;

beforeEach(async () => {
  await scene.publisher.publishDirty();
});

const setting = (name: string, value: string | number) => scene.cache.config('SET', name, value);
const refusals: [string, RegExp, isLinked: boolean, () => Promise<unknown>, () => Promise<unknown>][] = [
  ['is full', /OOM/, true, () => setting('maxmemory', 1), () => setting('maxmemory', 0)],
  [
    'has too few replicas',
    // The server also refuses the EVAL that would load a script, and ioredis then sends a second EVALSHA.
    /NOREPLICAS|NOSCRIPT/,
    false,
    () => setting('min-replicas-to-write', 1),
    () => setting('min-replicas-to-write', 0),
  ],
];

describe.each(refusals)('while the cache %s', (_, error, isLinked, strike, heal) => {
  it('a reader sees changes, and rejects a revoked token', async () => {
    const { id, token } = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes: ['machines:read'],
    });
    await scene.publisher.publishDirty();
    using _heartbeat = startHeartbeat(() => scene.publisher.heartbeat(), 100);
    const reader = await scene.linkedReader({ silentAfterMs });
    const versionNow = async (from = reader) => (await from.documents.get(region())).document?.version;
    await versionNow();
    expect(await reader.tokens.verify(token)).toBeDefined();
    await strike();
    const late = scene.reader({ silentAfterMs });
    const before = await versionNow(late);

    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    expect(version).toBeGreaterThan(before ?? 0);
    await revokeToken(scene.store.db, id);
    await expect(scene.publisher.publishDirty()).rejects.toThrow(error);
    for (const each of [reader, late]) await until(async () => (await versionNow(each)) === version);
    await until(async () => (await reader.tokens.verify(token)) === undefined);
    for (const { link } of [reader, late]) await until(() => link.linked === isLinked);

    // A new reader may find the old version in a cache without replicas, and does not use it.
    const cold = scene.reader({ silentAfterMs });
    await expect(scene.publisher.publishDirty()).rejects.toThrow(error);
    expect(await versionNow(cold)).toBe(version);

    await heal();
    await scene.publisher.publishDirty();
    await until(async () => (await (await scene.linkedReader()).documents.get(region())).tier === 'redis');
    expect(await versionNow(await scene.linkedReader())).toBe(version);
  });
});

describe('while the cache is full', () => {
  const LATER = '2026-01-02T05:00:00.000Z';
  const publish = {
    'the dirty documents': () => scene.publisher.publishDirty(),
    'what the comparison finds': () => scene.publisher.compare(),
  };

  it.each(Object.entries(publish))(
    'readers know the age of data that was read since, after publishing %s',
    async (_, run) => {
      const reader = await scene.linkedReader();
      await reader.catalogue.machine(scene.sample.small);
      await setting('maxmemory', 1);
      await verify(scene.sql, 'cloud', LATER);
      await run();
      await reader.caughtUp();
      expect((await reader.catalogue.machine(scene.sample.small))?.asOf).toBe(LATER);
    },
  );

  it.each(Object.entries(publish))(
    'also if the cache rejects a change, after publishing %s',
    async (_, run) => {
      const reader = await scene.linkedReader();
      await reader.catalogue.machine(scene.sample.small);
      await setting('maxmemory', 1);
      await verify(scene.sql, 'cloud', LATER);
      const version = await reprice(scene.sql, scene.sample.small, '0.5');
      await expect(run()).rejects.toThrow(/OOM/);
      await reader.caughtUp();
      for (const each of [reader, await scene.linkedReader()]) {
        expect((await each.documents.get(region())).document?.version).toBe(version);
        expect((await each.catalogue.machine(scene.sample.small))?.asOf).toBe(LATER);
      }
    },
  );

  it('readers see a change behind more rejected documents than a publisher reads at once', async () => {
    const reader = await scene.linkedReader();
    await reader.documents.get(region());
    await setting('maxmemory', 1);
    await scene.sql`insert into organizations (slug, name) select 'o' || i, 'o' || i from generate_series(1, 200) i`;
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await verify(scene.sql, 'cloud', LATER);
    await expect(scene.publisher.publishDirty()).rejects.toThrow(/OOM/);
    await reader.caughtUp();
    expect((await reader.documents.get(region())).document?.version).toBe(version);
    expect((await reader.catalogue.machine(scene.sample.small))?.asOf).toBe(LATER);
  });
});

/** Opens a publisher whose user may not change documents of clusters, so it cannot announce their versions. */
async function limitedPublisher() {
  const { cache, redis, store } = scene;
  const others = [
    'lineage',
    '*:stream',
    '*:stamps',
    '*:providers',
    '*:region:*',
    '*:columns:*',
    '*:machine-regions:*',
  ];
  await cache.call(
    'ACL',
    'SETUSER',
    'w',
    'on',
    `>${redis.password}`,
    '+@all',
    ...others.map((each) => `~fb:${each}`),
  );
  const url = new URL(redis.url);
  url.username = 'w';
  const limited = withFence(openRedis(url.href, 'publisher', () => {}));
  await redisReady(limited, 5000);
  return { publisher: new Publisher(store.db, limited), [Symbol.dispose]: () => limited.disconnect() };
}

it('no age is published after a version that readers do not know', async () => {
  const { cache, sql, keys } = scene;
  using limited = await limitedPublisher();
  const stamp = () => cache.hget(keys.stamps, 'cloud');
  const before = await stamp();
  await addOrganization(sql, 'another');
  await verify(sql, 'cloud', '2026-01-02T05:00:00.000Z');
  await expect(limited.publisher.publishDirty()).rejects.toThrow(/NOPERM/);
  expect(await stamp()).toBe(before);
  await scene.publisher.publishDirty();
  expect(await stamp()).not.toBe(before);
});

it('a worker that starts sends no heartbeat before readers know each version', async () => {
  const clusters = { kind: 'clusters', organizationId: scene.sample.a } as const;
  const reader = scene.reader({ silentAfterMs: 60_000 });
  await reader.documents.get(clusters);
  await until(() => reader.link.state === 'following');
  using limited = await limitedPublisher();
  const version = await setStatus(scene.sql, scene.sample.clusterOfA, 'Stopped');
  await limited.publisher.heartbeat();
  await reader.caughtUp();
  expect(reader.link.linked).toBe(false);
  expect((await reader.documents.get(clusters)).document?.version).toBe(version);
  await scene.publisher.heartbeat();
  await until(() => reader.link.linked);
});

/** A cache that answers but accepts no writes. A full one takes heartbeats and announcements, one without replicas takes nothing. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { startHeartbeat } from '../../src/snapshot/publish/publisher.ts';
import { until } from '../support/until.ts';
import { reprice } from './rows.ts';
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
    /NOREPLICAS/,
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

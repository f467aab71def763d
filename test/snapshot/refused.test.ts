/** A cache that answers but accepts no writes: its memory is full, or it cannot save. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { until } from '../support/until.ts';
import { reprice } from './rows.ts';
import { sceneForEachTest } from './scene.ts';

const scene = sceneForEachTest({ redis: 'of the test' });
const region = () => ({ kind: 'region', regionId: scene.sample.region }) as const;

beforeEach(async () => {
  await scene.publisher.publishDirty();
});

const setting = (name: string, value: string | number) => scene.cache.config('SET', name, value);
const refusals: [string, RegExp, () => Promise<unknown>, () => Promise<unknown>][] = [
  ['is full', /OOM/, () => setting('maxmemory', 1), () => setting('maxmemory', 0)],
  [
    'has too few replicas',
    /NOREPLICAS/,
    () => setting('min-replicas-to-write', 1),
    () => setting('min-replicas-to-write', 0),
  ],
];

describe.each(refusals)('while the cache %s', (_, error, strike, heal) => {
  it('a linked reader sees changes, and rejects a revoked token', async () => {
    const { id, token } = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes: ['machines:read'],
    });
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    const versionNow = async (from = reader) => (await from.documents.get(region())).document?.version;
    await versionNow();
    expect(await reader.tokens.verify(token)).toBeDefined();
    await strike();
    const late = await scene.linkedReader();
    const before = await versionNow(late);

    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    expect(version).toBeGreaterThan(before ?? 0);
    await revokeToken(scene.store.db, id);
    await expect(scene.publisher.publishDirty()).rejects.toThrow(error);
    for (const each of [reader, late]) await until(async () => (await versionNow(each)) === version);
    await until(async () => (await reader.tokens.verify(token)) === undefined);
    expect([reader.link.linked, late.link.linked]).toEqual([true, true]);

    // A new reader finds the old version in the cache, and gets a message when the write is retried.
    const cold = await scene.linkedReader();
    await versionNow(cold);
    await expect(scene.publisher.publishDirty()).rejects.toThrow(error);
    await until(async () => (await versionNow(cold)) === version);

    await heal();
    await scene.publisher.publishDirty();
    await until(async () => (await (await scene.linkedReader()).documents.get(region())).tier === 'redis');
    expect(await versionNow(await scene.linkedReader())).toBe(version);
  });
});

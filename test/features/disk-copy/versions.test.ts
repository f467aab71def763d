/** The version that a disk copy returns while servers fail and other processes write to it. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { reprice } from '../../snapshot/rows.ts';
import { run } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';
import { diskScene, MINUTE } from './disk-scene.ts';

const disk = diskScene();
const { scene, clock, open, served, machines, everythingDown, fileOf } = disk;

describe('versions', () => {
  it('a restart serves the last version soon, and never one from a second before', async () => {
    const reader = await served();
    const name = { kind: 'region', regionId: scene.sample.region } as const;
    const old = (await reader.documents.get(name)).document?.version;
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    await until(async () => (await reader.documents.get(name)).document?.version === version);
    await everythingDown();
    // The new version may not be written yet. The old one is removed in any case.
    await until(async () => (await servedFromDisk()) !== old);
    expect([version, undefined]).toContain(await servedFromDisk());
    await reader.copy?.flush();
    expect(await servedFromDisk()).toBe(version);

    async function servedFromDisk(): Promise<number | undefined> {
      const restarted = open();
      const given = await Promise.resolve(restarted.documents.get(name)).catch(() => undefined);
      return given?.document?.version;
    }
  });

  it('a cache that is older than the answers of the earlier reader is skipped', async () => {
    const reader = await served();
    const name = { kind: 'region', regionId: scene.sample.region } as const;
    const key = scene.keys.document(name);
    const old = await scene.cache.getBuffer(key);
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    await until(async () => (await reader.documents.get(name)).document?.version === version);
    await reader.copy?.flush();
    await scene.cache.set(key, old ?? '');
    expect(await open().documents.get(name)).toMatchObject({
      tier: 'postgres',
      document: { version },
    });
    // The reader's write-back.
    await until(async () => !(await scene.cache.getBuffer(key))?.equals(old ?? Buffer.alloc(0)));
    await scene.cache.set(key, old ?? '');
    await disk.database.refuse();
    expect(await open().documents.get(name)).toMatchObject({
      tier: 'disk',
      document: { version },
    });
  });

  it('the tiers recover one by one, and newer versions win', async () => {
    await served();
    await everythingDown();
    const reader = open();
    const name = { kind: 'region', regionId: scene.sample.region } as const;
    const old = (await reader.documents.get(name)).document?.version ?? 0;
    expect(await reader.documents.get(name)).toMatchObject({ tier: 'disk' });
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    expect(await reader.documents.get(name)).toMatchObject({ tier: 'disk', document: { version: old } });
    await disk.database.heal();
    await until(async () => (await reader.documents.get(name)).document?.version === version);
    await disk.cache.heal();
    await until(() => reader.link.linked);
    await until(async () => (await reader.documents.get(name)).tier === 'memory');
    expect((await machines(reader)).tier).toBe('memory');
    const newest = await reprice(scene.sql, scene.sample.small, '0.7');
    await scene.publisher.publishDirty();
    await until(async () => (await reader.documents.get(name)).document?.version === newest);
  });

  it('a database with another lineage ends the copy', async () => {
    await served();
    await everythingDown();
    const reader = open();
    expect((await machines(reader)).tier).toBe('disk');
    await run(scene.db.url, 'update lineage set id = gen_random_uuid()');
    await run(scene.db.url, `update machines set price = 7 where id = ${scene.sample.small}`);
    await disk.database.heal();
    await until(async () => (await machines(reader)).tier !== 'disk');
    expect((await machines(reader)).body.identity.toString()).toContain('"price":7');
    await reader.copy?.flush();
    await disk.database.refuse();
    expect((await machines(open())).body.identity.toString()).toContain('"price":7');
  });
});

it('a new reader leaves the same files, and confirms them from then on', async () => {
  const before = await served({ staleLimitMs: 10 * MINUTE });
  await before.copy?.[Symbol.asyncDispose]();
  const ids = ['providers', `region:${scene.sample.region}`, `clusters:${scene.sample.a}`];
  const content = () =>
    ids.map((id) => {
      const bytes = readFileSync(fileOf(id));
      return bytes.subarray(bytes.indexOf('\n')).toString('hex');
    });
  const expected = content();
  clock.forward(9 * MINUTE);
  await served({ staleLimitMs: 10 * MINUTE });
  expect(content()).toEqual(expected);
  await everythingDown();
  clock.forward(9 * MINUTE);
  expect((await machines(open({ staleLimitMs: 10 * MINUTE }))).tier).toBe('disk');
});

it('two readers share a folder: each starts with the documents of both', async () => {
  const [one, two] = [await served(), open()];
  await two.clusters.clusters(scene.sample.b);
  await two.copy?.flush();
  await one.copy?.flush();
  await everythingDown();
  for (const reader of [open(), open()]) {
    expect((await machines(reader)).tier).toBe('disk');
    expect((await reader.clusters.clusters(scene.sample.b)).tier).toBe('disk');
  }
});

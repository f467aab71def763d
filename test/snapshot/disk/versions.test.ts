/** Which version a disk copy gives, while servers come and go and other processes write to it. */
import { describe, expect, it } from 'vitest';
import { run } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';
import { reprice } from '../rows.ts';
import { diskScene, MINUTE } from './disk-scene.ts';

const disk = diskScene();
const { scene, clock, open, served, machines, everythingDown, openCopy } = disk;

describe('versions', () => {
  it('what was given last is given, or nothing: never what was before', async () => {
    const reader = await served();
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    const name = { kind: 'region', regionId: scene.sample.region } as const;
    await until(async () => (await reader.documents.get(name)).document?.version === version);
    // Not flushed: the content may not be there, the older one is out.
    await everythingDown();
    const restarted = open();
    const given = await Promise.resolve(restarted.documents.get(name)).catch(() => undefined);
    expect([version, undefined]).toContain(given?.document?.version);
    await reader.copy?.flush();
    expect((await open().documents.get(name)).document?.version).toBe(version);
  });

  it('a cache that is behind what the reader before gave is passed over', async () => {
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

  it('the tiers return one by one, and newer versions win', async () => {
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

  it('a database with another lineage ends what is kept', async () => {
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

it('a process that holds the file locked delays one answer a little, and what it kept out follows', async () => {
  const reader = await served();
  const name = { kind: 'region', regionId: scene.sample.region } as const;
  const locked = openCopy();
  locked.exec('begin immediate');
  const versions: number[] = [];
  for (const price of ['0.5', '0.6', '0.7']) {
    const version = await reprice(scene.sql, scene.sample.small, price);
    await scene.publisher.publishDirty();
    await until(async () => (await reader.documents.get(name)).document?.version === version, {
      timeoutMs: 2000,
    });
    versions.push(version);
  }
  await until(() => (reader.copy?.counts.failures.get('locked') ?? 0) > 0);
  locked.exec('rollback');
  locked.close();
  await until(async () => (await reader.copy?.read(name))?.document.version === versions.at(-1));
  await everythingDown();
  expect(await open().documents.get(name)).toMatchObject({
    tier: 'disk',
    document: { version: versions.at(-1) },
  });
});

it('what the copy has already is not written again by a reader that starts, and is known from then on', async () => {
  const before = await served({ staleLimitMs: 10 * MINUTE });
  await before.copy?.[Symbol.asyncDispose]();
  const content = () => openCopy().prepare('select id, version, hex(value) from documents order by id').all();
  const expected = content();
  clock.forward(9 * MINUTE);
  await served({ staleLimitMs: 10 * MINUTE });
  expect(content()).toEqual(expected);
  await everythingDown();
  clock.forward(9 * MINUTE);
  expect((await machines(open({ staleLimitMs: 10 * MINUTE }))).tier).toBe('disk');
});

it('two readers share a folder: each starts with what either has kept', async () => {
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

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { decodeDocument } from '../../src/snapshot/document/format.ts';
import type { DocumentName } from '../../src/snapshot/document/keys.ts';
import { until } from '../support/until.ts';
import { reprice } from './rows.ts';
import { cutStreams, loseEntry, sceneForEachTest } from './scene.ts';

const scene = sceneForEachTest();

const region = (): DocumentName => ({ kind: 'region', regionId: scene.sample.region });
const machinesOf = (body: { identity: Buffer }) =>
  JSON.parse(body.identity.toString()) as { id: number; price: number }[];

describe('a version that a reader gave is never followed by an older one', () => {
  it('also if the cache is restored to it', async () => {
    await scene.publisher.publishDirty();
    const key = scene.keys.document(region());
    const old = (await scene.cache.getBuffer(key)) ?? Buffer.alloc(0);
    const reader = await scene.linkedReader({ blockMs: 20 });
    const given = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    const price = async () =>
      machinesOf((await reader.catalogue.machines(scene.sample.provider, scene.sample.region)).body)[1]
        ?.price;
    await until(async () => (await price()) === 0.5);
    // Not published yet: the cache's old state must not count as the truth.
    const newest = await reprice(scene.sql, scene.sample.small, '0.6');
    await scene.cache.set(key, old);
    // As after a failover that lost the end: all of memory must be compared.
    const { epoch } = reader.link;
    await loseEntry(scene);
    await until(() => reader.link.epoch > epoch);
    // Memory may answer once if PostgreSQL needs more than a quarter of a second.
    const versions = new Set<number | undefined>();
    await until(async () => {
      versions.add((await reader.documents.get(region())).document?.version);
      return versions.has(newest);
    });
    versions.delete(given);
    expect([...versions]).toEqual([newest]);
    expect(await price()).toBe(0.6);
  });

  it('also if the cache is restored to it, and memory was too full to store the document', async () => {
    await reprice(scene.sql, scene.sample.small, '0.4');
    await scene.publisher.publishDirty();
    const key = scene.keys.document(region());
    const old = (await scene.cache.getBuffer(key)) ?? Buffer.alloc(0);
    const given = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ blockMs: 20, memoryLimit: 8800 });
    for (const organizationId of [scene.sample.a, scene.sample.b])
      await reader.documents.get({ kind: 'clusters', organizationId });
    const first = await reader.documents.get(region());
    expect([first.tier, first.document?.version]).toEqual(['redis', given]);
    expect(reader.documents.getFresh(region())).toBeUndefined();
    const newest = await reprice(scene.sql, scene.sample.small, '0.6');
    await scene.cache.set(key, old);
    const { epoch } = reader.link;
    await loseEntry(scene);
    await until(() => reader.link.epoch > epoch && reader.link.linked);
    const next = await reader.documents.get(region());
    expect([next.tier, next.document?.version]).toEqual(['postgres', newest]);
  });

  it('for any order of changes, publications, cache losses and reads', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ blockMs: 5 });
    const key = scene.keys.document(region());
    const saved: Buffer[] = [];
    const seen: number[] = [];
    let isOver = false;
    const reading = (async () => {
      while (!isOver) {
        const { document } = await reader.documents.get(region());
        seen.push(document?.version ?? 0);
        await sleep(1);
      }
    })();
    let last = 0;
    for (let i = 1; i <= 80; i++) {
      last = await reprice(scene.sql, scene.sample.small, String(i / 1000));
      if (i % 2 === 0) await scene.publisher.publishDirty();
      const value = await scene.cache.getBuffer(key);
      if (value && decodeDocument(region(), value)) saved.push(value);
      if (i % 7 === 0) await scene.cache.del(key);
      if (i % 11 === 0) await scene.cache.set(key, saved[Math.floor(saved.length / 2)] ?? '');
      if (i % 13 === 0) await scene.cache.flushall();
      if (i % 17 === 0) await cutStreams(scene);
      // On a fast machine the changes would be over after a few reads.
      await until(() => seen.length > i, { everyMs: 1 });
    }
    await scene.publisher.compare();
    await until(async () => (await reader.documents.get(region())).document?.version === last);
    isOver = true;
    await reading;
    expect(seen.length).toBeGreaterThan(80);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  });
});

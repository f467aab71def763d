import { describe, expect, it } from 'vitest';
import { addOrganization, verify } from './rows.ts';
import { sceneForEachTest } from './scene.ts';

const scene = sceneForEachTest();

describe('the time of verification', () => {
  it('is that of the oldest source of the document, in every tier', async () => {
    const cloud = '2026-01-02T03:04:05.678Z';
    const reader = scene.reader();
    expect((await reader.catalogue.machines(scene.sample.provider, scene.sample.region)).asOf).toBe(cloud);
    await scene.publisher.publishDirty();
    const linked = await scene.linkedReader();
    expect((await linked.catalogue.machine(scene.sample.small))?.asOf).toBe(cloud);
    expect((await linked.catalogue.machine(scene.sample.small))?.asOf).toBe(cloud);
    expect((await linked.clusters.clusters(scene.sample.b)).asOf).toBe('2026-01-01T00:00:00.000Z');
    await verify(scene.sql, 'cloud', '2026-01-02T04:00:00Z');
    await scene.publisher.publishDirty();
    await linked.link.poll();
    expect((await linked.catalogue.machine(scene.sample.small))?.asOf).toBe('2026-01-02T04:00:00.000Z');
  });

  it('is not what a damaged cache says', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    for (const stamp of [
      'catalogue 2099-01-01T00:00:00Z\u0001',
      'catalogue 2099',
      'unknown 2099-01-01T00:00:00Z',
    ])
      await scene.cache.hset(scene.keys.verified, 'cloud', stamp);
    await reader.link.poll();
    expect((await reader.catalogue.machine(scene.sample.small))?.asOf).toBe('2026-01-02T03:04:05.678Z');
  });

  it('of a document without rows is that of the oldest source of its kind, and never goes back', async () => {
    await scene.sql`insert into sources (id, kind, adapter, verified_at) values ('old', 'catalogue', 'test', '2025-06-01T00:00:00Z')`;
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    const empty = () => reader.catalogue.machines(scene.sample.provider, scene.sample.emptyRegion);
    expect((await empty()).asOf).toBe('2025-06-01T00:00:00.000Z');
    await scene.cache.hset(scene.keys.verified, 'old', 'catalogue 2024-01-01T00:00:00.000Z');
    await reader.link.poll();
    expect((await empty()).asOf).toBe('2025-06-01T00:00:00.000Z');
    expect((await reader.clusters.clusters(await addOrganization(scene.sql, 'empty'))).asOf).toBe(
      '2026-01-01T00:00:00.000Z',
    );
  });

  it('comes from Postgres while the cache is reached and says nothing of it', async () => {
    const reader = await scene.linkedReader();
    await reader.link.poll();
    expect(await scene.cache.exists(scene.keys.verified)).toBe(0);
    const late = await scene.linkedReader();
    await late.link.poll();
    expect((await late.clusters.clusters(scene.sample.a)).asOf).toBe('2026-01-01T00:00:00.000Z');
  });

  it('is not told while one of the sources was never verified', async () => {
    await scene.sql`update sources set verified_at = null where id = 'plane'`;
    const reader = scene.reader();
    expect((await reader.clusters.clusters(scene.sample.a)).asOf).toBeUndefined();
    expect((await reader.catalogue.machine(scene.sample.small))?.asOf).toBeDefined();
  });
});

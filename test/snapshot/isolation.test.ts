import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/db/connection/connect.ts';
import { loadContent } from '../../src/snapshot/document/load.ts';
import { sceneForEachTest } from './scene.ts';

const scene = sceneForEachTest();

const clustersOf = (organizationId: number) => ({ kind: 'clusters', organizationId }) as const;
const keyOf = (organizationId: number) => scene.keys.document(clustersOf(organizationId));

describe('another organization’s clusters', () => {
  it('are not returned for the same slug', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    const names = [];
    for (const organization of [scene.sample.a, scene.sample.b, scene.sample.a]) {
      const answer = await reader.clusters.cluster(organization, 'cluster-test');
      names.push(JSON.parse(answer?.body.identity.toString() ?? '').name);
    }
    expect(names).toEqual(['Ä’s', 'of B alone', 'Ä’s']);
  });

  it('are a miss if they are stored under this one’s key', async () => {
    await scene.publisher.publishDirty();
    const ofB = (await scene.cache.getBuffer(keyOf(scene.sample.b))) ?? Buffer.alloc(0);
    await scene.cache.set(keyOf(scene.sample.a), ofB);
    const reader = await scene.linkedReader();
    const answer = await reader.clusters.clusters(scene.sample.a);
    expect(answer.tier).toBe('postgres');
    expect(answer.body.identity.includes('of B alone')).toBe(false);
    expect(answer.body.identity.includes('Ä’s')).toBe(true);
    const other = scene.sample.b + 1000;
    await scene.cache.set(keyOf(other), ofB);
    expect((await reader.clusters.clusters(other)).body.identity.toString()).toBe('[]');
  });

  it('cannot be loaded in a reader’s role by any code', async () => {
    await using reader = openStore({ url: scene.db.url, role: 'reader' });
    const [, rows] = await reader.sql.begin('read only', (tx) => [
      tx`select set_config('app.org_id', ${String(scene.sample.a)}, true)`,
      tx<{ name: string }[]>`select name from clusters`,
    ]);
    expect(rows.map(({ name }) => name)).toEqual(['Ä’s']);
    expect(await reader.sql`select name from clusters`).toHaveLength(0);
  });

  it('are not loaded without row-level security either: the predicate alone suffices', async () => {
    const content = await loadContent(scene.sql, clustersOf(scene.sample.a));
    expect(content?.body.includes('of B alone')).toBe(false);
    expect([...(content?.index.keys() ?? [])]).toEqual(['cluster-test']);
  });
});

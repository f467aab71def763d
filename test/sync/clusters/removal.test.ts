import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { heldItems, pendingBatches } from '../../../src/db/held-batches.ts';
import type { ReportedCluster } from '../../../src/domain/cluster.ts';
import type { ClusterItem } from '../../../src/sources/source.ts';
import { offer, openScene, region, type Scene } from '../scene.ts';
import { cluster } from './rows.ts';

describe('clusters that vanish while others are added', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    await scene.reset();
    await scene.catalogue([region('a'), offer('a', 'small')]);
    await scene.organization('org');
    await scene.clusters(three);
  });

  const three = ['one', 'two', 'three'].map((key) => cluster(key));
  const shown = async () =>
    (
      await scene.sql<{ text: string }[]>`
        select slug || ' ' || status as text from clusters where retired_at is null order by slug`
    ).map(({ text }) => text);
  const all = ['one Active', 'three Active', 'two Active'];
  const batch = async () => {
    const [found, ...others] = await pendingBatches(scene.store.db);
    expect(others).toEqual([]);
    return found ?? expect.unreachable('nothing is held');
  };
  const approve = async (id: number) => {
    const items: ClusterItem<ReportedCluster>[] = [];
    for await (const item of heldItems(scene.store.db, id)) items.push(item as ClusterItem<ReportedCluster>);
    return scene.clusters(items, { approved: true });
  };

  it('hold only their removal: an added cluster is shown', async () => {
    expect(await scene.clusters([cluster('four')], { missingIsDeleted: true })).toMatchObject({
      outcome: 'held',
      broken: [{ guard: 'removed' }],
      counts: { seen: 1, added: 1, changed: 0, retired: 0 },
    });
    expect(await shown()).toEqual(['four Active', ...all]);
    expect((await scene.sql`select from clusters where missed_runs > 0`).count).toBe(0);
    const [organization] = await scene.sql`select clusters_version from organizations`;
    expect(organization?.clusters_version).toBe('3');
    expect(await approve((await batch()).id)).toMatchObject({
      outcome: 'changed',
      counts: { added: 0, retired: 3 },
    });
    expect(await shown()).toEqual(['four Active']);
  });

  it('do not hold changes of the others, however often this repeats', async () => {
    const twelve = Array.from({ length: 12 }, (_, index) => cluster(`c${index}`));
    await scene.clusters([...three, ...twelve]);
    for (const status of ['Stopped', 'Active', 'Stopped']) {
      const rest = [cluster('one', { status }), ...twelve.slice(4)];
      expect(await scene.clusters(rest)).toMatchObject({ outcome: 'held', counts: { added: 0, changed: 1 } });
      expect(await shown()).toContain(`one ${status}`);
      expect(await shown()).toHaveLength(15);
    }
    await scene.clusters([...three, ...twelve]);
    expect(await pendingBatches(scene.store.db)).toEqual([]);
  });

  it('also hold clusters added in their place under another key: they may be the same clusters', async () => {
    expect(
      await scene.clusters([
        cluster('new key', { name: 'one' }),
        cluster('x', { slug: 'two' }),
        cluster('four'),
      ]),
    ).toMatchObject({ outcome: 'held', counts: { added: 1 } });
    expect(await shown()).toEqual(['four Active', ...all]);
    await approve((await batch()).id);
    expect(await shown()).toEqual(['four Active', 'one Active', 'two Active']);
  });

  it('hold everything if the rest of the batch is not trusted either', async () => {
    const bad = Array.from({ length: 4 }, (_, index) => ({
      kind: 'rejected' as const,
      key: `bad ${index}`,
      organization: 'org',
      reason: 'bad',
    }));
    const before = await scene.rows('clusters', 'organizations', 'quarantined_rows');
    expect(await scene.clusters([cluster('four'), ...bad])).toMatchObject({
      outcome: 'held',
      counts: { added: 0, changed: 0 },
    });
    expect(await scene.rows('clusters', 'organizations', 'quarantined_rows')).toEqual(before);
    expect(await scene.clusters([])).toMatchObject({ outcome: 'held' });
    expect(await scene.rows('clusters', 'organizations', 'quarantined_rows')).toEqual(before);
  });

  it('leave no validator: the next run reads the whole source and holds again', async () => {
    const validator = { url: 'https://plane.example/clusters', etag: '"1"' };
    const items = [{ kind: 'validator' as const, validator }, cluster('four')];
    expect(await scene.clusters(items, { parseFingerprint: 'r' })).toMatchObject({
      outcome: 'held',
      counts: { added: 1 },
    });
    expect((await scene.sql`select from source_validators`).count).toBe(0);
    await scene.clusters([{ kind: 'validator', validator }, ...three, cluster('four')], {
      parseFingerprint: 'r',
    });
    expect((await scene.sql`select from source_validators`).count).toBe(1);
    expect(await scene.clusters(items, { parseFingerprint: 'r' })).toMatchObject({
      outcome: 'held',
      counts: { added: 0 },
    });
    expect((await scene.sql`select from source_validators`).count).toBe(0);
  });
});

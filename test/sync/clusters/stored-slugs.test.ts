import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decide, heldItems, pendingBatches } from '../../../src/db/held-batches.ts';
import type { ReportedCluster } from '../../../src/domain/cluster.ts';
import type { ClusterItem } from '../../../src/sources/source.ts';
import { OPERATOR, offer, openScene, region, type Scene } from '../scene.ts';
import { cluster, disk } from './rows.ts';

describe('stored clusters', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    await scene.reset();
    await scene.organization('org');
    await scene.catalogue([region('a'), offer('a', 'x')]);
  });

  const slugs = async () => {
    const rows = await scene.sql<{ key: string; slug: string }[]>`
      select o.slug || '/' || source_key as key, c.slug from clusters c join organizations o on o.id = c.organization_id
      where retired_at is null`;
    return Object.fromEntries(rows.map(({ key, slug }) => [key.replace(/^org\//, ''), slug]));
  };

  it('get slugs by age and then by key, for any order of the report', async () => {
    const items = [
      cluster('b', { name: 'Prod' }),
      cluster('a', { name: 'prod' }),
      cluster('z', { name: 'PROD', createdAt: '2020-01-01T00:00:00.000000' }),
    ];
    for (const order of [items, items.toReversed()]) {
      await scene.clusters(order);
      expect(await slugs()).toEqual({ z: 'prod', a: 'prod-2', b: 'prod-3' });
      await scene.reset();
      await scene.organization('org');
    }
  });

  it('keep their slug through a new name, and lose it only to a slug that their source gives', async () => {
    await scene.clusters([cluster('a', { name: 'First' }), cluster('b', { name: 'Second' })]);
    await scene.clusters([cluster('a', { name: 'Other' }), cluster('b', { name: 'First' })]);
    expect(await slugs()).toEqual({ a: 'first', b: 'second' });
    await scene.clusters([cluster('a', { name: 'Other', slug: 'Own_1' }), cluster('b', { name: 'First' })]);
    expect(await slugs()).toEqual({ a: 'Own_1', b: 'second' });
    // The slug stays when the source no longer gives it.
    await scene.clusters([cluster('a', { name: 'Other' }), cluster('b', { name: 'First' })]);
    expect(await slugs()).toEqual({ a: 'Own_1', b: 'second' });
  });

  it('may pass slugs to each other within one batch', async () => {
    const given = (pairs: Record<string, string>) =>
      Object.entries(pairs).map(([key, slug]) => cluster(key, { slug }));
    for (const pairs of [
      { a: 'one', b: 'two', c: 'three' },
      { a: 'two', b: 'one', c: 'three' },
      { a: 'three', b: 'two', c: 'one' },
      { a: 'two', b: 'one', c: 'new', d: 'three' },
    ]) {
      await scene.clusters(given(pairs));
      expect(await slugs()).toEqual(pairs);
    }
  });

  it('may have the same slugs as another organization’s', async () => {
    await scene.organization('other');
    await scene.clusters([cluster('a', { name: 'x' }), cluster('a', { name: 'x', organization: 'other' })]);
    expect(await slugs()).toEqual({ a: 'x', 'other/a': 'x' });
  });

  it('free their slug when they are retired, and take the next free slug when they return', async () => {
    const others = [cluster('x'), cluster('y')];
    await scene.clusters([cluster('a', { name: 'prod' }), ...others]);
    for (let run = 0; run < 3; run++) await scene.clusters(others);
    await scene.clusters([cluster('b', { name: 'prod' }), ...others]);
    expect(await slugs()).toEqual({ b: 'prod', x: 'x', y: 'y' });
    await scene.clusters([cluster('a', { name: 'prod' }), cluster('b', { name: 'prod' }), ...others]);
    expect(await slugs()).toEqual({ a: 'prod-2', b: 'prod', x: 'x', y: 'y' });
  });

  it('of two sources that give the same slug keep the slugs that they first got', async () => {
    await scene.clusters([cluster('a', { slug: 'x' })]);
    await scene.clusters([cluster('b', { slug: 'x' })], { source: 'second' });
    await scene.clusters([cluster('b', { slug: 'x', status: 'Stopped' })], { source: 'second' });
    await scene.clusters([cluster('a', { slug: 'x', status: 'Stopped' })]);
    expect(await slugs()).toEqual({ a: 'x', b: 'x-2' });
  });

  it('wait for an operator while their batch is held, and are unchanged to their source after the approval', async () => {
    const disks = [disk('ssd', '0.002', { size: 1.5, unit: 'TB', autoscaling: true })];
    const all = Array.from({ length: 10 }, (_, index) =>
      cluster(`c${index}`, { disks, slug: `slug-${index}` }),
    );
    await scene.clusters(all);
    const few = all
      .slice(0, 5)
      .map((item) => (item.kind === 'cluster' ? cluster(item.cluster.key, { disks }) : item));
    const unusable: ClusterItem<ReportedCluster> = {
      kind: 'rejected',
      key: 'c9',
      organization: 'org',
      reason: 'broken',
    };
    expect(await scene.clusters([...few, unusable])).toMatchObject({
      outcome: 'held',
      counts: { seen: 6, changed: 5, rejected: 1 },
      broken: [{ guard: 'removed', found: 0.4 }],
    });
    const [batch = expect.unreachable()] = await pendingBatches(scene.store.db);
    expect(batch).toMatchObject({ sourceId: 'plane', items: 6 });
    const held: ClusterItem<ReportedCluster>[] = [];
    for await (const item of heldItems(scene.store.db, batch.id))
      held.push(item as ClusterItem<ReportedCluster>);
    expect(held[0]).toEqual(unusable);

    expect(await scene.clusters(held, { approved: true })).toMatchObject({
      outcome: 'changed',
      counts: { changed: 0, retired: 4 },
    });
    expect(await decide(scene.store.db, batch.id, 'approved', OPERATOR)).toBe(true);
    expect(
      await scene.sql`select source_key from clusters where retired_at is not null order by 1`,
    ).toMatchObject([5, 6, 7, 8].map((index) => ({ source_key: `c${index}` })));
    const before = await scene.rows('clusters', 'disks', 'disk_types', 'organizations');
    await scene.clusters([...few, unusable]);
    const [{ changed } = expect.unreachable()] =
      await scene.sql`select changed from sync_runs order by id desc limit 1`;
    expect(changed).toBe(0);
    expect(await scene.rows('organizations')).toEqual({ organizations: before.organizations });
  });
});

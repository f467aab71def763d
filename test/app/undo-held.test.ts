import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { previewHeld, storeDecided } from '../../src/app/actions/batch.ts';
import { batchRecord, batchRecords, decide, undoRejection } from '../../src/db/held-batches.ts';
import { cluster, disk } from '../sync/clusters/rows.ts';
import { OPERATOR, offer, offers, region, rejected } from '../sync/scene.ts';
import { type HeldScene, LINODE, openHeldScene } from './held-scene.ts';

const PLANE = { source: 'clusters' };
const BOB = { ...OPERATOR, by: 'bob@desk', reason: 'a mistake' };

let scene: HeldScene;
beforeAll(async () => {
  scene = await openHeldScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const onlyPending = () => scene.onlyPending();
const approve = (id: string, batch: number) => scene.approve(id, batch);
const undo = (id: string, batch: number) =>
  storeDecided(scene.config, scene.store, scene.configured(id), {
    kind: 'undo',
    batchId: batch,
    decider: BOB,
  });

describe('a mistaken approval', () => {
  const machines = () => scene.sql`
    select r.code, r.name as region, m.id, m.name, m.cpu, m.ram, m.price::float, m.source_amount, m.excluded_reason
    from machines m join regions r on r.id = m.region_id where m.retired_at is null order by m.id`;
  const whole = [region('a'), ...offers('a', 10), offer('a', 'gpu', { excluded: 'accelerated' })];
  const other = [
    region('a', 'Renamed'),
    ...offers('a', 4, { amount: '0.6' }),
    offer('a', 'fresh'),
    rejected('q', { name: 'q', regionCode: 'a' }),
  ];

  it('of machines is undone: readers get the former data, with its ids and its age', async () => {
    await scene.catalogue([...whole, rejected('p', { name: 'p', regionCode: 'a' })], LINODE);
    const about = async () => [
      await machines(),
      await scene.sql`select row_key, reason, first_seen_at from quarantined_rows`,
      await scene.sql`select verified_at from sources where id = 'linode'`,
    ];
    const before = await about();
    await scene.catalogue(other, LINODE);
    const { id } = await onlyPending();
    expect(await approve('linode', id)).toMatchObject({ counts: { added: 1, changed: 4, retired: 7 } });
    expect(await machines()).toHaveLength(5);
    const [{ version } = expect.unreachable()] = await scene.sql`select version::int from regions`;
    expect(await undo('linode', id)).toMatchObject({
      outcome: 'changed',
      counts: { added: 7, changed: 4, retired: 1 },
    });
    expect(await about()).toEqual(before);
    expect(await scene.sql`select version::int > ${version} as bumped from regions`).toEqual([
      { bumped: true },
    ]);
    expect(await batchRecord(scene.store.db, id)).toMatchObject({
      status: 'undone',
      decidedBy: OPERATOR.by,
      reason: OPERATOR.reason,
      undoneBy: BOB.by,
      undoneReason: BOB.reason,
      items: 0,
    });
    expect(await undo('linode', id)).toMatchObject({ outcome: 'superseded' });
    // The source reports it again, and it is held since the first time.
    await scene.catalogue(other, LINODE);
    const again = await onlyPending();
    expect(again.id).not.toBe(id);
    expect(again.heldSince).toBe((await batchRecord(scene.store.db, id))?.heldSince);
  });

  it('of clusters that got other machines is undone: each has its machine since before, and the price of then', async () => {
    await scene.organization('org');
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const on = (machine: string) => names.map((name) => cluster(name, { machine: { name: machine } }));
    const both = (amount: string) => [region('a'), offer('a', 'small', { amount }), offer('a', 'big')];
    await scene.catalogue(both('0.06'));
    await scene.clusters(on('small'), PLANE);
    const shown = () => scene.sql`
      select source_key, machine_id, machine_since, creation_as_of, creation_price, creation_reason from clusters order by 1`;
    const before = await shown();
    await scene.catalogue(both('0.12'));
    const bad = names.map((name) => ({
      kind: 'rejected' as const,
      key: `bad ${name}`,
      organization: 'org',
      reason: 'bad',
    }));
    await scene.clusters([...on('big'), ...bad], PLANE);
    const { id } = await onlyPending();
    await approve('clusters', id);
    expect(await shown()).not.toEqual(before);
    await undo('clusters', id);
    expect(await shown()).toEqual(before);
  });

  it('is not undone once a run has stored or held something, which would also be undone', async () => {
    for (const next of [other, [region('a'), offer('a', 'm1', { amount: '0.6' })]]) {
      await scene.reset();
      await scene.catalogue(whole, LINODE);
      await scene.catalogue(other, LINODE);
      const { id } = await onlyPending();
      await approve('linode', id);
      await scene.catalogue(next, LINODE);
      const before = await machines();
      expect(await undo('linode', id)).toMatchObject({ outcome: 'superseded' });
      expect(await machines()).toEqual(before);
      expect(await batchRecord(scene.store.db, id)).toMatchObject({ status: 'approved', reversible: false });
    }
  });

  it('of clusters is undone: each has its former fields, and its source finds no change', async () => {
    await scene.organization('org');
    await scene.catalogue([region('a'), offer('a', 'small')]);
    const all = Array.from({ length: 6 }, (_, index) =>
      cluster(`c${index}`, {
        disks: [disk('ssd'), disk('hdd', '0.002')],
        user: { firstName: 'A', lastName: `${index}` },
      }),
    );
    await scene.clusters(all, PLANE);
    const shown = () => scene.sql`
      select c.id, c.slug, c.name, c.source_hash, c.machine_id, c.region_id, c.user_id, c.status, c.created_at,
        (select array_agg(row(k.position, k.disk_type_id, k.size, k.unit)::text order by k.position)
          from disks k where k.cluster_id = c.id) as disks
      from clusters c where retired_at is null order by c.id`;
    const before = await shown();
    const changed = cluster('c0', { name: 'other', status: 'Stopped', disks: [] });
    await scene.clusters([changed, cluster('new')], PLANE);
    const { id } = await onlyPending();
    expect(await approve('clusters', id)).toMatchObject({ counts: { retired: 5 } });
    expect(await shown()).toHaveLength(2);
    expect(await undo('clusters', id)).toMatchObject({ outcome: 'changed', counts: { added: 5 } });
    // Rows from before the approval stay: it only approved the removal.
    const [first, ...others] = await shown();
    expect(first).toMatchObject({ name: 'other', status: 'Stopped' });
    expect(others.slice(0, 5)).toEqual(before.slice(1));
    expect(await scene.clusters([changed, cluster('new'), ...all.slice(1)], PLANE)).toMatchObject({
      outcome: 'unchanged',
    });
  });
});

describe('a rejection', () => {
  it('is undone until the next run: the same batch is pending again', async () => {
    const { db } = scene.store;
    await scene.catalogue([region('a'), ...offers('a', 10)], LINODE);
    await scene.catalogue([region('a'), ...offers('a', 5)], LINODE);
    const held = await onlyPending();
    expect(await decide(db, held.id, 'rejected', OPERATOR)).toBe(true);
    expect(await undoRejection(db, held.id, BOB)).toBe(true);
    expect(await undoRejection(db, held.id, BOB)).toBe(false);
    expect(await onlyPending()).toMatchObject({ id: held.id, items: held.items, undoneBy: BOB.by });
    expect(await approve('linode', held.id)).toMatchObject({ counts: { retired: 5 } });
    expect(await batchRecords(db, undefined)).toMatchObject([
      { id: held.id, status: 'approved', decidedBy: OPERATOR.by, undoneBy: null },
    ]);
  });

  it('stays after a later run', async () => {
    const { db } = scene.store;
    await scene.catalogue([region('a'), ...offers('a', 10)], LINODE);
    await scene.catalogue([region('a'), ...offers('a', 5)], LINODE);
    const { id } = await onlyPending();
    await decide(db, id, 'rejected', OPERATOR);
    await scene.catalogue([region('a'), ...offers('a', 5)], LINODE);
    expect(await undoRejection(db, id, BOB)).toBe(false);
    expect((await onlyPending()).id).not.toBe(id);
  });
});

describe('the changes of a held batch', () => {
  it('are shown for machines by kind, with some rows and the total of each', async () => {
    await scene.catalogue(
      [region('a'), ...offers('a', 10), offer('a', 'gpu', { excluded: 'accelerated' })],
      LINODE,
    );
    await scene.catalogue(
      [region('a'), offer('a', 'm1', { amount: '0.07' }), rejected('q', { name: 'q' })],
      LINODE,
    );
    const { id } = await onlyPending();
    const preview = await previewHeld(scene.config, scene.store, scene.configured('linode'), id, 2);
    expect(preview).toMatchObject({
      kind: 'catalogue',
      totals: { gone: 9, price: 1 },
      unseen: 1,
      reasons: [{ code: 'invalid', count: 1 }],
    });
    expect(preview.rows.map(({ change }) => change)).toEqual(['gone', 'gone', 'price']);
    const all = await previewHeld(scene.config, scene.store, scene.configured('linode'), id, undefined);
    expect(all.rows).toHaveLength(10);
  });

  it('are shown for clusters by organization, each changed field before and after', async () => {
    for (const slug of ['org', 'other']) await scene.organization(slug);
    await scene.catalogue([region('a'), offer('a', 'small'), offer('a', 'large', { cpu: 4 })]);
    const names = ['a', 'b', 'c', 'd'];
    await scene.clusters(
      [
        ...names.map((name) => cluster(name)),
        ...names.map((name) => cluster(name, { organization: 'other' })),
      ],
      PLANE,
    );
    const next = cluster('a', {
      status: 'Stopped',
      shards: 3,
      machine: { cpu: 4, ram: 4, ramUnit: 'Binary' },
      disks: [disk('ssd', '0.002', { size: 200 })],
    });
    // Unusable rows keep the whole batch from being stored.
    const bad = Array.from({ length: 4 }, (_, index) => ({
      kind: 'rejected' as const,
      key: `bad ${index}`,
      organization: 'org',
      reason: 'bad',
    }));
    await scene.clusters([next, cluster('e'), cluster('a', { organization: 'other' }), ...bad], PLANE);
    const { id } = await onlyPending();
    const preview = await previewHeld(scene.config, scene.store, scene.configured('clusters'), id, 2);
    expect(preview).toMatchObject({
      kind: 'clusters',
      totals: { gone: 6, changed: 1, new: 1 },
      organizations: [
        { organization: 'org', gone: 3, changed: 1, new: 1 },
        { organization: 'other', gone: 3, changed: 0, new: 0 },
      ],
      reasons: [{ count: 4 }],
    });
    expect(preview.rows).toMatchObject([
      { change: 'gone', organization: 'org', name: 'b' },
      { change: 'gone', organization: 'org', name: 'c' },
      {
        change: 'changed',
        organization: 'org',
        name: 'a',
        fields: [
          {
            field: 'disks',
            before: '100 GiB ssd at 0.001 USD per GiB and minute',
            after: '200 GiB ssd at 0.002 USD per GiB and minute',
          },
          { field: 'shards', before: '1', after: '3' },
          { field: 'status', before: 'Active', after: 'Stopped' },
          { field: 'machine', before: '2 cpu 4 GiB', after: '4 cpu 4 GiB' },
        ],
      },
      { change: 'new', organization: 'org', name: 'e' },
    ]);
  });
});

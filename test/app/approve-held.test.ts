import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decide, pendingBatches } from '../../src/db/held-batches.ts';
import type { CatalogueItem } from '../../src/sources/source.ts';
import { supersedeHeld } from '../../src/sync/runs/hold.ts';
import { untilWaiting } from '../support/waiting.ts';
import { cluster } from '../sync/clusters/rows.ts';
import { databasePlan, OPERATOR, offers, region } from '../sync/scene.ts';
import { type HeldScene, LINODE, openHeldScene } from './held-scene.ts';

const storage = (regionCode: string, amount: string): CatalogueItem => ({
  kind: 'region-price',
  regionCode,
  price: {
    ...{ item: 'block_storage', name: 'volume', isDefault: true, unit: 'GB', per: 'month', currency: 'USD' },
    tiers: [{ from: '0', amount }],
  },
});

let scene: HeldScene;
beforeAll(async () => {
  scene = await openHeldScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

describe('an operator who approves a held batch', () => {
  /** Ten machines are known, and a batch with half of them is held. */
  async function heldBatch(): Promise<number> {
    await scene.catalogue([region('a'), ...offers('a', 10)], LINODE);
    await scene.catalogue([region('a'), ...offers('a', 5)], LINODE);
    return (await scene.onlyPending()).id;
  }
  const approve = (batch: number) => scene.approve('linode', batch);
  const known = async () => (await scene.sql`select from machines where retired_at is null`).count;
  const statuses = async () =>
    (await scene.sql<{ status: string }[]>`select status from held_batches order by id`).map(
      ({ status }) => status,
    );

  it('stores it, and it is no longer held', async () => {
    const batch = await heldBatch();
    expect(await approve(batch)).toMatchObject({ outcome: 'changed', counts: { seen: 5, retired: 5 } });
    expect([await known(), await statuses()]).toEqual([5, ['approved']]);
    // The previous rows are stored until the next run.
    await scene.catalogue([region('a'), ...offers('a', 5)], LINODE);
    expect((await scene.sql`select from held_items`).count).toBe(0);
  });

  const ages = () => scene.sql`
    select f.source_id || ' ' || r.code as of, f.verified_at::text as at
    from region_freshness f join regions r on r.id = f.region_id
    union all select id, verified_at::text from sources order by 1`;

  it('gives its data the time of the batch’s read, and unread regions their former time', async () => {
    const whole = ['a', 'b'].flatMap((code) => [region(code), ...offers(code, 10)]);
    await scene.catalogue(whole, LINODE);
    const unread = { kind: 'unread', regionCode: 'b', reason: 'b answers 500' } as const;
    await scene.catalogue([region('a'), ...offers('a', 2), region('b'), unread], LINODE);
    const [batch] = await pendingBatches(scene.store.db);
    expect(await approve(batch?.id ?? 0)).toMatchObject({
      outcome: 'changed',
      counts: { seen: 3, retired: 8, rejected: 1 },
    });
    expect(await ages()).toEqual([
      { of: 'linode', at: '2026-01-01 02:00:00+00' },
      { of: 'linode a', at: '2026-01-01 02:00:00+00' },
      { of: 'linode b', at: '2026-01-01 01:00:00+00' },
    ]);
    expect(await scene.sql`select row_key, code, region_code from quarantined_rows`).toEqual([
      { row_key: 'b', code: 'unread_region', region_code: 'b' },
    ]);
  });

  it('updates the time of an unchanged region, as the held batch read it', async () => {
    const validator = { url: 'http://upstream/a', etag: '"1"' };
    await scene.catalogue([region('a'), ...offers('a', 3), region('b'), ...offers('b', 10)], LINODE);
    await scene.catalogue(
      [{ kind: 'unmodified', validator, regionCode: 'a' }, region('b'), ...offers('b', 2)],
      LINODE,
    );
    const [batch] = await pendingBatches(scene.store.db);
    expect(await approve(batch?.id ?? 0)).toMatchObject({ outcome: 'changed', counts: { retired: 8 } });
    expect(await ages()).toEqual(
      ['linode', 'linode a', 'linode b'].map((of) => ({ of, at: '2026-01-01 02:00:00+00' })),
    );
  });

  it('keeps prices and plans of an unchanged region', async () => {
    const validator = { url: 'http://upstream/a', etag: '"1"' };
    const regionOf = (code: string) => [
      region(code),
      ...offers(code, 10),
      storage(code, '0.04'),
      databasePlan(code, 'small'),
    ];
    await scene.catalogue([...regionOf('a'), ...regionOf('b')], LINODE);
    const stored = () => scene.sql`
      select r.code, r.prices #>> '{0,source,tiers,0,amount}' as storage, count(d.id)::int as plans
      from regions r left join database_plans d on d.region_id = r.id and d.retired_at is null group by r.id order by 1`;
    const unmodified = { kind: 'unmodified', validator, regionCode: 'a' } as const;
    await scene.catalogue([unmodified, region('b'), ...offers('b', 2), storage('b', '0.05')], LINODE);
    const { id } = await scene.onlyPending();
    expect(await approve(id)).toMatchObject({ outcome: 'changed', counts: { retired: 8 } });
    expect(await stored()).toEqual([
      { code: 'a', storage: '0.04', plans: 1 },
      { code: 'b', storage: '0.05', plans: 0 },
    ]);
  });

  it('does not move a newer time back', async () => {
    const batch = await heldBatch();
    const later = '2026-01-01 05:00:00+00';
    await scene.sql`update sources set verified_at = ${later}`;
    await scene.sql`update region_freshness set verified_at = ${later}`;
    await approve(batch);
    expect(await ages()).toEqual(['linode', 'linode a'].map((of) => ({ of, at: later })));
  });

  it('gives clusters the time of the batch’s read', async () => {
    await scene.organization('org');
    const source = { source: 'clusters' };
    const all = Array.from({ length: 10 }, (_, i) => cluster(`c${i}`));
    await scene.clusters(all, source);
    await scene.clusters(all.slice(0, 5), source);
    const { id } = await scene.onlyPending();
    expect(await scene.approve('clusters', id)).toMatchObject({
      outcome: 'changed',
      counts: { retired: 5 },
    });
    expect(await ages()).toEqual([{ of: 'clusters', at: '2026-01-01 02:00:00+00' }]);
  });

  it('changes nothing if a concurrent sync replaces it', async () => {
    const batch = await heldBatch();
    await using sync = scene.store.connection();
    await sync.sql`begin`;
    await sync.sql`select from sources where id = 'linode' for update`;
    await supersedeHeld(sync.db, 'linode');
    const approved = approve(batch);
    await untilWaiting(scene.sql, 1);
    await sync.sql`commit`;
    expect(await approved).toMatchObject({ outcome: 'superseded' });
    expect([await known(), await statuses()]).toEqual([10, ['superseded']]);
  });

  it('changes nothing if another operator rejects it first', async () => {
    const batch = await heldBatch();
    await using other = scene.store.connection();
    await other.sql`begin`;
    expect(await decide(other.db, batch, 'rejected', OPERATOR)).toBe(true);
    const approved = approve(batch);
    await untilWaiting(scene.sql, 1);
    await other.sql`commit`;
    expect(await approved).toMatchObject({ outcome: 'superseded' });
    expect([await known(), await statuses()]).toEqual([10, ['rejected']]);
  });

  it('changes nothing the second time', async () => {
    const batch = await heldBatch();
    await approve(batch);
    const before = await scene.rows('machines', 'regions', 'held_batches');
    expect(await approve(batch)).toMatchObject({ outcome: 'superseded' });
    expect(await scene.rows('machines', 'regions', 'held_batches')).toEqual(before);
  });
});

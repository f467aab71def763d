import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decide, heldItems, pendingBatches } from '../../../src/db/held-batches.ts';
import { sourceRuns } from '../../../src/features/console/queries/runs.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { OPERATOR, offer, offers, openScene, region, rejected, type Scene } from '../scene.ts';

describe('a catalogue that breaks a guard', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(() => scene.reset());

  const whole = [region('a'), region('b'), ...offers('a', 10), ...offers('b', 10)];
  const half = [
    region('a', 'Renamed'),
    ...offers('a', 10),
    offer('c', 'astray'),
    rejected('p', { name: 'p' }),
  ];
  const readers = ['providers', 'regions', 'machines', 'machine_prices', 'quarantined_rows', 'lineage'];
  const items = async (batchId: number) => {
    const found: CatalogueItem[] = [];
    for await (const item of heldItems(scene.store.db, batchId)) found.push(item as CatalogueItem);
    return found;
  };
  const onlyPending = async () => {
    const [batch, ...others] = await pendingBatches(scene.store.db);
    expect(others).toEqual([]);
    return batch ?? expect.unreachable('nothing is held');
  };
  const statuses = async () =>
    (await scene.sql<{ status: string }[]>`select status from held_batches order by id`).map(
      ({ status }) => status,
    );

  it('is held: readers keep the last good one, and the whole batch waits for an operator', async () => {
    await scene.catalogue(whole);
    const before = [await scene.rows(...readers), await scene.sql`select verified_at from sources`];
    const result = await scene.catalogue(half);
    expect(result).toMatchObject({
      outcome: 'held',
      counts: { seen: 12, added: 0, changed: 0, retired: 0, rejected: 2, withdrawn: 0 },
      broken: [{ guard: 'removed', found: 0.5, limit: 0.2, detail: expect.stringMatching(/^10 of 20 /) }],
    });
    expect([await scene.rows(...readers), await scene.sql`select verified_at from sources`]).toEqual(before);
    const batch = await onlyPending();
    expect(batch).toMatchObject({ sourceId: 'acme', items: 13, broken: result.broken });
    expect(await items(batch.id)).toEqual(
      expect.arrayContaining([
        { kind: 'region', code: 'a', name: 'Renamed' },
        ...offers('a', 10),
        { kind: 'rejected', key: 'p', name: 'p', reason: 'p cannot be used' },
        expect.objectContaining({ kind: 'rejected', key: 'astray@c', name: 'astray', regionCode: 'c' }),
      ]),
    );
    expect(await scene.sql`select outcome, error, seen from sync_runs order by id`).toEqual([
      { outcome: 'changed', error: null, seen: 20 },
      {
        outcome: 'held',
        error: '10 of 20 known rows are not reported any more (50 %, limit 20 %)',
        seen: 12,
      },
    ]);
  });

  it('keeps the adapter’s data of its items: excluded ones, other currencies, small amounts', async () => {
    const odd = [
      offer('a', 'gpu', { excluded: 'accelerated', ram: 0.5, cpu: 96 }),
      offer('a', 'euro', { price: { amount: '0.0000000000000000052', per: 'month', currency: 'EUR' } }),
      offer('a', 'decimal', { ramUnit: 'Decimal' }),
    ];
    await scene.catalogue(whole);
    await scene.catalogue([region('a'), ...odd]);
    const held = await items((await onlyPending()).id);
    expect(held).toEqual(expect.arrayContaining(odd));
    expect(held).toHaveLength(4);
  });

  it('is superseded by the next batch that breaks a guard', async () => {
    await scene.catalogue(whole);
    await scene.catalogue(half);
    const first = await onlyPending();
    await scene.catalogue([region('a'), ...offers('a', 3)]);
    const second = await onlyPending();
    expect(second).toMatchObject({ items: 4 });
    expect(await items(first.id)).toEqual([]);
    expect(await statuses()).toEqual(['superseded', 'pending']);
    expect(await decide(scene.store.db, first.id, 'approved', OPERATOR)).toBe(false);
  });

  it('keeps its number while the source is unchanged, and is as fresh as the last read', async () => {
    const times = [
      { kind: 'as-of', regionCode: 'a', time: '2026-01-01T00:00:00Z' },
      { kind: 'as-of', regionCode: 'a', time: '2026-01-01T00:30:00Z' },
    ] as const;
    await scene.catalogue(whole);
    await scene.catalogue([...half, times[0]]);
    const first = await onlyPending();
    const again = await scene.catalogue([...half.toReversed(), times[1]]);
    expect(again.outcome).toBe('held');
    const second = await onlyPending();
    expect(second).toEqual({ ...first, readAt: '2026-01-01T03:00:00Z' });
    expect(await items(first.id)).toContainEqual(times[1]);
    expect(await items(first.id)).not.toContainEqual(times[0]);
    expect(await scene.sql`select outcome from sync_runs order by id`).toMatchObject([
      { outcome: 'changed' },
      { outcome: 'held' },
      { outcome: 'held' },
    ]);
    const { rows } = await sourceRuns(scene.store.db, 'acme', { limit: 2 });
    expect(rows.map(({ heldBatch }) => heldBatch)).toEqual([first.id, first.id]);
  });

  it.each([
    ['one more row', [offer('a', 'more')]],
    ['a repeated row', offers('a', 1)],
    ['another unusable row', [rejected('q', { name: 'q' })]],
    ['another name of a region', [region('a', 'Another')]],
  ])('is replaced by a read with %s', async (_, more) => {
    await scene.catalogue(whole);
    await scene.catalogue(half);
    const first = await onlyPending();
    await scene.catalogue([...half, ...more]);
    expect((await onlyPending()).id).toBeGreaterThan(first.id);
    expect(await statuses()).toEqual(['superseded', 'pending']);
  });

  it('is superseded by the next good batch, which readers then get', async () => {
    await scene.catalogue(whole);
    await scene.catalogue(half);
    const held = await onlyPending();
    await scene.catalogue(whole);
    expect(await pendingBatches(scene.store.db)).toEqual([]);
    expect(await statuses()).toEqual(['superseded']);
    expect(await items(held.id)).toEqual([]);
  });

  it('is held since the first similar batch, until another guard breaks or a good run comes', async () => {
    await scene.catalogue(whole);
    const since = async (items: CatalogueItem[]) => {
      await scene.catalogue(items);
      return (await onlyPending()).heldSince;
    };
    const first = await since(half);
    await scene.sql`update held_batches set held_since = held_since - interval '1 day'`;
    const second = await since(half);
    expect(Date.parse(first) - Date.parse(second)).toBe(86_400_000);
    expect((await onlyPending()).createdAt).not.toBe(second);
    // Another batch that breaks the same guards.
    expect(await since(half.slice(0, -1))).toBe(second);
    expect(await since([...half, ...offers('a', 5, { amount: '0.7' })])).not.toBe(second);
    await scene.catalogue(whole);
    expect(await since(half)).not.toBe(second);
  });

  it('does not affect a batch that another source holds', async () => {
    const other = { source: 'other', provider: { id: 78, name: 'Other' } };
    await scene.catalogue(whole);
    await scene.catalogue(whole, other);
    await scene.catalogue(half);
    await scene.catalogue(half, other);
    expect(await pendingBatches(scene.store.db)).toMatchObject([{ sourceId: 'acme' }, { sourceId: 'other' }]);
    await scene.catalogue(whole);
    expect(await pendingBatches(scene.store.db)).toMatchObject([{ sourceId: 'other' }]);
  });

  it('is stored when an operator approves it, as if it had passed the guards', async () => {
    const dear = [region('a'), ...offers('a', 10, { amount: '0.6' })];
    await scene.catalogue([region('a'), ...offers('a', 10)]);
    expect(await scene.catalogue([...dear, rejected('p', { name: 'p' })])).toMatchObject({
      outcome: 'held',
      broken: [{ guard: 'repriced' }, { guard: 'price_ratio', found: 10 }],
    });
    const batch = await onlyPending();
    const result = await scene.catalogue(await items(batch.id), { approved: true });
    expect(result).toMatchObject({ outcome: 'changed', counts: { seen: 11, changed: 10, rejected: 1 } });
    expect(await decide(scene.store.db, batch.id, 'approved', OPERATOR)).toBe(true);
    expect(await decide(scene.store.db, batch.id, 'rejected', OPERATOR)).toBe(false);
    expect(await statuses()).toEqual(['approved']);
    expect(await scene.sql`select distinct trim_scale(price)::text as price from machines`).toEqual([
      { price: '0.01' },
    ]);
    expect(await scene.sql`select row_key from quarantined_rows`).toEqual([{ row_key: 'p' }]);
    expect(await scene.sql`select count(*)::int from held_items`).toEqual([{ count: 0 }]);
    // The source reports the same again, so nothing changes.
    expect(await scene.catalogue([...dear, rejected('p', { name: 'p' })])).toMatchObject({
      outcome: 'unchanged',
    });
  });

  it('is diffed again on approval, against the present state', async () => {
    await scene.catalogue([region('a'), ...offers('a', 10)]);
    await scene.catalogue([region('a'), ...offers('a', 10, { amount: '0.6' })]);
    const held = await items((await onlyPending()).id);
    await scene.catalogue([region('a'), ...offers('a', 11)]);
    expect(await scene.catalogue(held, { approved: true })).toMatchObject({
      counts: { added: 0, changed: 10 },
    });
    expect(await scene.sql`select name, missed_runs from machines where missed_runs > 0`).toEqual([
      { name: 'm11', missed_runs: 1 },
    ]);
  });

  it('is dropped when an operator rejects it', async () => {
    await scene.catalogue(whole);
    await scene.catalogue(half);
    const before = await scene.rows(...readers);
    const { id } = await onlyPending();
    expect(await decide(scene.store.db, id, 'rejected', OPERATOR)).toBe(true);
    expect(await pendingBatches(scene.store.db)).toEqual([]);
    expect(await scene.rows(...readers)).toEqual(before);
    expect(await statuses()).toEqual(['rejected']);
    // Until now, an operator could undo the rejection.
    expect(await items(id)).not.toEqual([]);
    await scene.catalogue(whole);
    expect(await items(id)).toEqual([]);
  });

  it('is checked by the source’s own amounts: an exchange rate may change freely', async () => {
    const euros = (amount: string) => offers('a', 10, { price: { amount, currency: 'EUR' } });
    await scene.catalogue([region('a'), ...euros('0.06')], { rates: { EUR: '0.01' } });
    const one = [
      offer('a', 'm1', { price: { amount: '0.061', currency: 'EUR' } }),
      ...euros('0.06').slice(1),
    ];
    expect(await scene.catalogue([region('a'), ...one], { rates: { EUR: '100' } })).toMatchObject({
      outcome: 'changed',
      counts: { changed: 10 },
    });
    // Amounts of different currencies cannot be compared, so the published price is compared.
    const dollars = [offer('a', 'm1', { amount: '0.061' }), ...euros('0.06').slice(1)];
    expect(await scene.catalogue([region('a'), ...dollars], { rates: { EUR: '100' } })).toMatchObject({
      outcome: 'unchanged',
      rejected: [{ code: 'price_jump', reason: expect.stringContaining('factor of 100') }],
    });
  });

  it.each([
    ['of an unpublished machine is not limited', { excluded: 'accelerated' }, 'changed'],
    ['by a factor of five is within the limit', { amount: '0.3' }, 'changed'],
    ['by a factor above five exceeds it', { amount: '0.3001' }, 'quarantined'],
    ['down by a factor above five exceeds it too', { amount: '0.0119' }, 'quarantined'],
    ['to zero is not compared', { amount: '0' }, 'changed'],
    ['to an equal price a minute is no change', { price: { amount: '0.001', per: 'minute' } }, 'changed'],
    ['to the same number a minute is a factor of sixty', { price: { per: 'minute' } }, 'quarantined'],
  ] as const)('a price change %s', async (_, fields, outcome) => {
    await scene.catalogue([region('a'), ...offers('a', 3)]);
    const next = [offer('a', 'm1', { amount: '60', ...fields }), ...offers('a', 3).slice(1)];
    const changed =
      'amount' in fields || 'price' in fields ? [offer('a', 'm1', fields), ...next.slice(1)] : next;
    const taken = outcome === 'changed';
    expect(await scene.catalogue([region('a'), ...changed])).toMatchObject({
      outcome: taken ? 'changed' : 'unchanged',
      counts: { changed: taken ? 1 : 0, rejected: taken ? 0 : 1 },
    });
  });

  it('does not count machines from clusters as changed, but as new', async () => {
    await scene.organization('org');
    await scene.catalogue([region('a'), ...offers('a', 3)]);
    await scene.sql`
      insert into machines (region_id, name, cpu, ram, ram_unit, excluded_reason)
      select 1, 'u' || n, 2, 4, 'Binary', 'unlisted' from generate_series(1, 3) n`;
    const learnt = ['u1', 'u2', 'u3'].map((name) => offer('a', name));
    expect(await scene.catalogue([region('a'), ...offers('a', 3), ...learnt])).toMatchObject({
      outcome: 'changed',
      counts: { added: 3, changed: 0 },
    });
    const [prices] = await scene.sql`select count(*)::int from machine_prices`;
    expect(prices).toEqual({ count: 6 });
  });

  it.each<[string, (known: CatalogueItem[]) => CatalogueItem[], string]>([
    [
      'without a page that the upstream announced',
      (known) => [...known, { kind: 'total', of: 'types', advertised: 50, fetched: 20 }],
      'incomplete',
    ],
    [
      'with a repeated page',
      (known) => [...known, ...known.filter((item) => item.kind === 'offer')],
      'duplicates',
    ],
    [
      'with all memory × 1.024',
      (known) =>
        known.map((item) =>
          item.kind === 'offer' ? { ...item, offer: { ...item.offer, ram: item.offer.ram * 1.024 } } : item,
        ),
      'unit_flip',
    ],
    [
      'with all prices divided by a hundred',
      (known) =>
        known.map((item) =>
          item.kind === 'offer'
            ? { ...item, offer: { ...item.offer, price: { ...item.offer.price, amount: '0.0000001' } } }
            : item,
        ),
      'price_ratio',
    ],
    [
      'with only deprecated machines',
      (known) =>
        known.map((item) =>
          item.kind === 'offer' ? { ...item, offer: { ...item.offer, excluded: 'discontinued' } } : item,
        ),
      'removed',
    ],
  ])('is held %s, and readers see none of it', async (_, change, guard) => {
    await scene.catalogue(whole);
    const before = await scene.rows(...readers);
    const result = await scene.catalogue(change(whole));
    expect(result.outcome).toBe('held');
    expect(result.broken.map((broken) => broken.guard)).toContain(guard);
    expect(await scene.rows(...readers)).toEqual(before);
  });
});

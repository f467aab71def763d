import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { heldItems, pendingBatches } from '../../../src/db/held-batches.ts';
import { acceptPrice } from '../../../src/db/prices/prices.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { OPERATOR, offer, offers, openScene, region, rejected, type Scene } from '../scene.ts';

describe('a few wrong rows', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(() => scene.reset());

  const codes = ['a', 'b', 'c'];
  const regions = codes.map((code) => region(code));
  const whole = [...regions, ...codes.flatMap((code) => offers(code, 35))];
  /** Returns `whole` with other prices for some machines, in every region. */
  const repriced = (prices: Record<string, string>): CatalogueItem[] =>
    whole.map((item) => {
      const amount = item.kind === 'offer' ? prices[item.offer.name] : undefined;
      if (item.kind !== 'offer' || amount === undefined) return item;
      return { ...item, offer: { ...item.offer, price: { ...item.offer.price, amount } } };
    });
  const price = async (name: string, code = 'a') => {
    const [row] = await scene.sql<{ amount: string }[]>`
      select source_amount::text as amount from machines m join regions r on r.id = m.region_id
      where m.name = ${name} and r.code = ${code}`;
    return row?.amount;
  };
  const quarantine = () =>
    scene.sql`select row_key as key, code, price from quarantined_rows order by row_key collate "C"`;
  const jumped = (name: string, code: string, amount: string) => ({
    key: `${name}@${code}`,
    code: 'price_jump',
    price: { amount, per: 'hour', currency: 'USD' },
  });

  it('do not hold the others: a type that is listed twice keeps its last good values', async () => {
    await scene.catalogue(whole);
    const twice = codes.map((code) => offer(code, 'm1', { amount: '0.07' }));
    const result = await scene.catalogue([...repriced({ m2: '0.08' }), ...twice]);
    expect(result).toMatchObject({
      outcome: 'changed',
      broken: [],
      counts: { seen: 108, changed: 3, rejected: 6 },
    });
    expect([await price('m1'), await price('m2')]).toEqual(['0.06', '0.08']);
    expect(await quarantine()).toMatchObject(codes.map((code) => ({ key: `m1@${code}`, code: 'duplicate' })));
  });

  it('do not hold the others: a price beyond the factor is skipped and reported', async () => {
    await scene.catalogue(whole);
    const before = await scene.rows('machine_prices');
    const result = await scene.catalogue(repriced({ m1: '0.6' }));
    expect(result).toMatchObject({
      outcome: 'unchanged',
      broken: [],
      counts: { seen: 105, changed: 0, rejected: 3 },
      rejected: [
        {
          key: 'm1@a',
          code: 'price_jump',
          reason: expect.stringContaining('0.06 USD per hour to 0.6 USD per hour'),
        },
        { key: 'm1@b' },
        { key: 'm1@c' },
      ],
    });
    expect(await scene.rows('machine_prices')).toEqual(before);
    expect(await quarantine()).toEqual(codes.map((code) => jumped('m1', code, '0.6')));
    expect(await scene.catalogue(repriced({ m1: '0.6', m2: '0.07' }))).toMatchObject({
      outcome: 'changed',
      counts: { changed: 3, rejected: 3 },
    });
    expect([await price('m1'), await price('m2')]).toEqual(['0.06', '0.07']);
    await scene.catalogue(whole);
    expect(await quarantine()).toEqual([]);
  });

  it('count as reported: a machine that was missed before is present again', async () => {
    await scene.catalogue(whole);
    const without = whole.filter((item) => item.kind !== 'offer' || item.offer.name !== 'm1');
    for (let run = 0; run < 2; run++) await scene.catalogue(without);
    expect((await scene.sql`select from machines where missed_runs = 2`).count).toBe(3);
    await scene.catalogue(repriced({ m1: '0.6' }));
    expect((await scene.sql`select from machines where missed_runs > 0`).count).toBe(0);
  });

  it('are too many if they are more types than smallCount and more than the share of the rows', async () => {
    await scene.catalogue(whole);
    const names = Array.from({ length: 4 }, (_, index) => `m${index + 1}`);
    const dear = (count: number) =>
      repriced(Object.fromEntries(names.slice(0, count).map((name) => [name, '0.6'])));
    // Nine of 105 rows are within a tenth, twelve are not.
    expect(await scene.catalogue(dear(3))).toMatchObject({ outcome: 'unchanged', counts: { rejected: 9 } });
    expect(await scene.catalogue(dear(4))).toMatchObject({
      outcome: 'held',
      broken: [{ guard: 'price_ratio', found: 10, detail: expect.stringContaining('12 of 105') }],
    });
    const twice = names.flatMap((name) => codes.map((code) => offer(code, name)));
    expect(await scene.catalogue([...whole, ...twice])).toMatchObject({
      outcome: 'held',
      broken: [{ guard: 'duplicates' }],
    });
  });

  it('are stored with an approved batch, even if another guard holds it', async () => {
    await scene.catalogue(whole);
    const half = repriced({ m1: '0.6' }).filter(
      (item) => item.kind !== 'offer' || item.offer.regionCode === 'a',
    );
    expect(await scene.catalogue(half)).toMatchObject({ outcome: 'held', broken: [{ guard: 'removed' }] });
    const [batch = expect.unreachable()] = await pendingBatches(scene.store.db);
    const items: CatalogueItem[] = [];
    for await (const item of heldItems(scene.store.db, batch.id)) items.push(item as CatalogueItem);
    expect(items.filter(({ kind }) => kind === 'rejected')).toEqual([]);
    expect(await scene.catalogue(items, { approved: true })).toMatchObject({
      counts: { changed: 1, retired: 70 },
    });
    expect(await price('m1')).toBe('0.6');
    expect(await quarantine()).toEqual([]);
  });

  it('are stored once an operator accepts the quarantined price', async () => {
    await scene.catalogue(whole);
    await scene.catalogue(repriced({ m1: '0.6' }));
    const { db } = scene.store;
    const decision = { ...OPERATOR, reason: 'a new tariff' };
    expect(await acceptPrice(db, 'acme', 'm1@a', '0.7', decision)).toMatchObject({ outcome: 'other' });
    expect(await acceptPrice(db, 'acme', 'm9@a', '0.6', decision)).toEqual({ outcome: 'none' });
    expect(await acceptPrice(db, 'acme', 'm1@a', '0.60', decision)).toMatchObject({ outcome: 'accepted' });
    expect(await scene.catalogue(repriced({ m1: '0.6' }))).toMatchObject({
      outcome: 'changed',
      counts: { changed: 1, rejected: 2 },
    });
    expect([await price('m1', 'a'), await price('m1', 'b')]).toEqual(['0.6', '0.06']);
    expect(await quarantine()).toEqual([jumped('m1', 'b', '0.6'), jumped('m1', 'c', '0.6')]);
    expect(await scene.sql`select name, region_code, accepted_by, reason from accepted_prices`).toEqual([
      { name: 'm1', region_code: 'a', accepted_by: 'ada@desk', reason: 'a new tariff' },
    ]);
    // The approval covers only that price.
    expect(await scene.catalogue(repriced({ m1: '6' }))).toMatchObject({
      counts: { changed: 0, rejected: 3 },
    });
  });
});

describe('unusable rows that an operator approved', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(() => scene.reset());

  const usable = [region('a'), ...offers('a', 11)];
  const broken = (count: number): CatalogueItem[] =>
    Array.from({ length: count }, (_, index) => rejected(`bad${index + 1}`, { name: `bad${index + 1}` }));

  it('do not hold the source again, but new rows and new reasons do', async () => {
    const four = [...usable, ...broken(4)];
    expect(await scene.catalogue(four)).toMatchObject({ outcome: 'held', broken: [{ guard: 'rejected' }] });
    expect(await scene.catalogue(four, { approved: true })).toMatchObject({ outcome: 'changed' });
    for (let read = 0; read < 3; read++)
      expect(await scene.catalogue(four)).toMatchObject({
        outcome: 'unchanged',
        broken: [],
        counts: { rejected: 4 },
      });
    const others = Array.from({ length: 3 }, (_, index) => rejected(`new${index}`, { name: `new${index}` }));
    expect(await scene.catalogue([...four, ...others])).toMatchObject({
      outcome: 'held',
      broken: [{ guard: 'rejected', detail: '3 of 14 rows cannot be used (21 %, limit 10 %)' }],
    });
    const otherwise = broken(4).map((row) => ({ ...row, reason: 'its price is no number' }));
    expect(await scene.catalogue([...usable, ...otherwise] as CatalogueItem[])).toMatchObject({
      outcome: 'held',
      broken: [{ guard: 'rejected', detail: '4 of 15 rows cannot be used (27 %, limit 10 %)' }],
    });
    // A held batch changes nothing, so the rows are still approved.
    expect(await scene.catalogue(four)).toMatchObject({ outcome: 'unchanged', broken: [] });
  });

  it('count again after they were usable once', async () => {
    await scene.catalogue([...usable, ...broken(4)], { approved: true });
    expect(await scene.catalogue(usable)).toMatchObject({ outcome: 'unchanged' });
    expect(await scene.catalogue([...usable, ...broken(4)])).toMatchObject({ outcome: 'held' });
  });

  it('are not approved with a batch that another guard holds', async () => {
    await scene.catalogue([...usable, ...offers('a', 20).slice(11), ...broken(2)]);
    const less = [...usable, ...broken(2)];
    expect(await scene.catalogue(less)).toMatchObject({ broken: [{ guard: 'removed' }] });
    await scene.catalogue(less, { approved: true });
    expect(await scene.sql`select from quarantined_rows where approved_at is not null`).toHaveLength(0);
  });

  it('do not hold the source again if each is a machine that is listed twice', async () => {
    const twice = [...usable, ...offers('a', 4)];
    expect(await scene.catalogue(twice)).toMatchObject({ broken: [{ guard: 'duplicates' }] });
    await scene.catalogue(twice, { approved: true });
    expect(await scene.catalogue(twice)).toMatchObject({ outcome: 'unchanged', broken: [] });
  });

  it('do not hide a batch without a usable row', async () => {
    await scene.catalogue([...usable, ...broken(4)], { approved: true });
    expect(await scene.catalogue([region('a'), ...broken(4)])).toMatchObject({
      outcome: 'held',
      broken: expect.arrayContaining([expect.objectContaining({ guard: 'empty' })]),
    });
  });
});

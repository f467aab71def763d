import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { priceLines } from '../../../src/cli/sources/prices.ts';
import { priceHistory } from '../../../src/db/prices/prices.ts';
import { loadMachinePrices } from '../../../src/snapshot/document/load.ts';
import { offer, offers, openScene, region, type Scene } from '../scene.ts';

const EUR = (amount: string) => ({ price: { amount, currency: 'EUR' } });

describe('prices', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(() => scene.reset());

  const history = (machineId = 1) =>
    scene.sql<{ price: string | null; amount: string; from: string; to: string | null }[]>`
      select trim_scale(price)::text as price, source_amount || ' ' || source_currency as amount,
        to_char(valid_from, 'HH24') as from, to_char(valid_to, 'HH24') as to
      from machine_prices where machine_id = ${machineId} order by valid_from`;
  const price = async (name = 'x') => {
    const [row] = await scene.sql<{ price: string | null; excluded: string | null }[]>`
      select trim_scale(price)::text as price, excluded_reason as excluded from machines where name = ${name}`;
    return [row?.price, row?.excluded];
  };
  const version = async () => {
    const [row] = await scene.sql<{ version: string }[]>`select version from regions`;
    return Number(row?.version);
  };

  it('are stored as consecutive intervals, each from the end of the one before', async () => {
    for (const amount of ['0.06', '0.06', '0.12', '0.0600']) {
      await scene.catalogue([region('a'), offer('a', 'x', { amount }), offer('a', 'y')]);
    }
    expect(await history()).toEqual([
      { price: '0.001', amount: '0.06 USD', from: '01', to: '03' },
      { price: '0.002', amount: '0.12 USD', from: '03', to: '04' },
      { price: '0.001', amount: '0.0600 USD', from: '04', to: null },
    ]);
    expect(await history(2)).toHaveLength(1);
    expect((await loadMachinePrices(scene.sql, 1)).rows).toMatchObject([
      { price: 0.001, to: null },
      { price: 0.002, from: '2026-01-01T03:00:00.000000Z', to: '2026-01-01T04:00:00.000000Z' },
      { price: 0.001 },
    ]);
  });

  it('in another period or currency are other prices, even if the converted price is equal', async () => {
    for (const given of [
      { amount: '0.06' },
      { price: { amount: '0.001', per: 'minute' } },
      EUR('0.03'),
    ] as const) {
      await scene.catalogue([region('a'), offer('a', 'x', given)], { rates: { EUR: '2' } });
    }
    expect(await history()).toMatchObject([
      { to: '02' },
      { to: '03' },
      { price: '0.001', amount: '0.03 EUR', to: null },
    ]);
    expect(await version()).toBe(2);
  });

  it('are closed when their machine is retired, and continue when it returns', async () => {
    const rest = [region('a'), offer('a', 'y')];
    await scene.catalogue([...rest, offer('a', 'x')]);
    for (let run = 0; run < 3; run++) await scene.catalogue(rest);
    const id = 1;
    expect(await history(id)).toMatchObject([{ from: '01', to: '04' }]);
    await scene.catalogue([...rest, offer('a', 'x')]);
    expect(await history(id)).toMatchObject([
      { from: '01', to: '04' },
      { from: '05', to: null },
    ]);
    expect(await scene.sql`select name from machines where id = ${id}`).toEqual([{ name: 'x' }]);
  });

  it('follow an exchange rate with a new version and without a row of history', async () => {
    const items = [
      region('a'),
      offer('a', 'x', EUR('0.06')),
      offer('a', 'dear', { ...EUR('6'), excluded: 'accelerated' }),
    ];
    await scene.catalogue(items, { rates: { EUR: '1.08' } });
    const prices = await scene.rows('machine_prices');
    expect([await price(), await version()]).toEqual([['0.00108', null], 2]);
    const result = await scene.catalogue(items, { rates: { EUR: '1.1' } });
    expect(result).toMatchObject({ outcome: 'changed', counts: { changed: 2 } });
    expect([await price(), await version()]).toEqual([['0.0011', null], 3]);
    expect(await scene.rows('machine_prices')).toEqual(prices);
  });

  it('without an exchange rate leave a known machine unchanged, and publish no new machine', async () => {
    const items = [region('a'), offer('a', 'x', EUR('0.06'))];
    await scene.catalogue(items, { rates: { EUR: '1.08' } });
    const before = await scene.rows('machines', 'machine_prices', 'regions');
    expect(await scene.catalogue(items)).toMatchObject({ outcome: 'unchanged' });
    // The old price stays, also if the amount changes.
    expect(await scene.catalogue([region('a'), offer('a', 'x', EUR('0.07'))])).toMatchObject({
      outcome: 'unchanged',
    });
    expect(await scene.rows('machines', 'machine_prices', 'regions')).toEqual(before);
    await scene.catalogue([
      region('a'),
      offer('a', 'x', { ...EUR('0.07'), cpu: 4 }),
      offer('a', 'new', EUR('0.06')),
    ]);
    expect(await price()).toEqual(['0.00108', null]);
    expect(await price('new')).toEqual([null, 'no_exchange_rate']);
    expect(await scene.sql`select cpu from machines where name = 'x'`).toEqual([{ cpu: 4 }]);
  });

  it('whose exchange rate becomes known later complete their history', async () => {
    const items = [region('a'), offer('a', 'x', EUR('0.06'))];
    await scene.catalogue(items);
    expect(await history()).toEqual([{ price: null, amount: '0.06 EUR', from: '01', to: null }]);
    expect((await loadMachinePrices(scene.sql, 1)).rows).toEqual([]);
    await scene.catalogue(items, { rates: { EUR: '1.08' } });
    expect(await price()).toEqual(['0.00108', null]);
    expect(await history()).toEqual([{ price: '0.00108', amount: '0.06 EUR', from: '01', to: null }]);
  });

  it('of zero do not replace a price without an exchange rate', async () => {
    await scene.catalogue([region('a'), offer('a', 'x', { amount: '0' }), offer('a', 'y')]);
    expect(await price()).toEqual(['0', 'zero_price']);
    expect(await scene.catalogue([region('a'), offer('a', 'x', EUR('0.06')), offer('a', 'y')])).toMatchObject(
      {
        outcome: 'changed',
      },
    );
    expect(await price()).toEqual([null, 'no_exchange_rate']);
  });

  it('of zero are a gap for readers, and a withdrawal for an operator', async () => {
    for (const amount of ['0.06', '0', '0.06', '0.000000000000000000001', '0.12']) {
      await scene.catalogue([region('a'), offer('a', 'x', { amount }), offer('a', 'y')]);
    }
    expect((await loadMachinePrices(scene.sql, 1)).rows).toEqual([
      { price: 0.002, from: '2026-01-01T05:00:00.000000Z', to: null },
      { price: 0.001, from: '2026-01-01T03:00:00.000000Z', to: '2026-01-01T04:00:00.000000Z' },
      { price: 0.001, from: '2026-01-01T01:00:00.000000Z', to: '2026-01-01T02:00:00.000000Z' },
    ]);
    const points = await priceHistory(scene.store.db, 1);
    expect(points?.prices.map(({ price, withdrawn }) => [price, withdrawn])).toEqual([
      [0.002, null],
      [0, 'zero_price'],
      [0.001, null],
      [0, 'zero_price'],
      [0.001, null],
    ]);
    const lines = points && priceLines(points, 'USD').split('\n');
    expect(lines?.[2]).toMatch(
      /^2026-01-01 04:00 – 2026-01-01 05:00 {2}withdrawn {2}0\.0+1 USD\/hour is free of charge$/,
    );
    expect(lines?.[4]).toMatch(/withdrawn {2}0 USD\/hour is free of charge$/);
    expect(lines?.[3]).toMatch(/ {2}0\.06 USD\/hour$/);
  });

  it('without an exchange rate at that time are a gap for readers, and an operator sees the reason', async () => {
    await scene.catalogue([region('a'), offer('a', 'x', { amount: '0' }), offer('a', 'y')]);
    await scene.catalogue([region('a'), offer('a', 'x', EUR('0.06')), offer('a', 'y')]);
    await scene.catalogue([region('a'), offer('a', 'x', { amount: '0.06' }), offer('a', 'y')]);
    expect((await loadMachinePrices(scene.sql, 1)).rows).toMatchObject([{ price: 0.001, to: null }]);
    const points = await priceHistory(scene.store.db, 1);
    expect(points?.prices.map(({ withdrawn }) => withdrawn)).toEqual([
      null,
      'no_exchange_rate',
      'zero_price',
    ]);
    expect(points && priceLines(points, 'USD').split('\n')[2]).toMatch(
      / {2}withdrawn {2}0\.06 EUR\/hour has no exchange rate$/,
    );
  });

  it.each(['1', '50', '1000'])('of up to %s an hour are stored, but not a hundredth more', async (most) => {
    const hundredthMore = (Number(most) * 1.01).toFixed(2);
    const result = await scene.catalogue(
      [
        region('a'),
        offer('a', 'hourly', { amount: most }),
        offer('a', 'monthly', { price: { amount: String(Number(most) * 730), per: 'month' } }),
        offer('a', 'more', { amount: hundredthMore }),
        offer('a', 'dear', { amount: '999999999', excluded: 'accelerated' }),
      ],
      { limits: { maxHourlyPrice: Number(most) } },
    );
    expect(result).toMatchObject({ outcome: 'changed', counts: { seen: 4, added: 2, rejected: 2 } });
    expect(await scene.sql`select row_key, reason from quarantined_rows order by 1`).toEqual([
      {
        row_key: 'dear@a',
        reason: expect.stringMatching(/^price 999999999 USD per hour is above the limit maxHourlyPrice/),
      },
      { row_key: 'more@a', reason: expect.stringContaining(`price ${hundredthMore} USD per hour`) },
    ]);
  });

  it('that are absurd leave a known machine unchanged', async () => {
    await scene.catalogue([region('a'), ...offers('a', 3)]);
    const before = await scene.rows('machines', 'machine_prices', 'regions');
    const result = await scene.catalogue([
      region('a'),
      offer('a', 'm1', { amount: '60000' }),
      ...offers('a', 3).slice(1),
    ]);
    expect(result).toMatchObject({ outcome: 'unchanged', counts: { seen: 3, changed: 0, rejected: 1 } });
    expect(await scene.rows('machines', 'machine_prices', 'regions')).toEqual(before);
  });
});

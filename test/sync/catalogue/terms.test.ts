/** Terms of price: they are stored with a history, compared, guarded and held like prices. */
import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { heldItems, pendingBatches } from '../../../src/db/held-batches.ts';
import { acceptPrice } from '../../../src/db/prices/prices.ts';
import type { OfferedTerms, StoredTerms } from '../../../src/domain/prices/term.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { previewCatalogue } from '../../../src/sync/catalogue/catalogue.ts';
import { adoptCurrency } from '../../../src/sync/currency.ts';
import { DEFAULT_GUARD_LIMITS } from '../../../src/sync/guards.ts';
import { runs } from '../../support/random.ts';
import { LAX, OPERATOR, offer, offers, openScene, region, type Scene } from '../scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const hourly = (amount: string, currency = 'USD') => ({ price: { amount, per: 'hour', currency } }) as const;
const SPOT: OfferedTerms = { spot: hourly('0.03') };

const stored = async () => {
  const rows = await scene.sql<
    { name: string; terms: StoredTerms | null }[]
  >`select name, terms from machines`;
  const inShort = ({ terms, monthly_cap: cap }: StoredTerms) => [
    ...Object.entries(terms).map(([term, { price }]) => `${term} ${price}`),
    ...(cap ? [`cap ${cap.price}`] : []),
  ];
  return Object.fromEntries(rows.map(({ name, terms }) => [name, terms && inShort(terms).sort()]));
};
const history = () =>
  scene.sql<{ machine: number; spot: string | null; from: string; to: string | null }[]>`
    select machine_id as machine, terms #>> '{terms,spot,source,price,amount}' as spot,
      to_char(valid_from, 'HH24') as from, to_char(valid_to, 'HH24') as to
    from machine_terms order by machine_id, valid_from`;
const version = async () => Number((await scene.sql`select version from regions`)[0]?.version);
const quarantine = () =>
  scene.sql`select row_key as key, code, reason, price from quarantined_rows order by row_key collate "C"`;

describe('terms', () => {
  it('are stored with their effective price and a history without overlaps', async () => {
    const y = offer('a', 'y');
    const x = (terms?: OfferedTerms) => [region('a'), offer('a', 'x', terms && { terms }), y];
    await scene.catalogue([...x({ ...SPOT, reserved_1y: { ...hourly('0.02'), upfront: '87.6' } })]);
    expect(await stored()).toEqual({ x: ['reserved_1y 0.0005', 'spot 0.0005'], y: null });
    await scene.catalogue(x(SPOT));
    await scene.catalogue(x(SPOT));
    await scene.catalogue(x({ spot: hourly('0.024') }));
    await scene.catalogue(x());
    await scene.catalogue(x(SPOT));
    expect(await history()).toEqual([
      { machine: 1, spot: '0.03', from: '01', to: '02' },
      { machine: 1, spot: '0.03', from: '02', to: '04' },
      { machine: 1, spot: '0.024', from: '04', to: '05' },
      { machine: 1, spot: '0.03', from: '06', to: null },
    ]);
    expect(await scene.sql`select from machine_prices`).toHaveLength(2);
  });

  it('raise the version of their region, and write nothing while unchanged', async () => {
    const batch = [region('a'), offer('a', 'x', { terms: SPOT, monthlyCap: '30' }), offer('a', 'y')];
    await scene.catalogue(batch);
    expect(await stored()).toEqual({ x: ['cap 30', 'spot 0.0005'], y: null });
    const before = [await version(), await scene.rows('machines', 'regions', 'machine_terms')];
    expect(await scene.catalogue(batch)).toMatchObject({ outcome: 'unchanged' });
    expect([await version(), await scene.rows('machines', 'regions', 'machine_terms')]).toEqual(before);
    const next = [region('a'), offer('a', 'x', { terms: SPOT, monthlyCap: '31' }), offer('a', 'y')];
    expect(await scene.catalogue(next)).toMatchObject({ outcome: 'changed', counts: { changed: 1 } });
    expect(await version()).toBe(Number(before[0]) + 1);
    expect(await history()).toHaveLength(2);
  });

  it('follow an exchange rate without a row of history, and keep their value without one', async () => {
    const price = { currency: 'EUR' };
    const batch = [region('a'), offer('a', 'x', { price, terms: { spot: hourly('0.03', 'EUR') } })];
    await scene.catalogue(batch, { rates: { EUR: '2' } });
    await scene.catalogue(batch, { rates: { EUR: '4' } });
    expect(await stored()).toEqual({ x: ['spot 0.002'] });
    expect(await scene.catalogue(batch)).toMatchObject({ outcome: 'unchanged' });
    expect(await history()).toHaveLength(1);
  });

  it('are restated when the published currency changes', async () => {
    await scene.catalogue([region('a'), offer('a', 'x', { terms: SPOT, monthlyCap: '30' })]);
    await scene.sql`update lineage set currency = 'USD'`;
    const settings = { CATALOGUE_CURRENCY: 'CHF', CATALOGUE_RATES: { USD: '2' } };
    expect(await adoptCurrency(scene.store, settings, scene.now())).toMatchObject({ outcome: 'changed' });
    expect(await stored()).toEqual({ x: ['cap 60', 'spot 0.001'] });
    expect(await scene.sql`select terms #>> '{terms,spot,price}' as spot from machine_terms`).toEqual([
      { spot: '0.001' },
    ]);
  });

  it('end with their machine, and continue when it returns', async () => {
    const rest = [region('a'), offer('a', 'y')];
    const x = offer('a', 'x', { terms: SPOT });
    await scene.catalogue([...rest, x]);
    for (let run = 0; run < 3; run++) await scene.catalogue(rest);
    await scene.catalogue([...rest, x]);
    expect(await history()).toMatchObject([
      { from: '01', to: '04' },
      { from: '05', to: null },
    ]);
  });

  it('stay in a region whose payload has not changed', async () => {
    const validator = { url: 'http://acme/a', etag: '"1"' };
    await scene.catalogue(
      [region('a'), offer('a', 'x', { terms: SPOT }), { kind: 'validator', validator, regionCode: 'a' }],
      { parseFingerprint: 'one' },
    );
    await scene.catalogue(
      [region('b'), offer('b', 'z'), { kind: 'unmodified', validator, regionCode: 'a' }],
      { parseFingerprint: 'one' },
    );
    expect(await stored()).toEqual({ x: ['spot 0.0005'], z: null });
  });
});

/** One run: the spot price of each machine (0: none), and whether `y` is listed and storage has a price. */
const step = fc.record({
  x: fc.integer({ min: 0, max: 3 }),
  y: fc.integer({ min: 0, max: 3 }),
  isListed: fc.boolean(),
  storage: fc.integer({ min: 0, max: 2 }),
  rate: fc.constantFrom('1', '2'),
});

it('have histories without overlaps, whose open row is what is stored', async () => {
  const machine = (name: string, spot: number) =>
    offer('a', name, spot === 0 ? {} : { terms: { spot: hourly(`0.0${spot}`, 'EUR') } });
  const price = (regionCode: string, amount: number): CatalogueItem => ({
    kind: 'region-price',
    regionCode,
    price: {
      ...{ item: 'block_storage', name: 'ssd', isDefault: true, unit: 'GB', per: 'month', currency: 'EUR' },
      tiers: [{ from: '0', amount: String(amount) }],
    },
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 4 }), async (steps) => {
      await scene.reset();
      for (const { x, y, isListed, storage, rate } of steps)
        await scene.catalogue(
          [
            region('a'),
            region('b'),
            machine('x', x),
            ...(isListed ? [machine('y', y)] : []),
            price('b', 1),
            ...(storage === 0 ? [] : [price('a', storage)]),
          ],
          { limits: LAX, rates: { EUR: rate } },
        );
      const [found] = await scene.sql`
        with spans as (
          select 'm' || machine_id as of, valid_from, valid_to from machine_terms
          union all select 'r' || region_id, valid_from, valid_to from region_prices
        ), stated as (
          select m.id, m.terms #>> '{terms,spot,source,price,amount}' as now, h.terms #>> '{terms,spot,source,price,amount}' as open
          from machines m full join (select * from machine_terms where valid_to is null) h on h.machine_id = m.id
          where m.retired_at is null
          union all
          select r.id, r.prices #>> '{0,source,tiers,0,amount}', h.prices #>> '{0,source,tiers,0,amount}'
          from regions r full join (select * from region_prices where valid_to is null) h on h.region_id = r.id
        )
        select (select count(*)::int from spans s join spans t on s.of = t.of and s.valid_from < t.valid_from
                  and coalesce(s.valid_to > t.valid_from, true)) as overlaps,
          (select count(*)::int from stated where now is distinct from open) as differing`;
      expect(found).toEqual({ overlaps: 0, differing: 0 });
    }),
    { numRuns: runs(5) },
  );
});

describe('a bad term', () => {
  it('is rejected with a reason, and its machine stays', async () => {
    const result = await scene.catalogue([
      region('a'),
      offer('a', 'dear', { terms: { ...SPOT, reserved_1y: hourly('0.31') } }),
      offer('a', 'limit', { amount: '900', terms: { reserved_3y: hourly('1001') } }),
      offer('a', 'negative', { terms: { spot: hourly('-0.01') }, monthlyCap: '-1' }),
      offer('a', 'upfront', { terms: { spot: { ...hourly('0.01'), upfront: '5' } } }),
      offer('a', 'zero', { terms: { spot: hourly('0') }, monthlyCap: '0' }),
      offer('a', 'unrated', { terms: { spot: hourly('0.01', 'EUR') }, monthlyCap: '300' }),
    ]);
    expect(result).toMatchObject({
      outcome: 'changed',
      broken: [],
      counts: { seen: 6, added: 6, rejected: 0 },
    });
    expect(await stored()).toEqual({
      dear: ['spot 0.0005'],
      limit: null,
      negative: null,
      upfront: null,
      zero: null,
      unrated: null,
    });
    expect((await quarantine()).map(({ key, code, reason }) => [key, code, reason])).toEqual([
      [
        'dear@a/reserved_1y',
        'invalid',
        'price exceeds the on-demand price by more than priceRatio; it is 0.31 USD per hour',
      ],
      [
        'limit@a/reserved_3y',
        'price_limit',
        'price 1001 USD per hour is above the limit maxHourlyPrice; a unit may have changed',
      ],
      [
        'negative@a/monthly_cap',
        'invalid',
        'monthly cap must be a decimal that is not negative; it is -1 USD per month',
      ],
      [
        'negative@a/spot',
        'invalid',
        'price must be a decimal that is not negative; it is -0.01 USD per hour',
      ],
      [
        'unrated@a/monthly_cap',
        'invalid',
        'price exceeds the on-demand price by more than priceRatio; it is 300 USD per month',
      ],
      [
        'upfront@a/spot',
        'invalid',
        'price must have no payment upfront; it is 0.01 USD per hour and 5 USD upfront',
      ],
      ['zero@a/monthly_cap', 'invalid', 'price must be above zero; it is 0 USD per month'],
      ['zero@a/spot', 'invalid', 'price must be above zero; it is 0 USD per hour'],
    ]);
  });

  it('that jumps is set aside until an operator accepts it', async () => {
    const batch = (spot: string, cap: string) => [
      region('a'),
      ...offers('a', 30, { terms: SPOT }),
      offer('a', 'x', { terms: { spot: hourly(spot) }, monthlyCap: cap }),
    ];
    await scene.catalogue(batch('0.01', '2'));
    const jumped = [...batch('0.06', '11')].map((item) => item);
    expect(await scene.catalogue(jumped)).toMatchObject({
      outcome: 'unchanged',
      rejected: [{ key: 'x@a/monthly_cap' }, { key: 'x@a/spot', code: 'price_jump' }],
    });
    expect((await stored()).x).toEqual(['cap 2', 'spot 0.000166666666666667']);
    expect(await quarantine()).toMatchObject([
      { key: 'x@a/monthly_cap', price: { amount: '11', per: 'month', currency: 'USD' } },
      { key: 'x@a/spot', price: { amount: '0.06', per: 'hour', currency: 'USD' } },
    ]);
    for (const [key, amount] of [
      ['x@a/spot', '0.06'],
      ['x@a/monthly_cap', '11'],
    ] as const)
      expect(await acceptPrice(scene.store.db, 'acme', key, amount, OPERATOR)).toMatchObject({
        outcome: 'accepted',
      });
    expect(await scene.catalogue(jumped)).toMatchObject({ outcome: 'changed', rejected: [] });
    expect((await stored()).x).toEqual(['cap 11', 'spot 0.001']);
  });
});

describe('a batch', () => {
  it('is held if many terms jump', async () => {
    await scene.catalogue([region('a'), ...offers('a', 10, { terms: { spot: hourly('0.01') } })]);
    const before = await scene.rows('machines', 'machine_terms');
    const result = await scene.catalogue([
      region('a'),
      ...offers('a', 10, { terms: { spot: hourly('0.06') } }),
    ]);
    expect(result).toMatchObject({ outcome: 'held', broken: [{ guard: 'price_ratio', found: 6 }] });
    expect(await scene.rows('machines', 'machine_terms')).toEqual(before);
  });

  it('is held if many machines lose a term, with the terms in its rows and in its preview', async () => {
    const both = { ...SPOT, reserved_1y: { ...hourly('0'), upfront: '262.8' } };
    await scene.catalogue([region('a'), ...offers('a', 10, { terms: both, monthlyCap: '30' })]);
    const next = [region('a'), ...offers('a', 10, { terms: SPOT, monthlyCap: '30' })];
    const result = await scene.catalogue(next);
    expect(result).toMatchObject({ outcome: 'held', broken: [{ guard: 'removed', found: 1 }] });
    const [batch] = await pendingBatches(scene.store.db);
    const items: CatalogueItem[] = [];
    for await (const item of heldItems(scene.store.db, batch?.id ?? 0)) items.push(item as CatalogueItem);
    expect(items.filter(({ kind }) => kind === 'offer')).toEqual(
      next.slice(1).toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)),
    );
    const preview = await previewCatalogue(
      { store: scene.store, sourceId: 'acme', limit: 1 },
      {
        provider: { id: 77, name: 'Acme' },
        items: (async function* () {
          yield* items;
        })(),
        pricing: { currency: 'USD', rates: {} },
        limits: DEFAULT_GUARD_LIMITS,
        now: scene.now,
      },
    );
    expect(preview.totals).toEqual({ facts: 10 });
    expect(preview.rows[0]?.detail).toBe(
      'reserved_1y 0 USD per hour and 262.8 USD upfront → reserved_1y unknown',
    );
  });
});

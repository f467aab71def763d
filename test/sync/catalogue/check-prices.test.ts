/** Prices of machines, terms, regions and plans of databases have one check. It is compared with a simple model. */
import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { acceptPrice } from '../../../src/db/prices/prices.ts';
import type { OfferedPlan } from '../../../src/domain/database-plan.ts';
import type { SourcePrice } from '../../../src/domain/prices/price.ts';
import type { OfferedRegionPrice } from '../../../src/domain/prices/region-price.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { previewCatalogue } from '../../../src/sync/catalogue/catalogue.ts';
import { DEFAULT_GUARD_LIMITS } from '../../../src/sync/guards.ts';
import { runs } from '../../support/random.ts';
import { ACME, LAX, OPERATOR, offer, offers, openScene, region, regionPrice, type Scene } from '../scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const DISK: OfferedRegionPrice = {
  ...{ item: 'block_storage', name: 'ssd', isDefault: true, unit: 'GB', per: 'month', currency: 'EUR' },
  tiers: [{ from: '0', amount: '10' }],
};
const PLAN: OfferedPlan = {
  ...{ engine: 'mysql', name: 'p', nodes: 1, cpu: 2, ram: 4, ramUnit: 'Binary', storage: 80 },
  price: { amount: '10', per: 'month', currency: 'EUR' },
};
const planOf = (regionCode: string, plan: OfferedPlan): CatalogueItem => ({
  kind: 'database-plan',
  regionCode,
  plan,
});
const quarantined = async () => {
  const rows = await scene.sql<{ key: string; price: SourcePrice }[]>`
    select row_key as key, price from quarantined_rows where code = 'price_jump' order by row_key collate "C"`;
  return rows.map(({ key, price }) => [key, price] as const);
};

/** One price of each kind, with the key that accepts it. A term states its price per hour, so its period is no other price. */
const KINDS: readonly (readonly [kind: string, key: string, item: (price: SourcePrice) => CatalogueItem])[] =
  [
    ['a machine', 'x@a', (price) => offer('a', 'x', { price })],
    [
      'a region',
      'a/block_storage/ssd',
      ({ amount, ...price }) => regionPrice('a', { ...DISK, ...price, tiers: [{ from: '0', amount }] }),
    ],
    ['a plan of a database', 'a/database/mysql/p/1', (price) => planOf('a', { ...PLAN, price })],
  ];
const RATES = { EUR: '1' };

describe.each(KINDS)('the price of %s', (_, key, item) => {
  const batch = (amount: string, per: SourcePrice['per'], currency = 'EUR') => [
    region('a'),
    ...offers('a', 20),
    item({ amount, per, currency }),
  ];
  const run = (...price: Parameters<typeof batch>) => scene.catalogue(batch(...price), { rates: RATES });

  it('that was accepted for a month is not accepted for an hour', async () => {
    await run('1', 'month');
    await run('10', 'month');
    await acceptPrice(scene.store.db, 'acme', key, '10', OPERATOR);
    expect(await run('10', 'month')).toMatchObject({ outcome: 'changed', rejected: [] });
    await run('1', 'month');
    expect(await run('10', 'hour')).toMatchObject({ rejected: [{ key, code: 'price_jump' }] });
  });

  it('jumps in another currency too', async () => {
    await run('0.05', 'hour');
    expect(await run('50', 'hour', 'USD')).toMatchObject({
      outcome: 'unchanged',
      rejected: [{ key, code: 'price_jump', price: { amount: '50', per: 'hour', currency: 'USD' } }],
    });
    expect(await run('0.06', 'hour', 'USD')).toMatchObject({ outcome: 'changed', rejected: [] });
  });

  it('stays while its new currency has no exchange rate', async () => {
    await run('0.05', 'hour');
    await run('50', 'hour', 'CHF');
    expect(await run('50', 'hour', 'USD')).toMatchObject({ rejected: [{ key, code: 'price_jump' }] });
  });
});

it('all jumps of a region are shown at once, and each needs one decision', async () => {
  const batch = (factor: number) => [
    region('a'),
    ...offers('a', 10),
    ...['hdd', 'nvme', 'ssd'].map((name) =>
      regionPrice('a', {
        ...DISK,
        name,
        isDefault: name === 'ssd',
        tiers: [{ from: '0', amount: `${factor}` }],
      }),
    ),
  ];
  const limits = { smallCount: 3 };
  await scene.catalogue(batch(1), { rates: RATES });
  await scene.catalogue(batch(10), { rates: RATES, limits });
  const keys = ['hdd', 'nvme', 'ssd'].map((name) => `a/block_storage/${name}`);
  expect((await quarantined()).map(([key]) => key)).toEqual(keys);
  for (const key of keys) await acceptPrice(scene.store.db, 'acme', key, '10', OPERATOR);
  expect(await scene.catalogue(batch(10), { rates: RATES, limits })).toMatchObject({
    outcome: 'changed',
    rejected: [],
  });
});

it('a jump for a large quantity is shown, and needs a decision of its own', async () => {
  const batch = (...tiers: OfferedRegionPrice['tiers']) => [
    region('a'),
    ...offers('a', 10),
    regionPrice('a', {
      ...{ item: 'traffic_out', name: 'net', isDefault: true, unit: 'GB', per: undefined, currency: 'EUR' },
      tiers,
    }),
  ];
  const run = (...tiers: OfferedRegionPrice['tiers']) => scene.catalogue(batch(...tiers), { rates: RATES });
  const free = { from: '0', amount: '0' };
  const paid = { from: '100', amount: '0.09' };
  await run(free, paid, { from: '10240', amount: '0.085' });
  const wrong = { from: '10240', amount: '85' };
  const key = 'a/traffic_out/net/10240';
  expect(await run(free, paid, wrong)).toMatchObject({ outcome: 'unchanged', rejected: [{ key }] });
  expect(await quarantined()).toEqual([[key, { amount: '85', per: 'month', currency: 'EUR' }]]);
  // A new step is compared with the price that its quantity had.
  expect(await run(free, paid, { from: '2048', amount: '85' })).toMatchObject({
    rejected: [{ key: 'a/traffic_out/net/2048' }],
  });
  expect(await run(free, paid, { from: '2048', amount: '0.08' })).toMatchObject({
    outcome: 'changed',
    rejected: [],
  });
  await run(free, paid, wrong);
  await acceptPrice(scene.store.db, 'acme', key, '85', OPERATOR);
  expect(await run(free, paid, wrong)).toMatchObject({ outcome: 'changed', rejected: [] });
  // Both steps jump at once.
  const both = [free, { from: '100', amount: '9' }, { from: '10240', amount: '1' }];
  expect(await run(...both)).toMatchObject({ rejected: [{ key: 'a/traffic_out/net' }, { key }] });
});

it('many jumps of a region hold the batch, and its preview has them', async () => {
  const batch = (amount: string) => [
    region('a'),
    ...offers('a', 10),
    ...['hdd', 'nvme', 'ssd'].map((name) =>
      regionPrice('a', { ...DISK, name, isDefault: name === 'ssd', tiers: [{ from: '0', amount }] }),
    ),
  ];
  await scene.catalogue(batch('1'), { rates: RATES });
  const detail = '3 of 3 rows would change the price of a region by more than a factor of 5, one by 10.0';
  expect(await scene.catalogue(batch('10'), { rates: RATES })).toMatchObject({
    outcome: 'held',
    broken: [{ guard: 'price_ratio', found: 10, limit: 5, detail }],
  });
  const [held] = await scene.sql`select worst from held_batches where status = 'pending'`;
  expect(held?.worst.rows[0]).toMatchObject({ change: 'price', name: 'block_storage/hdd', place: 'a' });
  const preview = await previewCatalogue(
    { store: scene.store, sourceId: 'acme', limit: 1 },
    {
      provider: ACME,
      items: (async function* () {
        yield* batch('10');
      })(),
      pricing: { currency: 'USD', rates: RATES },
      limits: DEFAULT_GUARD_LIMITS,
      now: scene.now,
    },
  );
  expect(preview).toMatchObject({
    totals: { price: 3 },
    rows: [{ detail: '1 EUR per GB per month → 10 EUR per GB per month' }],
  });
  await scene.catalogue(batch('10'), { rates: RATES, approved: true });
  const [stored] = await scene.sql`select prices #>> '{0,source,tiers,0,amount}' as amount from regions`;
  expect(stored).toEqual({ amount: '10' });
});

describe('two sources with the same plan', () => {
  const run = (source: string, amount = '10') => {
    const plan = { ...PLAN, price: { ...PLAN.price, amount } };
    const items = [region('a'), offer('a', source), planOf('a', plan)];
    return scene.catalogue(items, { source, rates: RATES });
  };
  const stored = async () =>
    (
      await scene.sql`
        select p.source_id as source, r.version::int from database_plans p join regions r on r.id = p.region_id`
    )[0];

  it('do not publish its region again in each run', async () => {
    await run('one');
    await run('two');
    const first = await stored();
    for (const source of ['one', 'two', 'one', 'two'])
      expect(await run(source)).toMatchObject({ outcome: 'unchanged' });
    expect(await stored()).toEqual(first);
  });

  it('pass it on if its source does not read the region any more', async () => {
    await run('one');
    for (let read = 0; read < 3; read++) await run('two');
    expect(await stored()).toMatchObject({ source: 'two' });
    expect(await run('two', '11')).toMatchObject({ outcome: 'changed' });
  });
});

/* The model. */

const PER_MINUTE = { minute: 1, hour: 60, month: 43_800 } as const;
/** A new exchange rate alone is no jump. No pair of the amounts differs by exactly the limit in two currencies. */
const OLD_RATES: Readonly<Record<string, number>> = { USD: 1, EUR: 2.1 };
const NEW_RATES: Readonly<Record<string, number>> = { USD: 1, EUR: 3.3 };
const LIMIT = 5;
const inText = (rates: Readonly<Record<string, number>>) => ({ EUR: String(rates.EUR) });

type Kind = 'machine' | 'term' | 'region' | 'plan';
interface Stated {
  readonly kind: Kind;
  readonly regionCode: string;
  /** As in the quarantine. */
  readonly key: string;
  /** As among accepted prices. */
  readonly name: string;
  readonly type: string;
  /** What keeps all its last prices if one of them jumps. */
  readonly keeper: string;
}

const REGIONS = ['a', 'b'];
const places: readonly Stated[] = REGIONS.flatMap((regionCode) => [
  ...['m1', 'm2', 'm3'].map((name) => ({
    ...{ kind: 'machine' as const, regionCode, name, type: name },
    ...{ key: `${name}@${regionCode}`, keeper: `${name}@${regionCode}` },
  })),
  ...['t1', 't2'].flatMap((type) =>
    ['monthly_cap', 'spot'].map((term) => ({
      ...{ kind: 'term' as const, regionCode, name: `${type}/${term}`, type },
      ...{ key: `${type}@${regionCode}/${term}`, keeper: `terms of ${type}@${regionCode}` },
    })),
  ),
  ...['block_storage/hdd', 'block_storage/ssd', 'ipv4/ip', 'traffic_out/net'].map((name) => ({
    ...{ kind: 'region' as const, regionCode, name, type: name },
    ...{ key: `${regionCode}/${name}`, keeper: regionCode },
  })),
  ...['p1', 'p2', 'p3'].map((plan) => ({
    ...{ kind: 'plan' as const, regionCode, name: `database/mysql/${plan}/1`, type: plan },
    ...{ key: `${regionCode}/database/mysql/${plan}/1`, keeper: `${plan} in ${regionCode}` },
  })),
]);
const SEEN = places.filter(({ kind }) => kind === 'machine').length + REGIONS.length * 2;
const rowsOf = (kind: Kind) =>
  kind === 'machine' || kind === 'term' ? SEEN : places.filter((place) => place.kind === kind).length;

const amounts = fc.constantFrom('1', '2', '6', '10', '30', '60', '100');
const priceOf = ({ kind, name }: Stated): fc.Arbitrary<SourcePrice> =>
  fc.record({
    amount: amounts,
    // Amounts per hour and per minute stay below the limit of a price.
    per: name.endsWith('monthly_cap') || name.endsWith('net') ? fc.constant('month') : periodOf(kind),
    // The terms of a machine have its currency.
    currency: kind === 'term' ? fc.constant('EUR') : fc.constantFrom('EUR', 'EUR', 'USD'),
  });
const periodOf = (kind: Kind) =>
  kind === 'term' ? fc.constant('hour' as const) : fc.constantFrom('hour' as const, 'month' as const);

type Accepted = 'exactly' | 'for another period' | 'in another currency' | 'no';
const change = (place: Stated) =>
  fc.record({
    before: priceOf(place),
    after: fc.option(priceOf(place), { nil: undefined, freq: 2 }),
    accepted: fc.constantFrom<Accepted[]>('exactly', 'for another period', 'in another currency', 'no', 'no'),
  });
const histories = fc.record({
  changes: fc.tuple(...places.map(change)),
  soldOut: fc.subarray(['m1@a', 'm2@b', 't1@a']),
  smallCount: fc.constantFrom(0, 1, 2, 3),
});

/** A price as text, e.g. `10 EUR month`. */
const show = ({ amount, per, currency }: SourcePrice) => `${Number(amount)} ${currency} ${per}`;

function items(prices: readonly SourcePrice[], soldOut: readonly string[]): CatalogueItem[] {
  const priced = new Map(places.map(({ key }, index) => [key, prices[index] ?? expect.unreachable()]));
  const of = (key: string) => priced.get(key) ?? expect.unreachable();
  const stock = (key: string) => (soldOut.includes(key) ? { excluded: 'sold_out' as const } : {});
  return REGIONS.flatMap((code) => [
    region(code),
    ...['m1', 'm2', 'm3'].map((name) =>
      offer(code, name, { price: of(`${name}@${code}`), ...stock(`${name}@${code}`) }),
    ),
    ...['t1', 't2'].map((name) =>
      offer(code, name, {
        price: { amount: '90', per: 'hour', currency: 'EUR' },
        terms: { spot: { price: of(`${name}@${code}/spot`) } },
        monthlyCap: of(`${name}@${code}/monthly_cap`).amount,
        ...stock(`${name}@${code}`),
      }),
    ),
    ...(['block_storage/hdd', 'block_storage/ssd', 'ipv4/ip', 'traffic_out/net'] as const).map((each) => {
      const [item, name = ''] = each.split('/') as [OfferedRegionPrice['item'], string];
      const { amount, per, currency } = of(`${code}/${each}`);
      return regionPrice(code, {
        ...{ item, name, isDefault: name !== 'hdd', unit: item === 'ipv4' ? 'address' : 'GB', currency },
        per: item === 'traffic_out' ? undefined : per,
        tiers: [
          { from: '0', amount: '0' },
          { from: '10', amount },
        ],
      });
    }),
    ...['p1', 'p2', 'p3'].map((name) =>
      planOf(code, { ...PLAN, name, price: of(`${code}/database/mysql/${name}/1`) }),
    ),
  ]);
}

/** Returns all stored prices by their keys. */
async function storedPrices(): Promise<Record<string, string>> {
  const rows = await scene.sql<{ key: string; amount: string; per: SourcePrice['per']; currency: string }[]>`
    select m.name || '@' || r.code as key, source_amount::text as amount, source_per as per, source_currency as currency
    from machines m join regions r on r.id = m.region_id where m.name like 'm%'
    union all
    select m.name || '@' || r.code || '/' || key, value #>> '{source,price,amount}', value #>> '{source,price,per}',
      value #>> '{source,price,currency}'
    from machines m join regions r on r.id = m.region_id cross join lateral jsonb_each(m.terms -> 'terms')
    union all
    select m.name || '@' || r.code || '/monthly_cap', terms #>> '{monthly_cap,source,amount}', 'month',
      terms #>> '{monthly_cap,source,currency}'
    from machines m join regions r on r.id = m.region_id where m.name like 't%'
    union all
    select r.code || '/' || (p ->> 'item') || '/' || (p ->> 'name'), p #>> '{source,tiers,1,amount}',
      coalesce(p #>> '{source,per}', 'month'), p #>> '{source,currency}'
    from regions r cross join lateral jsonb_array_elements(r.prices) p
    union all
    select r.code || '/database/' || p.engine || '/' || p.name || '/' || p.nodes, source_amount::text, source_per, source_currency
    from database_plans p join regions r on r.id = p.region_id`;
  return Object.fromEntries(rows.map(({ key, ...price }) => [key, show(price)]));
}

interface Row extends Stated {
  readonly before: SourcePrice;
  readonly after: SourcePrice;
  readonly isSoldOut: boolean;
  readonly ratio: number;
  readonly jumps: boolean;
}

function ratioOf(before: SourcePrice, after: SourcePrice): number {
  const [one, other] =
    before.currency === after.currency
      ? [Number(before.amount), Number(after.amount)]
      : [
          Number(before.amount) * (OLD_RATES[before.currency] ?? 0),
          Number(after.amount) * (NEW_RATES[after.currency] ?? 0),
        ];
  // Crosswise, so that equal factors are equal numbers.
  const [from, to] = [one * PER_MINUTE[after.per], other * PER_MINUTE[before.per]];
  return Math.max(to / from, from / to);
}

/** What a batch must lead to. */
function expected(rows: readonly Row[], smallCount: number, rejectedShare: number) {
  const jumping = rows.filter(({ jumps }) => jumps);
  const counted = jumping.filter(({ isSoldOut }) => !isSoldOut);
  const many = (['machine', 'term', 'region', 'plan'] as const).filter((kind) => {
    const own = counted.filter((row) => row.kind === kind);
    const keepers = kind === 'term' ? new Set(own.map(({ keeper }) => keeper)).size : own.length;
    const types = new Set(own.map(({ type }) => type)).size;
    return types > smallCount && keepers / rowsOf(kind) > rejectedShare;
  });
  const keeping = new Set(jumping.map(({ keeper }) => keeper));
  return {
    broken: many.map((kind) =>
      Math.max(...counted.filter((row) => row.kind === kind).map(({ ratio }) => ratio)),
    ),
    quarantine: counted.map(({ key, after }) => [key, show(after)] as const),
    stored: Object.fromEntries(
      rows.map(({ key, keeper, before, after }) => [key, show(keeping.has(keeper) ? before : after)]),
    ),
  };
}

it('any prices of all kinds are stored, quarantined, held and accepted as the model says', async () => {
  const outcomes = { held: 0, aside: 0, stored: 0 };
  await fc.assert(
    fc.asyncProperty(histories, async ({ changes, soldOut, smallCount }) => {
      await scene.reset();
      const limits = { ...LAX, maxHourlyPrice: 1e9, priceRatio: LIMIT, rejectedShare: 0.25, smallCount };
      const before = changes.map((each) => each.before);
      const after = changes.map((each) => each.after ?? each.before);
      await scene.catalogue(items(before, []), { rates: inText(OLD_RATES), limits: LAX });
      const was = await storedPrices();
      expect(was).toEqual(
        Object.fromEntries(places.map(({ key }, i) => [key, show(before[i] as SourcePrice)])),
      );

      const rows = places.map((place, index): Row => {
        const [old, price] = [before[index], after[index]] as [SourcePrice, SourcePrice];
        const ratio = ratioOf(old, price);
        const isAccepted = changes[index]?.accepted === 'exactly';
        const isSoldOut = soldOut.includes(place.key.split('/')[0] ?? '') && place.key.includes('@');
        return { ...place, before: old, after: price, isSoldOut, ratio, jumps: ratio > LIMIT && !isAccepted };
      });
      for (const [index, { regionCode, name, after: price }] of rows.entries()) {
        const how = changes[index]?.accepted;
        if (how === undefined || how === 'no') continue;
        const per = how === 'for another period' ? 'minute' : price.per;
        const currency = how === 'in another currency' ? 'GBP' : price.currency;
        await scene.sql`
          insert into accepted_prices (source_id, region_code, name, amount, per, currency, accepted_by)
          values ('acme', ${regionCode}, ${name}, ${price.amount}, ${per}, ${currency}, 'ada')`;
      }
      const want = expected(rows, smallCount, limits.rejectedShare);
      const run = () => scene.catalogue(items(after, soldOut), { rates: inText(NEW_RATES), limits });
      const result = await run();
      expect(result.broken.map(({ guard }) => guard)).toEqual(want.broken.map(() => 'price_ratio'));
      for (const [index, { found }] of result.broken.entries())
        expect(found).toBeCloseTo(want.broken[index] ?? 0, 6);
      if (want.broken.length > 0) {
        outcomes.held += 1;
        expect(result.outcome).toBe('held');
        expect(await storedPrices()).toEqual(was);
        return;
      }
      outcomes[want.quarantine.length > 0 ? 'aside' : 'stored'] += 1;
      expect((await quarantined()).map(([key, price]) => [key, show(price)])).toEqual(
        want.quarantine.toSorted(([one], [other]) => (one < other ? -1 : 1)),
      );
      expect(await storedPrices()).toEqual(want.stored);
      expect(await run()).toMatchObject({ outcome: 'unchanged' });
      // One decision for each shown price is enough.
      for (const [key, price] of await quarantined())
        expect(await acceptPrice(scene.store.db, 'acme', key, price.amount, OPERATOR)).toMatchObject({
          outcome: 'accepted',
        });
      await run();
      const left = rows.map((row) => ({ ...row, jumps: row.jumps && row.isSoldOut }));
      expect(await storedPrices()).toEqual(expected(left, smallCount, limits.rejectedShare).stored);
      expect(await quarantined()).toEqual([]);
    }),
    { numRuns: runs(12), endOnFailure: true },
  );
  expect(Math.min(...Object.values(outcomes).slice(0, 2))).toBeGreaterThan(0);
});

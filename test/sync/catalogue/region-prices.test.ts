/** Prices of regions: they are checked, stored with a history, published, held and undone with their batch. */
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { heldItems, pendingBatches } from '../../../src/db/held-batches.ts';
import { acceptPrice } from '../../../src/db/prices/prices.ts';
import type { OfferedRegionPrice } from '../../../src/domain/prices/region-price.ts';
import { readColumns } from '../../../src/snapshot/document/columns.ts';
import { loadRegion } from '../../../src/snapshot/document/load.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { adoptCurrency } from '../../../src/sync/currency.ts';
import { OPERATOR, offer, offers, openScene, region, regionPrice, type Scene } from '../scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const DISK: OfferedRegionPrice = {
  item: 'block_storage',
  name: 'ssd',
  isDefault: true,
  unit: 'GB',
  per: 'month',
  currency: 'USD',
  tiers: [{ from: '0', amount: '0.0438' }],
};
const TRAFFIC: OfferedRegionPrice = {
  item: 'traffic_out',
  name: 'internet',
  isDefault: true,
  unit: 'GB',
  per: undefined,
  currency: 'USD',
  tiers: [
    { from: '0', amount: '0' },
    { from: '1000', amount: '0.01' },
  ],
};
const batch = (...prices: OfferedRegionPrice[]) => [
  region('a'),
  region('b'),
  offer('a', 'x'),
  regionPrice('b', DISK),
  ...prices.map((price) => regionPrice('a', price)),
];

const stored = async (code = 'a') => {
  const [row] = await scene.sql`select prices, version::int from regions where code = ${code}`;
  return [
    row?.prices?.map(({ name, tiers }: { name: string; tiers: unknown }) => [name, tiers]),
    row?.version,
  ];
};
const history = () =>
  scene.sql`select prices -> 0 #>> '{source,tiers,0,amount}' as amount, to_char(valid_from, 'HH24') as from,
    to_char(valid_to, 'HH24') as to from region_prices where region_id = 1 order by valid_from`;
const quarantine = () =>
  scene.sql`select row_key as key, code, reason from quarantined_rows order by row_key collate "C"`;

it('do not change if the source lists them in another order', async () => {
  const other = { ...DISK, name: 'hdd', isDefault: false };
  await scene.catalogue(batch(DISK, TRAFFIC, other));
  const before = await stored();
  const again = await scene.catalogue(batch(other, TRAFFIC, DISK));
  expect(again).toMatchObject({ outcome: 'unchanged' });
  expect(await stored()).toEqual(before);
});

it('are published per minute or unit, with a history, and raise the version of their region', async () => {
  await scene.catalogue(batch(DISK, TRAFFIC));
  const [shown, version] = await stored();
  expect(shown).toEqual([
    ['ssd', [{ from: '0', price: '0.000001' }]],
    [
      'internet',
      [
        { from: '0', price: '0' },
        { from: '1000', price: '0.01' },
      ],
    ],
  ]);
  expect(await scene.catalogue(batch(DISK, TRAFFIC))).toMatchObject({ outcome: 'unchanged' });
  const dearer = { ...DISK, tiers: [{ from: '0', amount: '0.0876' }] };
  expect(await scene.catalogue(batch(dearer, TRAFFIC))).toMatchObject({ outcome: 'changed' });
  expect(await stored()).toEqual([
    [['ssd', [{ from: '0', price: '0.000002' }]], expect.anything()],
    Number(version) + 1,
  ]);
  const { columns } = (await loadRegion(scene.store.sql, 1)) ?? expect.unreachable();
  expect(readColumns(columns.body)?.regionPrices).toMatchObject([
    { item: 'block_storage', per: 'month', tiers: [{ from: '0', price: '0.000002' }] },
    { item: 'traffic_out', unit: 'GB', isDefault: true },
  ]);
  // The batch still states prices of another region.
  await scene.catalogue(batch());
  expect((await stored())[0]).toBeUndefined();
  await scene.catalogue(batch(DISK));
  expect(await history()).toEqual([
    { amount: '0.0438', from: '01', to: '03' },
    { amount: '0.0876', from: '03', to: '04' },
    { amount: '0.0438', from: '05', to: null },
  ]);
});

it('of an item whose prices could not be read stay, also in a region without other prices', async () => {
  await scene.catalogue(batch(DISK, TRAFFIC));
  const [a, b] = [await stored('a'), await stored('b')];
  const unread: CatalogueItem = { kind: 'unread-prices', items: ['block_storage'] };
  const partly = [region('a'), region('b'), offer('a', 'x'), regionPrice('a', TRAFFIC), unread];
  expect(await scene.catalogue(partly)).toMatchObject({ outcome: 'unchanged' });
  expect([await stored('a'), await stored('b')]).toEqual([a, b]);
  // Prices that were read without traffic remove it.
  await scene.catalogue(batch(DISK));
  expect((await stored('a'))[0]).toEqual([['ssd', expect.anything()]]);
});

it('follow an exchange rate, and a new published currency, without a row of history', async () => {
  const prices = batch({ ...DISK, currency: 'EUR' });
  await scene.catalogue(prices, { rates: { EUR: '1' } });
  await scene.catalogue(prices, { rates: { EUR: '2' } });
  expect((await stored())[0]).toEqual([['ssd', [{ from: '0', price: '0.000002' }]]]);
  expect(await history()).toHaveLength(1);
  await scene.sql`update lineage set currency = 'USD'`;
  const settings = { CATALOGUE_CURRENCY: 'CHF', CATALOGUE_RATES: { USD: '1', EUR: '3' } };
  expect(await adoptCurrency(scene.store, settings, scene.now())).toMatchObject({ outcome: 'changed' });
  expect((await stored())[0]).toEqual([['ssd', [{ from: '0', price: '0.000003' }]]]);
});

it.each<[string, OfferedRegionPrice[], string]>([
  [
    'without a tier from 0',
    [{ ...DISK, tiers: [{ from: '1', amount: '1' }] }],
    'the first tier must be from 0; it is 1',
  ],
  [
    'with a negative amount',
    [{ ...DISK, tiers: [{ from: '0', amount: '-1' }] }],
    'a tier must have decimals that are not negative; it is -1 from 0',
  ],
  [
    'with unsorted tiers',
    [{ ...DISK, tiers: ['0', '5', '5'].map((from) => ({ from, amount: '1' })) }],
    'tiers must ascend; it is 5 after a larger one',
  ],
  ['without a default', [{ ...DISK, isDefault: false }], 'one price must be the default; it is 0'],
  ['with two defaults', [DISK, { ...DISK, name: 'hdd' }], 'one price must be the default; it is 2'],
  ['with a repeated name', [DISK, { ...DISK, isDefault: false }], 'a name must occur once'],
  ['of traffic by time', [{ ...TRAFFIC, per: 'hour' }], 'only traffic has no period; it is hour'],
  ['of addresses by GB', [{ ...DISK, item: 'ipv4' }], 'unit does not fit ipv4; it is GB'],
])('%s are rejected, and their region keeps its last ones', async (_, bad, reason) => {
  await scene.catalogue(batch(DISK));
  const before = await stored();
  const result = await scene.catalogue(batch(...bad));
  expect(result).toMatchObject({ outcome: 'unchanged', broken: [] });
  expect(await stored()).toEqual(before);
  expect(await quarantine()).toMatchObject([{ code: 'invalid', reason }]);
});

it('of an unknown region are rejected', async () => {
  await scene.catalogue([...batch(DISK), regionPrice('z', DISK)]);
  expect(await quarantine()).toMatchObject([{ key: 'z/block_storage/ssd', code: 'unknown_region' }]);
});

it('that jump are set aside until an operator accepts them', async () => {
  await scene.catalogue(batch(DISK));
  const jump = batch({ ...DISK, per: 'hour', tiers: [{ from: '0', amount: '0.0438' }] });
  expect(await scene.catalogue(jump)).toMatchObject({ outcome: 'unchanged', broken: [] });
  expect(await quarantine()).toMatchObject([{ key: 'a/block_storage/ssd', code: 'price_jump' }]);
  const accepted = await acceptPrice(scene.store.db, 'acme', 'a/block_storage/ssd', '0.0438', OPERATOR);
  expect(accepted).toMatchObject({ outcome: 'accepted' });
  expect(await scene.catalogue(jump)).toMatchObject({ outcome: 'changed', rejected: [] });
  expect((await stored())[0]).toEqual([['ssd', [{ from: '0', price: '0.00073' }]]]);
});

it('are part of a held batch', async () => {
  await scene.catalogue([...batch(DISK), ...offers('a', 20)]);
  const next = batch({ ...DISK, tiers: [{ from: '0', amount: '0.05' }] }, TRAFFIC);
  expect(await scene.catalogue(next)).toMatchObject({ outcome: 'held' });
  const [held] = await pendingBatches(scene.store.db);
  const items: CatalogueItem[] = [];
  for await (const each of heldItems(scene.store.db, held?.id ?? 0)) items.push(each as CatalogueItem);
  const prices = (list: readonly CatalogueItem[]) => list.filter(({ kind }) => kind === 'region-price');
  expect(prices(items)).toEqual(JSON.parse(JSON.stringify(prices(next))));
});

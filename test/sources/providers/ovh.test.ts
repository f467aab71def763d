import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/providers/ovh.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { fates, readCatalogue } from '../../support/read-catalogue.ts';

const CATALOG = '/v1/order/catalog/public/cloud';
const hour = (price: unknown) => ({ price, intervalUnit: 'hour', capacities: ['consumption'] });
const region = (...values: string[]) => [{ name: 'region', values }];

function addon(planCode: string, fields: object = {}, blobs: object = {}): object {
  const technical = { cpu: { cores: 2 }, memory: { size: 8 }, os: { family: 'linux' } };
  return {
    planCode,
    product: 'publiccloud-instance',
    pricings: [hour(5080000)],
    configurations: region('GRA9'),
    blobs: { tags: ['active'], technical, ...blobs },
    ...fields,
  };
}

async function itemsOf(addons: object[], currencyCode = 'EUR', base = '', ovhSubsidiary = 'IE') {
  await using upstream = await fakeUpstream();
  upstream.expect(
    { path: CATALOG, query: { ovhSubsidiary } },
    { json: { locale: { currencyCode }, addons } },
  );
  return await readCatalogue(adapter, upstream.url + base);
}

const machines = (items: readonly CatalogueItem[]) =>
  items
    .flatMap((item) => (item.kind === 'offer' ? [`${item.offer.name}@${item.offer.regionCode}`] : []))
    .sort();

const technical = { cpu: { cores: 2 }, memory: { size: 8 } };

describe('an instance of OVH', () => {
  it.each<[string, object, string[]]>([
    ['is offered where its configurations say', addon('b3-8.consumption'), ['offered']],
    [
      'is deprecated when it is tagged so',
      addon('b2-7.consumption', {}, { tags: ['active', 'legacy'] }),
      ['deprecated'],
    ],
    ['is deprecated when it is not active', addon('b1-7.consumption', {}, { tags: [] }), ['deprecated']],
    [
      'is unavailable before its time',
      addon('b4-8.consumption', {}, { tags: ['coming_soon'] }),
      ['unavailable'],
    ],
    [
      'is licensed by its system',
      addon('w-8.consumption', {}, { technical: { ...technical, os: { family: 'windows' } } }),
      ['licensed'],
    ],
    ['is licensed by its name', addon('win-b3-8.consumption', {}, { technical }), ['licensed']],
    [
      'is accelerated by its GPU',
      addon('l4-90.consumption', {}, { technical: { ...technical, gpu: { number: 1 } } }),
      ['accelerated'],
    ],
    [
      'has no GPU where there are none of them',
      addon('b3-8.consumption', {}, { technical: { ...technical, gpu: { number: 0 } } }),
      ['offered'],
    ],
    ['is not published for nothing', addon('d2-2.consumption', { pricings: [hour(0)] }), ['zero_price']],
    ['is rejected without the price of an hour', addon('bm-s1.consumption', { pricings: [] }), ['rejected']],
    [
      'is rejected with two prices',
      addon('b3-8.consumption', { pricings: [hour(1), hour(2)] }),
      ['rejected'],
    ],
    [
      'is offered when it has the same price twice',
      addon('b3-8.consumption', { pricings: [hour(1), hour(1)] }),
      ['offered'],
    ],
    [
      'is rejected where nothing says where it is sold',
      addon('c3-4.consumption', { configurations: [] }),
      ['rejected'],
    ],
    [
      'is not asked where it is sold when it is not published',
      addon('win-c3-4.consumption', { configurations: [] }),
      [],
    ],
    ['is none when nothing describes it any more', addon('vps-ssd-1.consumption', { blobs: null }), []],
    [
      'is none when it is another product',
      addon('volume.consumption', { product: 'publiccloud-volume' }),
      [],
    ],
    ['is none when it is paid otherwise', addon('b3-8.savings-plan'), []],
  ])('%s', async (_, row, expected) => {
    // Beside a machine that is always there: a catalogue without any would be none.
    const items = await itemsOf([addon('x1-8.consumption', { configurations: region('SBG5') }), row]);
    expect(fates(items).toSorted()).toEqual([...expected, 'offered'].toSorted());
  });

  it.each([
    [6810000, '0.0681'],
    [1, '0.00000001'],
    [1_234_567_890_000, '12345.6789'],
    ['5080000', '0.0508'],
  ])('costs so many units of 10^-8: %s', async (price, amount) => {
    expect(await itemsOf([addon('b3-8.consumption', { pricings: [hour(price)] })])).toContainEqual({
      kind: 'offer',
      offer: {
        regionCode: 'GRA9',
        name: 'b3-8',
        cpu: 2,
        ram: 8,
        ramUnit: 'Decimal',
        price: { amount, per: 'hour', currency: 'EUR' },
      },
    });
  });

  it('is sold where the addon of its month says, but at the price of that kind of place', async () => {
    const items = await itemsOf([
      addon('metal.b3-8.consumption', { configurations: [] }),
      addon('metal.b3-8.monthly', { configurations: region('BHS5', 'GRA9'), blobs: null, pricings: [] }),
      addon('metal.b3-8.monthly.postpaid', { configurations: region('GRA9', 'SBG5'), pricings: [] }),
      addon('metal.b3-8.consumption.3AZ', {
        pricings: [hour(6100000)],
        configurations: region('EU-WEST-PAR'),
      }),
      addon('metal.b3-8.consumption.LZ.EU', { pricings: [hour(9300000)], configurations: [] }),
    ]);
    expect(machines(items)).toEqual([
      'metal.b3-8@BHS5',
      'metal.b3-8@EU-WEST-PAR',
      'metal.b3-8@GRA9',
      'metal.b3-8@SBG5',
    ]);
    expect(items).toContainEqual(
      expect.objectContaining({
        offer: expect.objectContaining({
          regionCode: 'EU-WEST-PAR',
          price: expect.objectContaining({ amount: '0.061' }),
        }),
      }),
    );
    expect(fates(items)).not.toContain('rejected');
  });

  it('is rejected by its name when the regions of its month cannot be read', async () => {
    const items = await itemsOf([
      addon('b3-8.consumption', { configurations: [] }),
      addon('b3-8.monthly', { configurations: [{ name: 'region', values: 'all' }] }),
    ]);
    expect(items.filter((item) => item.kind === 'rejected')).toMatchObject([
      { key: 'b3-8.monthly', name: 'b3-8', reason: expect.stringContaining('configurations[0].values') },
      { key: 'b3-8.consumption', name: 'b3-8', reason: expect.stringContaining('in which regions') },
    ]);
  });

  it('that comes twice is yielded twice, which the sync refuses', async () => {
    const items = await itemsOf([addon('b3-8.consumption'), addon('b3-8.consumption')]);
    expect(machines(items)).toEqual(['b3-8@GRA9', 'b3-8@GRA9']);
  });
});

describe('the catalogue of OVH', () => {
  it('is that of the subsidiary which the URL names, in that one’s currency', async () => {
    const items = await itemsOf([addon('b3-8.consumption')], 'USD', '/?ovhSubsidiary=US', 'US');
    expect(items).toContainEqual(
      expect.objectContaining({
        offer: expect.objectContaining({ price: { amount: '0.0508', per: 'hour', currency: 'USD' } }),
      }),
    );
  });

  it('is refused when nothing in it is paid by the hour', async () => {
    await expect(
      itemsOf([addon('b3-8.monthly'), addon('volume.classic', { product: 'volume' })]),
    ).rejects.toMatchObject({
      kind: 'invalid',
      message: `${CATALOG} lists nothing; an empty answer is never taken for "all gone"`,
    });
  });
});

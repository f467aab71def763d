import { describe, expect, it } from 'vitest';
import type { FakeAnswer } from '../../support/fake-upstream.ts';
import {
  AVAILABILITY,
  addon,
  CATALOG,
  CLOSED,
  hour,
  itemsOf,
  machines,
  region,
  rejected,
  rules,
  technical,
} from './ovh-payloads.ts';
import { fates } from './read-catalogue.ts';

describe('an instance of OVH', () => {
  it.each<[string, object, string[]]>([
    ['is offered where its configurations list it', addon('b3-8.consumption'), ['offered']],
    [
      'is discontinued if its tags state it',
      addon('b2-7.consumption', {}, { tags: ['active', 'legacy'] }),
      ['discontinued'],
    ],
    ['is discontinued if it is not active', addon('b1-7.consumption', {}, { tags: [] }), ['discontinued']],
    [
      'is unavailable before its start',
      addon('b4-8.consumption', {}, { tags: ['coming_soon'] }),
      ['unavailable'],
    ],
    [
      'is offered if it is active and coming soon',
      addon('b3-8.consumption', {}, { tags: ['active', 'coming_soon'] }),
      ['offered'],
    ],
    [
      'is discontinued if it is legacy and coming soon',
      addon('b2-7.consumption', {}, { tags: ['coming_soon', 'legacy'] }),
      ['discontinued'],
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
      'has no GPU if the number is zero',
      addon('b3-8.consumption', {}, { technical: { ...technical, gpu: { number: 0 } } }),
      ['offered'],
    ],
    ['is not published at zero', addon('d2-2.consumption', { pricings: [hour(0)] }), ['zero_price']],
    ['is rejected without an hourly price', addon('bm-s1.consumption', { pricings: [] }), ['rejected']],
    [
      'is rejected with two prices',
      addon('b3-8.consumption', { pricings: [hour(1), hour(2)] }),
      ['rejected'],
    ],
    [
      'is offered if it has the same price twice',
      addon('b3-8.consumption', { pricings: [hour(1), hour(1)] }),
      ['offered'],
    ],
    [
      'is rejected without a list of regions',
      addon('c3-4.consumption', { configurations: [] }),
      ['rejected'],
    ],
    [
      'is rejected without a list of regions, published or not',
      addon('win-c3-4.consumption', { configurations: [] }),
      ['rejected'],
    ],
    [
      'is reported if its description is missing',
      addon('vps-ssd-1.consumption', { blobs: null }),
      ['rejected'],
    ],
    [
      'is skipped if it is another product',
      addon('volume.consumption', { product: 'publiccloud-volume' }),
      [],
    ],
    [
      'is skipped if it is paid otherwise',
      addon('b3-8.savings-plan', { pricings: [{ ...hour(1), intervalUnit: 'month' }] }),
      [],
    ],
    ['is rejected if another code has its hourly price', addon('b3-8.consumed'), ['rejected']],
  ])('%s', async (_, row, expected) => {
    // Next to a machine that is always present: a catalogue without machines is invalid.
    const items = await itemsOf([addon('x1-8.consumption', { configurations: region('SBG5') }), row]);
    expect(fates(items).toSorted()).toEqual([...expected, 'offered'].toSorted());
  });

  it.each([
    [6810000, '0.0681'],
    [1, '0.00000001'],
    [1_234_567_890_000, '12345.6789'],
    ['5080000', '0.0508'],
  ])('costs this many units of 10^-8: %s', async (price, amount) => {
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

  it('is sold where the addon of its month lists it, but at the price of that kind of place', async () => {
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
    // The catalogue states a kind of place without the places, so no stored machine is meant.
    expect(rejected(items)).toEqual([
      {
        kind: 'rejected',
        key: 'metal.b3-8.consumption.LZ.EU',
        name: 'metal.b3-8.consumption.LZ.EU',
        reason: expect.stringMatching(/^no configuration names its regions, and .* answers 401/),
        waits: true,
      },
    ]);
  });

  it('is sold where the availability rules list it, in any kind of place', async () => {
    const addons = ['', '.3AZ', '.LZ', '.LZ.AF', '.LZ.EUROZONE'].map((place, index) =>
      addon(`b3-8.consumption${place}`, { configurations: [], pricings: [hour(5_000_000 + index)] }),
    );
    const availability = rules({
      'b3-8.consumption': ['BHS5', 'GRA9'],
      'b3-8.consumption.3AZ': ['EU-WEST-PAR'],
      'b3-8.consumption.LZ.AF': ['AF-NORTH-LZ-RBA-A'],
      'b3-8.consumption.LZ.EUROZONE': ['EU-WEST-LZ-MRS-A'],
      'b3-8.monthly.postpaid': ['UK1'],
    });
    const items = await itemsOf(addons, { availability });
    expect(machines(items)).toEqual(
      ['AF-NORTH-LZ-RBA-A', 'BHS5', 'EU-WEST-LZ-MRS-A', 'EU-WEST-PAR', 'GRA9'].map((code) => `b3-8@${code}`),
    );
    expect(items.flatMap((item) => (item.kind === 'region' ? [item.code] : []))).toEqual(
      expect.arrayContaining(['GRA9', 'EU-WEST-PAR', 'AF-NORTH-LZ-RBA-A']),
    );
    expect(items).toContainEqual(
      expect.objectContaining({
        offer: expect.objectContaining({
          regionCode: 'EU-WEST-LZ-MRS-A',
          price: { amount: '0.05000004', per: 'hour', currency: 'EUR' },
        }),
      }),
    );
    expect(rejected(items)).toEqual([
      {
        kind: 'rejected',
        key: 'b3-8.consumption.LZ',
        name: 'b3-8.consumption.LZ',
        reason: `is sold in no region: no configuration names one, and ${AVAILABILITY} lists it for none`,
        waits: true,
      },
    ]);
  });

  it('is sold where its configurations list it unless the availability rules do', async () => {
    const addons = ['b3-8', 'b2-7', 'c3-4'].map((type) => addon(`${type}.consumption`));
    const availability = rules({ 'b3-8.consumption': ['SBG5'], 'c3-4.consumption': [] });
    const items = await itemsOf(addons, { availability });
    expect(machines(items)).toEqual(['b2-7@GRA9', 'b3-8@SBG5']);
    expect(rejected(items)).toMatchObject([{ key: 'c3-4.consumption' }]);
  });

  it('is held in all regions if its availability rule is unreadable; an unnamed rule holds all machines', async () => {
    const availability = rules({ 'b3-8.consumption': [17], 'c3-4.consumption': ['GRA9'] });
    const items = await itemsOf([addon('b3-8.consumption'), addon('c3-4.consumption')], { availability });
    expect(rejected(items)).toMatchObject([
      {
        key: 'rule of b3-8.consumption',
        name: 'b3-8',
        reason: expect.stringContaining('plans[0].regions[0]'),
      },
    ]);
    const nameless: FakeAnswer = { json: { plans: [{ regions: ['GRA9'] }] } };
    expect(rejected(await itemsOf([addon('b3-8.consumption')], { availability: nameless }))).toEqual([
      { kind: 'rejected', key: 'rule 1', reason: expect.stringContaining('plans[0].code') },
    ]);
  });

  it('in a place that is unknown without a token keeps its stored machines', async () => {
    const items = await itemsOf([
      addon('x1-8.consumption'),
      addon('c3-4.consumption', { configurations: [] }),
    ]);
    expect(rejected(items)).toMatchObject([{ key: 'c3-4.consumption', name: 'c3-4', waits: true }]);
  });

  it('without a description is reported in one row with all such machines', async () => {
    const undescribed = ['vps-ssd-1', 'eg-7'].map((type) => addon(`${type}.consumption`, { blobs: null }));
    expect(rejected(await itemsOf([addon('b3-8.consumption'), ...undescribed]))).toEqual([
      {
        kind: 'rejected',
        key: 'addons without a description',
        name: 'addons without a description',
        reason: 'blobs is null in 2 hourly addons: eg-7.consumption, vps-ssd-1.consumption',
        waits: true,
      },
    ]);
  });

  it('is rejected by name if the regions of its month are unreadable', async () => {
    const items = await itemsOf([
      addon('b3-8.consumption', { configurations: [] }),
      addon('b3-8.monthly', { configurations: [{ name: 'region', values: 'all' }] }),
    ]);
    expect(items.filter((item) => item.kind === 'rejected')).toMatchObject([
      { key: 'b3-8.monthly', name: 'b3-8', reason: expect.stringContaining('configurations[0].values') },
      { key: 'b3-8.consumption', name: 'b3-8', reason: expect.stringContaining('names its regions') },
    ]);
  });

  it('that comes twice is yielded twice, and the sync rejects it', async () => {
    const items = await itemsOf([addon('b3-8.consumption'), addon('b3-8.consumption')]);
    expect(machines(items)).toEqual(['b3-8@GRA9', 'b3-8@GRA9']);
  });
});

describe('the catalogue of OVH', () => {
  it('is invalid if nothing in it is paid by the hour', async () => {
    const addons = [addon('b3-8.monthly'), addon('volume.classic', { product: 'volume' })];
    await expect(itemsOf(addons, { availability: 'not asked' })).rejects.toMatchObject({
      kind: 'invalid',
      message: `${CATALOG} lists nothing; an empty answer is never taken for "all gone"`,
    });
  });
});

describe('the availability rules of OVH', () => {
  const sold = [addon('b3-8.consumption', { configurations: [] })];

  it('are requested with the source’s token', async () => {
    const items = await itemsOf(sold, {
      token: 'eyJhbGciOi',
      availability: rules({ 'b3-8.consumption': ['GRA9'] }),
    });
    expect(machines(items)).toEqual(['b3-8@GRA9']);
  });

  it.each<[string, FakeAnswer, string | undefined, string]>([
    ['reject the token', CLOSED, 'expired', 'misconfigured'],
    ['answer an error', { status: 503 }, undefined, 'retry'],
    ['do not exist', { status: 404 }, undefined, 'gone'],
    ['are empty', rules({}), undefined, 'invalid'],
  ])('end the run when they %s', async (_, availability, token, kind) => {
    const answers = token === undefined ? { availability } : { availability, token };
    await expect(itemsOf(sold, answers)).rejects.toMatchObject({
      kind,
      message: expect.stringContaining(AVAILABILITY),
    });
  });
});

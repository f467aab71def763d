/**
 * Rows of OVH's catalogue as other projects recorded them. US and WE are subsidiaries:
 * https://github.com/ratecard-cloud/ratecard, data/raw/ovh/compute.json and egress.json, 54da327e2f1491d6b347f125be9157cd70419f9a.
 */
import { describe, expect, it } from 'vitest';
import {
  addon,
  B3,
  database,
  itemsOf,
  legacy,
  none,
  offers,
  plansIn,
  pricesOf,
  reasons,
  region,
  rejected,
  sold,
  volume,
} from './ovh-payloads.ts';

const US = { currencyCode: 'USD', base: '/?ovhSubsidiary=US', ovhSubsidiary: 'US' };
const NEW = ['coming_soon', 'is_new', 'active'];

describe('a machine of the United States', () => {
  it('costs the price of a consumption without an interval for an hour', async () => {
    const configurations = region('US-EAST-VA-1');
    const row = addon(
      'b3-8.consumption',
      { pricings: [none(6050000)], configurations },
      { tags: NEW, technical: B3 },
    );
    const items = await itemsOf([row], US);
    expect(offers(items)).toEqual([
      {
        ...{ regionCode: 'US-EAST-VA-1', name: 'b3-8', cpu: 2, ram: 8, ramUnit: 'Decimal' },
        price: { amount: '0.0605', per: 'hour', currency: 'USD' },
        facts: { localDisk: 50, network: 500 },
      },
    ]);
    expect(rejected(items)).toEqual([]);
  });

  it('is rejected if an hour and no interval have different prices; a month is no hour', async () => {
    const hourly = { ...none(5080000), interval: 1, intervalUnit: 'hour' };
    const monthly = { ...none(1), interval: 1, intervalUnit: 'month' };
    const rows = [
      sold('GRA9'),
      addon('b3-16.consumption', { pricings: [hourly, none(6050000)] }),
      addon('b3-32.consumption', { pricings: [monthly] }),
      // Another payment than consumption needs an hour to be reported.
      addon('b3-64.savings-plan', { pricings: [none(1)] }),
    ];
    expect(reasons(await itemsOf(rows))).toEqual([
      'b3-16.consumption: pricings must have one price for an hour of consumption; it has 2',
      'b3-32.consumption: pricings must have one price for an hour of consumption; it has 0',
    ]);
  });
});

describe('a disk without a number', () => {
  it('is one disk of a machine', async () => {
    const [offer] = offers(await itemsOf([legacy('GRA7')]));
    expect(offer).toMatchObject({ name: 's1-8', facts: { localDisk: 40, network: 100 } });
  });

  it('is one disk of a plan of databases', async () => {
    const row = database(
      'mysql-business-db1-4',
      { configurations: region('GRA') },
      {
        storage: { disks: [{ capacity: 80 }] },
      },
    );
    expect(await itemsOf([sold('GRA9'), row])).toContainEqual(
      expect.objectContaining({ kind: 'database-plan', plan: expect.objectContaining({ storage: 80 }) }),
    );
  });
});

describe('a place of OVH', () => {
  it('has the datacenters with its name and a number or a letter, and no archive', async () => {
    const codes = ['RBX-A', 'RBX-ARCHIVE', 'GRA9', 'GRA11', 'AF-NORTH-LZ-RBA-A'];
    const places = region('RBX', 'GRA', 'GRA1', 'AF-NORTH-LZ-RBA');
    const row = database('mysql-business-db1-4', { configurations: places });
    expect(plansIn(await itemsOf([sold(...codes), row]))).toEqual(
      ['RBX-A', 'GRA9', 'GRA11', 'AF-NORTH-LZ-RBA-A'].map((code) => `mysql business-db1-4@${code}`),
    );
  });
});

describe('a region whose machines are all excluded', () => {
  it('stays for them, without prices of its own and without plans of databases', async () => {
    const items = await itemsOf([
      sold('GRA9'),
      legacy('GRA9', 'GRA1'),
      volume('volume.classic.consumption', 5900, ['GRA9', 'GRA1']),
      database('mysql-business-db1-4', { configurations: region('GRA') }),
    ]);
    expect(offers(items).map(({ name, regionCode }) => `${name}@${regionCode}`)).toEqual([
      'b3-8@GRA9',
      's1-8@GRA9',
      's1-8@GRA1',
    ]);
    expect(items.flatMap((item) => (item.kind === 'region' ? [item.code] : []))).toEqual(['GRA9', 'GRA1']);
    expect(pricesOf(items, 'traffic_out')).toEqual(['GRA9: unmetered, GB, 0 from 0']);
    expect(pricesOf(items, 'block_storage')).toEqual(['GRA9: classic, GiB, 0.000059 from 0']);
    expect(plansIn(items)).toEqual(['mysql business-db1-4@GRA9']);
  });

  it('keeps its prices while a machine of it is unreadable, or costs nothing', async () => {
    for (const price of [-1, 0]) {
      const odd = addon('c3-4.consumption', { pricings: [none(price)] });
      expect(pricesOf(await itemsOf([sold('SBG5'), odd]), 'traffic_out')).toEqual([
        'SBG5: unmetered, GB, 0 from 0',
        'GRA9: unmetered, GB, 0 from 0',
      ]);
    }
  });
});

/**
 * Outgoing traffic, volumes and plans of databases in OVH's catalogue. Rows of traffic: https://github.com/ratecard-cloud/ratecard,
 * data/raw/ovh/egress.json, 54da327e2f1491d6b347f125be9157cd70419f9a. Codes of volumes and plans:
 * https://github.com/feoche/public-cost-indicator, docs/donnees-produits-cloud-complet.md, 9af5ce03f56106dbb31db15e5328dbc6bebe08fa.
 * Regions: packages/manager/apps/pci-instances in https://github.com/ovh/manager.
 */
import { describe, expect, it } from 'vitest';
import {
  database,
  itemsOf,
  none,
  plansIn,
  pricesOf,
  reasons,
  region,
  rejected,
  rules,
  sold,
  traffic,
  unread,
  volume,
} from './ovh-payloads.ts';

/** 1,024 GiB a month are free in Singapore. */
const SINGAPORE = [none(0, { min: 1, max: 1024 }), none(1090000, { min: 1025, max: null })];

describe('outgoing traffic of OVH', () => {
  it('has the steps that the catalogue states for a region, in GiB', async () => {
    const items = await itemsOf([
      sold('BHS5', 'SGP1', 'GRA11', 'SYD1'),
      traffic([none(0)], ['BHS5', 'WAW1']),
      traffic(SINGAPORE, ['SGP1'], '.SGP1'),
    ]);
    expect(pricesOf(items, 'traffic_out')).toEqual([
      'BHS5: unmetered, GB, 0 from 0',
      'SGP1: bandwidth_instance_out, GiB, 0 from 0, 0.0109 from 1024',
      // The price page says so. It excepts Asia-Pacific.
      'GRA11: unmetered, GB, 0 from 0',
    ]);
    expect(rejected(items)).toEqual([]);
  });

  it('has the regions of its addon, else those of the rules', async () => {
    const availability = rules({
      'bandwidth_instance_out.consumption': ['GRA9', 'SGP1'],
      'bandwidth_instance_out.consumption.MUM': ['AP-SOUTH-MUM-1'],
    });
    const rows = [traffic([none(0)], ['GRA9']), traffic(SINGAPORE, ['SGP1'], '.SGP1')];
    const items = await itemsOf(
      [sold('AP-SOUTH-MUM-1', 'GRA9', 'SGP1'), ...rows, traffic(SINGAPORE, [], '.MUM')],
      { availability },
    );
    expect(pricesOf(items, 'traffic_out')).toEqual([
      'AP-SOUTH-MUM-1: bandwidth_instance_out, GiB, 0 from 0, 0.0109 from 1024',
      'GRA9: unmetered, GB, 0 from 0',
      'SGP1: bandwidth_instance_out, GiB, 0 from 0, 0.0109 from 1024',
    ]);
    expect(rejected(items)).toEqual([]);
  });

  it('costs nothing outside Asia-Pacific if the catalogue names no regions', async () => {
    const free = ['AF-NORTH-LZ-RBA-A', 'CA-EAST-TOR', 'EU-WEST-LZ-MRS-A', 'RBX-A', 'US-EAST-VA-1'];
    const items = await itemsOf([
      sold(...free, 'AP-SOUTH-MUM-1', 'SGP1', 'RBX-ARCHIVE'),
      traffic([none(0)], []),
      traffic([none(0)], ['BHS1'], '.3AZ'),
    ]);
    expect(pricesOf(items, 'traffic_out')).toEqual(free.map((code) => `${code}: unmetered, GB, 0 from 0`));
    // The free price adds nothing, so it is no problem without regions.
    expect(rejected(items)).toEqual([]);
  });

  it('is reported if its price names no region that is sold', async () => {
    expect(reasons(await itemsOf([sold('GRA9'), traffic(SINGAPORE, ['SGP1'], '.SGP1')]))).toEqual([
      'traffic prices: one price is left out; the first is bandwidth_instance_out.consumption.SGP1: neither its addon nor ' +
        'the rules of availability name a region with machines for sale',
    ]);
  });

  it.each<[string, object, string]>([
    [
      'a price is negative',
      traffic([none(-1)], ['GRA9']),
      'pricings[0].price must not be negative; it is -1',
    ],
    ['a step is missing', traffic(SINGAPORE.slice(1), ['GRA9']), 'has no price from 0 on'],
    [
      'the price beyond the free quantity is missing',
      traffic(SINGAPORE.slice(0, 1), ['GRA9']),
      'pricings must be steps by quantity without a gap',
    ],
    [
      'there is a gap',
      traffic([none(0, { min: 1, max: 1024 }), none(1, { min: 2049, max: null })], ['GRA9']),
      'pricings must be steps by quantity without a gap',
    ],
    [
      'a step has two prices',
      traffic([none(1), none(2)], ['GRA9']),
      'pricings must be steps by quantity without a gap',
    ],
    [
      'a step begins nowhere',
      traffic([none(1, { min: 0, max: null })], ['GRA9']),
      'pricings[0].quantity.min must be a whole number above 0; it is 0',
    ],
    [
      'the last step is for all units',
      traffic([none(0, { min: 1, max: 9 }, 'volume'), none(1, { min: 10 }, 'volume')], ['GRA9']),
      'strategy must be tiered if there are several steps',
    ],
    [
      'its unit is another one',
      traffic(SINGAPORE, ['GRA9'], '', 'TiB'),
      'blobs.commercial.price.unit must be GB or GiB; it is "TiB"',
    ],
    ['nothing is left', traffic([], ['GRA9']), 'has no price from 0 on'],
  ])('is unknown in its regions if %s', async (_, row, reason) => {
    const items = await itemsOf([sold('GRA9'), row]);
    expect(pricesOf(items, 'traffic_out')).toEqual([]);
    expect(reasons(items)).toEqual([
      `traffic prices: one price is left out; the first is bandwidth_instance_out.consumption@GRA9: ${reason}`,
    ]);
  });

  it('is unknown in a region with two different prices, and known with the same one twice', async () => {
    const items = await itemsOf([
      sold('GRA9', 'SGP1', 'SYD1'),
      traffic([none(0)], ['GRA9', 'SGP1']),
      traffic([none(0)], ['GRA9'], '.3AZ'),
      traffic(SINGAPORE, ['SGP1'], '.SGP1'),
    ]);
    expect(pricesOf(items, 'traffic_out')).toEqual(['GRA9: unmetered, GB, 0 from 0']);
    expect(reasons(items)).toEqual([
      'traffic prices: one price is left out; the first is bandwidth_instance_out.consumption@SGP1: differs from ' +
        'bandwidth_instance_out.consumption.SGP1',
    ]);
  });
});

describe('a volume of OVH', () => {
  const NOWHERE = 'neither its addon nor the rules of availability name a region with machines for sale';

  it('is reported without a region, and the stored prices stay if no volume has one', async () => {
    const classic = volume('volume.classic.consumption', 5900, []);
    const items = await itemsOf([sold('GRA9'), classic]);
    expect(pricesOf(items, 'block_storage')).toEqual([]);
    expect(reasons(items)).toEqual([
      `storage prices: one price is left out; the first is volume.classic.consumption: ${NOWHERE}`,
    ]);
    expect(unread(items)).toEqual(['block_storage']);
    const fast = volume('volume.high-speed.consumption', 11900, ['GRA9']);
    expect(unread(await itemsOf([sold('GRA9'), classic, fast]))).toEqual([]);
  });

  it('of several machines is the default where no other classic one is sold', async () => {
    const multiattach = 'volume.classic-multiattach.consumption.3AZ';
    const rows = [
      volume('volume.classic.consumption.3AZ', 5900, ['EU-WEST-PAR']),
      volume(multiattach, 5900, ['EU-WEST-PAR', 'EU-SOUTH-MIL']),
      volume('volume.high-speed.consumption', 11900, ['EU-SOUTH-MIL']),
    ];
    expect(pricesOf(await itemsOf([sold('EU-WEST-PAR', 'EU-SOUTH-MIL'), ...rows]), 'block_storage')).toEqual([
      'EU-WEST-PAR: classic, GiB, 0.000059 from 0',
      'EU-WEST-PAR: classic-multiattach too, GiB, 0.000059 from 0',
      'EU-SOUTH-MIL: classic-multiattach, GiB, 0.000059 from 0',
      'EU-SOUTH-MIL: high-speed too, GiB, 0.000119 from 0',
    ]);
  });
});

describe('a plan of databases that costs nothing', () => {
  it('is skipped if its name says so, and reported otherwise', async () => {
    const free = { pricings: [none(0)], configurations: region('GRA') };
    const named = await itemsOf([sold('GRA9'), database('mongodb-discovery-db2-free', free)]);
    expect([plansIn(named), rejected(named), unread(named)]).toEqual([[], [], []]);
    const other = await itemsOf([sold('GRA9'), database('mysql-business-db1-4', free)]);
    expect(plansIn(other)).toEqual([]);
    expect(reasons(other)).toEqual([
      'database plans: one price is left out; the first is databases.mysql-business-db1-4.hour.consumption: pricings must ' +
        'have a price above 0 for an hour of consumption',
    ]);
  });
});

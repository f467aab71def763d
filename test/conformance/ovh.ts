import type { OfferedPlan } from '../../src/domain/database-plan.ts';
import { type CatalogueCase, fixture, offersIn, regionPrice } from './catalogue-case.ts';

const offer = offersIn('EUR', 'Decimal');

const CATALOG = '/v1/order/catalog/public/cloud';
const AVAILABILITY = '/v1/cloud/order/rule/availability';

const perHour = { per: 'hour', currency: 'EUR' } as const;
const unmetered = regionPrice('traffic_out', 'unmetered', 'GB', '0', { per: undefined, currency: 'EUR' });

const business: Omit<OfferedPlan, 'price'> = {
  ...{ engine: 'postgresql', name: 'business-db1-7', nodes: null },
  ...{ cpu: 2, ram: 7, ramUnit: 'Decimal', storage: 160 },
};

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  pages: [
    {
      path: CATALOG,
      query: { ovhSubsidiary: 'IE' },
      json: fixture('ovh/catalog.json'),
      list: 'addons',
      required: [
        '/locale',
        '/locale/currencyCode',
        '/addons',
        '/addons/0/planCode',
        '/addons/0/product',
        '/addons/0/pricings',
        '/addons/0/pricings/0/price',
        '/addons/0/pricings/0/intervalUnit',
        '/addons/0/pricings/0/capacities',
        '/addons/0/blobs',
        '/addons/0/blobs/tags',
        '/addons/0/blobs/technical',
        '/addons/0/blobs/technical/cpu',
        '/addons/0/blobs/technical/cpu/cores',
        '/addons/0/blobs/technical/memory/size',
        '/addons/1/configurations',
        '/addons/1/configurations/0/name',
      ],
      prices: ['/addons/0/pricings/0/price', '/addons/2/pricings/0/price'],
      otherPrices: [
        '/addons/16/pricings/0/price',
        '/addons/20/pricings/0/price',
        '/addons/22/pricings/0/price',
        '/addons/26/pricings/0/price',
        '/addons/27/pricings/1/price',
      ],
      otherRequired: [
        '/addons/27/pricings',
        '/addons/27/pricings/1/quantity',
        '/addons/27/pricings/1/quantity/min',
        '/addons/27/pricings/1/strategy',
        '/addons/27/blobs/commercial/price/unit',
      ],
    },
    {
      path: AVAILABILITY,
      query: { ovhSubsidiary: 'IE' },
      json: fixture('ovh/availability.json'),
      list: 'plans',
      required: ['/plans', '/plans/0/code', '/plans/0/regions'],
      prices: [],
    },
  ],
  empty: {
    [CATALOG]: { locale: { currencyCode: 'EUR' }, addons: [] },
    [AVAILABILITY]: { plans: [], products: [] },
  },
  uncounted: [CATALOG, AVAILABILITY],
  regions: {
    BHS5: 'BHS5',
    GRA9: 'GRA9',
    'EU-WEST-PAR': 'EU-WEST-PAR',
    'EU-WEST-LZ-BRU-A': 'EU-WEST-LZ-BRU-A',
    'EU-SOUTH-MIL': 'EU-SOUTH-MIL',
    SGP1: 'SGP1',
  },
  offers: [
    // The addon of the month lists regions, and prices are units of 10^-8.
    offer('b3-8', 'BHS5', 2, 8, '0.0508'),
    offer('b3-8', 'GRA9', 2, 8, '0.0508'),
    // A region of three zones has a different price.
    offer('b3-8', 'EU-WEST-PAR', 2, 8, '0.061'),
    // Only the availability rules state where these are sold.
    offer('b3-8', 'EU-WEST-LZ-BRU-A', 2, 8, '0.093'),
    offer('c3-8', 'GRA9', 4, 8, '0.0907'),
    offer('c3-8', 'SGP1', 4, 8, '0.0907'),
    offer('c3-8', 'EU-SOUTH-MIL', 4, 8, '0.0997'),
    offer('win-b3-8', 'GRA9', 2, 8, '0.1096', 'licensed'),
    offer('l4-90', 'GRA9', 22, 90, '0.75', 'accelerated'),
    offer('b2-7', 'GRA9', 2, 7, '0.0681', 'discontinued'),
    offer('r4-16', 'EU-WEST-PAR', 2, 16, '0.0999', 'unavailable'),
    offer('d2-2', 'BHS5', 1, 2, '0', 'zero_price'),
  ],
  facts: {
    'b3-8': { localDisk: 50, network: 500 },
  },
  regionPrices: {
    GRA9: [
      regionPrice('block_storage', 'classic', 'GiB', '0.000059', perHour),
      regionPrice('block_storage', 'high-speed-gen2', 'GiB', '0.000119', { ...perHour, isDefault: false }),
      unmetered,
    ],
    // The availability rules do not list the other volumes, whose addon lists this region.
    BHS5: [regionPrice('block_storage', 'high-speed-gen2', 'GiB', '0.000119', perHour), unmetered],
    'EU-WEST-PAR': [unmetered],
    'EU-WEST-LZ-BRU-A': [unmetered],
    'EU-SOUTH-MIL': [unmetered],
    SGP1: [
      {
        ...regionPrice('traffic_out', 'bandwidth_instance_out', 'GiB', '0', {
          per: undefined,
          currency: 'EUR',
        }),
        tiers: [
          { from: '0', amount: '0' },
          { from: '1024', amount: '0.0109' },
        ],
      },
    ],
  },
  databasePlans: {
    // The rules name the place, GRA.
    GRA9: [{ ...business, price: { amount: '0.177', per: 'hour', currency: 'EUR' } }],
    'EU-WEST-PAR': [{ ...business, price: { amount: '0.189', per: 'hour', currency: 'EUR' } }],
    // Its addon describes no node, and names the place.
    BHS5: [
      {
        ...{ engine: 'mongodb', name: 'production-db2-8', nodes: null, cpu: null, ram: null, ramUnit: null },
        ...{ storage: null, price: { amount: '0.21', per: 'hour', currency: 'EUR' } },
      },
    ],
  },
  rejected: [
    {
      key: 'database plans',
      reason:
        /^one price is left out; the first is databases\.mysql-essential-db1-4\.hour\.consumption: pricings/,
    },
    {
      key: 'storage prices',
      reason: /^one price is left out; the first is volume\.high-speed\.consumption: pricings must have/,
    },
    { key: 'c3-4.consumption', reason: /^is sold in no region: .* lists it for none/ },
    { key: 'addons without a description', reason: /^blobs is null .* vps-ssd-1\.consumption$/ },
    {
      key: 'i1-45.consumption',
      reason: /^blobs\.technical\.cpu\.cores must be a whole number above 0; it is 0$/,
    },
    {
      key: 'bm-s1.consumption',
      reason: /^pricings must have one price for an hour of consumption; it has 0$/,
    },
  ],
};

import type { OfferedPlan } from '../../src/domain/database-plan.ts';
import { type CatalogueCase, fixture, offersIn, regionPrice } from './catalogue-case.ts';

const offer = offersIn('USD');

const soldOut = { excluded: 'sold_out' } as const;
const deprecated = { excluded: 'discontinued' } as const;
const accelerated = { excluded: 'accelerated' } as const;
const empty = { data: [], page: 1, pages: 1, results: 0 };

const perUnit = { per: undefined, currency: 'USD' } as const;
const storage = (amount: string, per: 'hour' | 'month') =>
  regionPrice('block_storage', 'volume', 'GiB', amount, { per, currency: 'USD' });

const includedTraffic = 1000;
const includedIpv4 = 1;

const nanode = { name: 'g6-nanode-1', cpu: 1, ram: 1, ramUnit: 'Binary', storage: 26.844 } as const;
const monthly = (amount: string) => ({ amount, per: 'month', currency: 'USD' }) as const;
// All regions that sell them have the same price. It is that of all nodes.
const plans: readonly OfferedPlan[] = [
  { engine: 'mysql', nodes: 1, ...nanode, price: monthly('15') },
  { engine: 'postgresql', nodes: 1, ...nanode, price: monthly('15') },
  { engine: 'postgresql', nodes: 3, ...nanode, price: monthly('35.5') },
  {
    ...{
      engine: 'postgresql',
      nodes: 2,
      name: 'g6-dedicated-2',
      cpu: 2,
      ram: 4,
      ramUnit: 'Binary',
      storage: 85.899,
    },
    price: { amount: '0.195', per: 'hour', currency: 'USD' },
  },
];

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  pages: [
    {
      path: '/v4/regions',
      query: { page: '1' },
      json: fixture('linode/regions.json'),
      list: 'data',
      required: [
        '/data',
        '/page',
        '/pages',
        '/results',
        '/data/0/id',
        '/data/0/label',
        '/data/0/capabilities',
      ],
      prices: [],
    },
    {
      path: '/v4/linode/types',
      query: { page: '1' },
      json: fixture('linode/types-1.json'),
      list: 'data',
      required: [
        '/data',
        '/pages',
        '/results',
        '/data/0/id',
        '/data/0/class',
        '/data/0/memory',
        '/data/0/vcpus',
        '/data/0/gpus',
        '/data/0/successor',
        '/data/0/price',
        '/data/0/region_prices',
        '/data/0/region_prices/0/id',
      ],
      prices: ['/data/0/price/hourly', '/data/0/region_prices/0/hourly', '/data/1/region_prices/0/monthly'],
    },
    {
      path: '/v4/linode/types',
      query: { page: '2' },
      json: fixture('linode/types-2.json'),
      list: 'data',
      required: ['/page', '/pages', '/data/0/vcpus'],
      prices: ['/data/0/region_prices/0/hourly'],
    },
    {
      path: '/v4beta/regions/availability',
      query: { page: '1' },
      json: fixture('linode/availability-1.json'),
      list: 'data',
      required: ['/data', '/pages', '/results', '/data/1/available'],
      prices: [],
    },
    {
      path: '/v4beta/regions/availability',
      query: { page: '2' },
      json: fixture('linode/availability-2.json'),
      list: 'data',
      required: ['/page', '/pages', '/data/0/available', '/data/0/region', '/data/0/plan'],
      prices: [],
    },
    {
      path: '/v4/volumes/types',
      query: { page: '1' },
      json: fixture('linode/volume-types.json'),
      list: 'data',
      required: [
        '/data',
        '/page',
        '/pages',
        '/results',
        '/data/0/id',
        '/data/0/price',
        '/data/0/region_prices',
      ],
      prices: [],
      otherPrices: ['/data/0/price/monthly', '/data/0/region_prices/0/hourly'],
      additional: true,
    },
    {
      path: '/v4/databases/types',
      query: { page: '1' },
      json: fixture('linode/database-types.json'),
      list: 'data',
      maps: ['/data/*/engines'],
      required: [],
      prices: [],
      otherRequired: [
        '/data',
        '/results',
        '/data/0/vcpus',
        '/data/0/memory',
        '/data/0/engines/mysql/0/quantity',
      ],
      otherPrices: ['/data/0/engines/mysql/0/price/monthly', '/data/1/engines/postgresql/0/price/hourly'],
      additional: true,
    },
    {
      path: '/v4/network-transfer/prices',
      query: { page: '1' },
      json: fixture('linode/network-transfer-prices.json'),
      list: 'data',
      required: ['/data', '/results', '/data/1/id', '/data/1/price', '/data/1/region_prices/0/id'],
      prices: [],
      otherPrices: ['/data/0/price/hourly', '/data/1/region_prices/0/hourly'],
      additional: true,
    },
  ],
  empty: {
    '/v4/regions': empty,
    '/v4/linode/types': empty,
    '/v4beta/regions/availability': empty,
    '/v4/volumes/types': empty,
    '/v4/network-transfer/prices': empty,
    '/v4/databases/types': empty,
  },
  regions: {
    'us-east': 'Newark, NJ',
    'id-cgk': 'Jakarta, ID',
    'us-iad': 'Washington, DC',
    'us-den-1': 'Distributed - Denver, CO',
  },
  offers: [
    offer('g6-nanode-1', 'us-east', 1, 1, '0.0075'),
    offer('g6-nanode-1', 'id-cgk', 1, 1, '0.009'),
    // An outage of a region is no statement about its stock.
    offer('g6-nanode-1', 'us-iad', 1, 1, '0.0075'),
    offer('g6-standard-2', 'us-east', 2, 4, '0.036', soldOut),
    // Its override has only monthly prices.
    offer('g6-standard-2', 'id-cgk', 2, 4, '28.8', { per: 'month' }),
    offer('g6-standard-2', 'us-iad', 2, 4, '0.036'),
    offer('g5-standard-2', 'us-east', 2, 4, '0.03', deprecated),
    offer('g5-standard-2', 'id-cgk', 2, 4, '0.03', deprecated),
    offer('g5-standard-2', 'us-iad', 2, 4, '0.03', deprecated),
    offer('g7-highmem-1', 'us-east', 2, 24, '0.09'),
    offer('g7-highmem-1', 'us-iad', 2, 24, '0.09'),
    offer('g7-premium-2', 'id-cgk', 2, 4, '0.077'),
    offer('g1-gpu-rtx6000-1', 'us-east', 8, 32, '1.5', accelerated),
    offer('g1-accelerated-netint-vpu-t1u1-s', 'us-east', 8, 16, '0.42', accelerated),
  ],
  facts: {
    'g6-nanode-1': { cpuKind: 'shared', localDisk: 26.844, network: 1000, includedTraffic, includedIpv4 },
    'g6-standard-2': { cpuKind: 'shared', localDisk: 26.844, network: 1000, includedTraffic, includedIpv4 },
    'g5-standard-2': { cpuKind: 'shared', localDisk: 26.844, network: 1000, includedTraffic, includedIpv4 },
    'g7-highmem-1': { cpuKind: 'dedicated', localDisk: 26.844, network: 1000, includedTraffic, includedIpv4 },
    'g7-premium-2': { cpuKind: 'dedicated', localDisk: 26.844, network: 1000, includedTraffic, includedIpv4 },
    'g1-gpu-rtx6000-1': { localDisk: 26.844, network: 1000, includedTraffic, includedIpv4 },
    'g1-accelerated-netint-vpu-t1u1-s': { localDisk: 26.844, network: 1000, includedTraffic, includedIpv4 },
  },
  terms: {
    'g6-nanode-1': { monthlyCap: '5' },
    'g6-nanode-1@id-cgk': { monthlyCap: '6' },
    'g6-standard-2': { monthlyCap: '24' },
    'g6-standard-2@id-cgk': { monthlyCap: '28.8' },
    'g5-standard-2': { monthlyCap: '20' },
    'g7-highmem-1': { monthlyCap: '60' },
    'g7-premium-2': { monthlyCap: '51.6' },
    'g1-gpu-rtx6000-1': { monthlyCap: '1000' },
    'g1-accelerated-netint-vpu-t1u1-s': { monthlyCap: '280' },
  },
  regionPrices: {
    'us-east': [
      storage('0.1', 'month'),
      regionPrice('traffic_out', 'network_transfer', 'GB', '0.005', perUnit),
    ],
    // Its override has no monthly price.
    'id-cgk': [
      storage('0.00018', 'hour'),
      regionPrice('traffic_out', 'network_transfer', 'GB', '0.015', perUnit),
    ],
    // It has no block storage.
    'us-iad': [regionPrice('traffic_out', 'network_transfer', 'GB', '0.005', perUnit)],
    'us-den-1': [regionPrice('traffic_out', 'distributed_network_transfer', 'GB', '0.01', perUnit)],
  },
  databasePlans: { 'us-east': plans, 'id-cgk': plans },
  rejected: [
    {
      key: 'g7-highmem-1@id-cgk',
      reason: /^region_prices\[0\]\.hourly must be a price, unless monthly is one/,
    },
    { key: 'g9-metal-1', reason: /^class must be one of nanode, .*; it is "metal"$/ },
  ],
};

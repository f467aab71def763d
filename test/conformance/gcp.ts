import type { OfferedPlan } from '../../src/domain/database-plan.ts';
import type { OfferedRegionPrice } from '../../src/domain/prices/region-price.ts';
import { type CatalogueCase, fixture, offersIn } from './catalogue-case.ts';

const TYPES = '/compute/v1/projects/{project}/aggregated/machineTypes';
const SKUS = '/v1/services/6F81-5844-456A/skus';
const DATABASES = '/v1/services/9662-B51E-5089/skus';
const IOWA = 'us-central1';
const FRANKFURT = 'europe-west3';

const offer = offersIn('USD');

const hourly = (amount: string) => ({ price: { amount, per: 'hour' as const, currency: 'USD' } });
const disk = (name: string, amount: string, isDefault = false): OfferedRegionPrice => ({
  item: 'block_storage',
  name,
  isDefault,
  unit: 'GiB',
  per: 'month',
  currency: 'USD',
  tiers: [{ from: '0', amount }],
});
const traffic = (
  name: string,
  isDefault: boolean,
  steps: readonly (readonly [string, string])[],
): OfferedRegionPrice => ({
  item: 'traffic_out',
  name,
  isDefault,
  unit: 'GiB',
  per: undefined,
  currency: 'USD',
  tiers: steps.map(([from, amount]) => ({ from, amount })),
});
const plans = (
  engine: string,
  nodes: number,
  shapes: readonly (readonly [name: string, cpu: number, ram: number, amount: string])[],
): OfferedPlan[] =>
  shapes.map(([name, cpu, ram, amount]) => ({
    ...{ engine, name, nodes, cpu, ram, ramUnit: 'Binary', storage: 0 },
    price: { amount, per: 'hour', currency: 'USD' },
  }));
const ADDRESS: OfferedRegionPrice = {
  item: 'ipv4',
  name: 'External IP',
  isDefault: true,
  unit: 'address',
  per: 'hour',
  currency: 'USD',
  tiers: [{ from: '0', amount: '0.005' }],
};

const types = {
  path: '/compute/v1/projects/fleet/aggregated/machineTypes',
  endpoint: TYPES,
  list: 'items',
  maps: ['/items'],
  prices: [],
};
const typesQuery = { maxResults: '500', returnPartialSuccess: 'true' };
const skusQuery = { currencyCode: 'USD', pageSize: '5000' };
const rate = (sku: number) => `/skus/${sku}/pricingInfo/0/pricingExpression/tieredRates/0/unitPrice`;
const zone = '/items/zones~1us-central1-a';

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  basePath: '/compute/v1/projects/fleet',
  pages: [
    {
      ...types,
      query: typesQuery,
      json: fixture('gcp/machine_types-1.json'),
      required: [
        '/items',
        `${zone}/machineTypes`,
        `${zone}/machineTypes/0/name`,
        `${zone}/machineTypes/1/guestCpus`,
        `${zone}/machineTypes/1/memoryMb`,
        `${zone}/machineTypes/4/deprecated/state`,
      ],
    },
    {
      ...types,
      query: { ...typesQuery, pageToken: 'cGFnZS0y' },
      json: fixture('gcp/machine_types-2.json'),
      required: ['/items', '/items/zones~1europe-west3-a/machineTypes/0/guestCpus'],
    },
    {
      path: SKUS,
      query: skusQuery,
      json: fixture('gcp/skus-1.json'),
      list: 'skus',
      required: [
        '/skus',
        '/skus/0/description',
        '/skus/0/category',
        '/skus/0/category/usageType',
        '/skus/0/serviceRegions',
        '/skus/0/pricingInfo',
        '/skus/0/pricingInfo/0/pricingExpression',
        '/skus/0/pricingInfo/0/pricingExpression/usageUnit',
        '/skus/0/pricingInfo/0/pricingExpression/tieredRates',
        rate(0),
        `${rate(0)}/currencyCode`,
        `${rate(1)}/units`,
        `${rate(1)}/nanos`,
      ],
      prices: [`${rate(0)}/nanos`, `${rate(3)}/nanos`],
    },
    {
      path: SKUS,
      query: { ...skusQuery, pageToken: 'c2t1cy0y' },
      json: fixture('gcp/skus-2.json'),
      list: 'skus',
      required: ['/skus', '/skus/1/description', `${rate(1)}/nanos`],
      otherRequired: [
        `${rate(17)}/nanos`,
        `${rate(20)}/units`,
        `${rate(29)}/currencyCode`,
        '/skus/21/pricingInfo/0/pricingExpression/usageUnit',
        '/skus/33/pricingInfo/0/pricingExpression/tieredRates',
        '/skus/39/pricingInfo',
      ],
      otherPrices: [17, 22, 25, 29, 34, 37].map((sku) => `${rate(sku)}/nanos`),
      prices: [`${rate(1)}/nanos`],
    },
    {
      path: DATABASES,
      query: skusQuery,
      json: fixture('gcp/database_skus-1.json'),
      list: 'skus',
      required: [],
      otherRequired: [
        '/skus',
        '/nextPageToken',
        '/skus/0/description',
        '/skus/0/category/usageType',
        '/skus/0/serviceRegions',
        '/skus/0/pricingInfo',
        '/skus/1/pricingInfo/0/pricingExpression/usageUnit',
        `${rate(1)}/currencyCode`,
      ],
      otherPrices: [`${rate(0)}/nanos`, `${rate(1)}/nanos`],
      prices: [],
      additional: true,
    },
    {
      path: DATABASES,
      query: { ...skusQuery, pageToken: 'c3FsLTI=' },
      json: fixture('gcp/database_skus-2.json'),
      list: 'skus',
      required: [],
      otherRequired: ['/skus', '/nextPageToken', '/skus/3/description'],
      otherPrices: [`${rate(2)}/nanos`],
      prices: [],
      additional: true,
    },
  ],
  empty: {
    [TYPES]: { items: {} },
    [SKUS]: { skus: [], nextPageToken: '' },
    [DATABASES]: { skus: [], nextPageToken: '' },
  },
  uncounted: [TYPES, SKUS, DATABASES],
  omitsNext: [TYPES],
  regions: { [IOWA]: IOWA, [FRANKFURT]: FRANKFURT },
  offers: [
    offer('e2-standard-2', IOWA, 2, 8, '0.06701142'),
    // The machine has two cores; a quarter of one, and one, are billed.
    offer('e2-micro', IOWA, 2, 1, '0.0083764275'),
    offer('e2-medium', IOWA, 2, 4, '0.03350571'),
    offer('n1-standard-1', IOWA, 1, 3.75, '0.04749975'),
    // Deprecated, and still sold.
    offer('n1-highcpu-2-d', IOWA, 2, 1843 / 1024, '0.0708477724609375'),
    // Deprecated in only one of two zones.
    offer('n1-highmem-2', IOWA, 2, 13, '0.118303'),
    // Billed as a whole, above a free tier.
    offer('f1-micro', IOWA, 1, 614 / 1024, '0.0076'),
    offer('c2-standard-4', IOWA, 4, 16, '0.20872'),
    offer('a2-highgpu-1g', IOWA, 12, 85, '0.739477', 'accelerated'),
    offer('t2d-standard-1', IOWA, 1, 4, '0.042246'),
    // A disk of 375 GiB costs 60 dollars a month.
    offer('c4-standard-4-lssd', IOWA, 4, 15, '0.262191780821917808'),
    offer('e2-standard-2', FRANKFURT, 2, 8, '0.086334'),
    offer('t2a-standard-1', FRANKFURT, 1, 4, '0', 'zero_price'),
  ],
  facts: {
    'e2-standard-2': { architecture: 'x86_64', generation: 'e2', cpuKind: 'dedicated' },
    'e2-micro': { generation: 'e2', cpuKind: 'shared' },
    'e2-medium': { generation: 'e2', cpuKind: 'shared' },
    'n1-standard-1': { generation: 'n1', cpuKind: 'dedicated' },
    'n1-highcpu-2-d': {
      generation: 'n1',
      cpuKind: 'dedicated',
      orderableUntil: '2026-12-01T08:00:00Z',
    },
    'n1-highmem-2': { generation: 'n1', cpuKind: 'dedicated' },
    'f1-micro': { generation: 'f1', cpuKind: 'shared' },
    'c2-standard-4': { generation: 'c2', cpuKind: 'dedicated' },
    'a2-highgpu-1g': { generation: 'a2', cpuKind: 'dedicated' },
    't2d-standard-1': { generation: 't2d', cpuKind: 'dedicated' },
    'c4-standard-4-lssd': { generation: 'c4', cpuKind: 'dedicated', localDisk: 402.653 },
    't2a-standard-1': { architecture: 'arm64', generation: 't2a', cpuKind: 'dedicated' },
  },
  terms: {
    [`e2-standard-2@${IOWA}`]: {
      terms: {
        spot: hourly('0.020102'),
        reserved_1y: hourly('0.042218'),
        reserved_3y: hourly('0.030158'),
      },
    },
    // A shared core has no commitments.
    [`e2-micro@${IOWA}`]: {
      terms: {
        spot: hourly('0.00251275'),
        reserved_1y: hourly('0.00527725'),
        reserved_3y: hourly('0.00376975'),
      },
    },
    [`e2-medium@${IOWA}`]: {
      terms: { spot: hourly('0.010051'), reserved_1y: hourly('0.021109'), reserved_3y: hourly('0.015079') },
    },
    [`n1-standard-1@${IOWA}`]: { terms: { reserved_1y: hourly('0.02992375') } },
    [`n1-highcpu-2-d@${IOWA}`]: { terms: { reserved_1y: hourly('0.0446336787109375') } },
    [`n1-highmem-2@${IOWA}`]: { terms: { reserved_1y: hourly('0.074527') } },
    [`f1-micro@${IOWA}`]: { terms: { spot: hourly('0.0035') } },
    [`c2-standard-4@${IOWA}`]: { terms: { reserved_1y: hourly('0.1144') } },
  },
  regionPrices: {
    [IOWA]: [
      disk('pd-balanced', '0.1', true),
      disk('pd-standard', '0.04'),
      traffic('Premium Tier to Americas', true, [
        ['0', '0'],
        ['1', '0.12'],
        ['1024', '0.11'],
        ['10240', '0.08'],
      ]),
      traffic('Standard Tier', false, [
        ['0', '0'],
        ['200', '0.085'],
        ['10240', '0.065'],
        ['153600', '0.045'],
      ]),
      ADDRESS,
    ],
    [FRANKFURT]: [
      disk('pd-ssd', '0.204', true),
      disk('pd-standard', '0.048'),
      traffic('Premium Tier to Western Europe', true, [
        ['0', '0.12'],
        ['1024', '0.11'],
        ['10240', '0.085'],
      ]),
      ADDRESS,
    ],
  },
  // Shared cores, whole machines, N4, Extended Support, storage and commitments are not read, nor regions without machines.
  databasePlans: {
    [IOWA]: [
      ...plans('postgresql', 1, [
        ['db-custom-1-3840', 1, 3.75, '0.06755'],
        ['db-custom-2-7680', 2, 7.5, '0.1351'],
        ['db-custom-4-15360', 4, 15, '0.2702'],
        ['db-custom-8-30720', 8, 30, '0.5404'],
        ['db-custom-16-61440', 16, 60, '1.0808'],
        ['db-custom-32-122880', 32, 120, '2.1616'],
        ['db-custom-64-245760', 64, 240, '4.3232'],
        ['db-custom-96-368640', 96, 360, '6.4848'],
        ['db-custom-1-6656', 1, 6.5, '0.0868'],
        ['db-custom-2-13312', 2, 13, '0.1736'],
        ['db-custom-4-26624', 4, 26, '0.3472'],
        ['db-custom-8-53248', 8, 52, '0.6944'],
        ['db-custom-16-106496', 16, 104, '1.3888'],
        ['db-custom-32-212992', 32, 208, '2.7776'],
        ['db-custom-64-425984', 64, 416, '5.5552'],
        ['db-custom-96-638976', 96, 624, '8.3328'],
      ]),
      // The price of both zones.
      ...plans('postgresql', 2, [
        ['db-custom-1-3840', 1, 3.75, '0.1351'],
        ['db-custom-2-7680', 2, 7.5, '0.2702'],
        ['db-custom-4-15360', 4, 15, '0.5404'],
        ['db-custom-8-30720', 8, 30, '1.0808'],
        ['db-custom-16-61440', 16, 60, '2.1616'],
        ['db-custom-32-122880', 32, 120, '4.3232'],
        ['db-custom-64-245760', 64, 240, '8.6464'],
        ['db-custom-96-368640', 96, 360, '12.9696'],
        ['db-custom-1-6656', 1, 6.5, '0.1736'],
        ['db-custom-2-13312', 2, 13, '0.3472'],
        ['db-custom-4-26624', 4, 26, '0.6944'],
        ['db-custom-8-53248', 8, 52, '1.3888'],
        ['db-custom-16-106496', 16, 104, '2.7776'],
        ['db-custom-32-212992', 32, 208, '5.5552'],
        ['db-custom-64-425984', 64, 416, '11.1104'],
        ['db-custom-96-638976', 96, 624, '16.6656'],
      ]),
      ...plans('mysql', 1, [
        ['db-perf-optimized-N-2', 2, 16, '0.25298'],
        ['db-perf-optimized-N-4', 4, 32, '0.50596'],
        ['db-perf-optimized-N-8', 8, 64, '1.01192'],
        ['db-perf-optimized-N-16', 16, 128, '2.02384'],
        ['db-perf-optimized-N-32', 32, 256, '4.04768'],
        ['db-perf-optimized-N-48', 48, 384, '6.07152'],
        ['db-perf-optimized-N-64', 64, 512, '8.09536'],
        ['db-perf-optimized-N-80', 80, 640, '10.1192'],
        ['db-perf-optimized-N-96', 96, 768, '12.14304'],
        ['db-perf-optimized-N-128', 128, 864, '14.73472'],
      ]),
    ],
  },
  rejected: [
    {
      key: 'database plans',
      reason:
        /^one price is left out; the first is MySQL Zonal Enterprise@europe-west3: no SKU prices the RAM/,
    },
    {
      key: 'spot prices',
      reason:
        /^one price is left out; the first is t2d-standard-1@us-central1: no SKU prices the ram for spot/,
    },
    { key: `c3-standard-4-lssd@${IOWA}`, reason: /^SKUs disagree about its price: 0\.03398 and 0\.04398/ },
    { key: 'm2-ultramem-208', reason: /^has other rates than its family/ },
    { key: 'x9-standard-2', reason: /^no SKU prices the cores and the memory of the family x9/ },
    { key: 'e2-tiny', reason: /^is shared-core/ },
    { key: `c3-standard-4@${IOWA}`, reason: /^SKUs disagree about its price: 0\.03398 and 0\.04398/ },
    { key: `t2d-standard-1@${FRANKFURT}`, reason: /^no SKU prices the core of t2d-standard-1/ },
    { key: `n2d-standard-2@${FRANKFURT}`, reason: /usageUnit must be GiBy\.h or GBy\.h; it is "By\.h"/ },
    { key: 'asia-east1', reason: /^zones\/asia-east1-c: UNREACHABLE/ },
    { key: 'me-west1', reason: /could not be reached/ },
  ],
};

import type { OfferedPlan } from '../../src/domain/database-plan.ts';
import { type CatalogueCase, fixture, offersIn, regionPrice } from './catalogue-case.ts';

const offer = offersIn('EUR');

const perHour = { per: 'hour', currency: 'EUR' } as const;

const plan = (rest: Omit<OfferedPlan, 'price' | 'ramUnit'>, amount: string): OfferedPlan => ({
  ...rest,
  ramUnit: 'Binary',
  price: { amount, ...perHour },
});

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  pages: [
    {
      path: '/1.3/zone',
      query: {},
      json: fixture('upcloud/zone.json'),
      list: 'zones/zone',
      required: [
        '/zones',
        '/zones/zone',
        '/zones/zone/0/id',
        '/zones/zone/0/description',
        '/zones/zone/0/public',
      ],
      prices: [],
    },
    {
      path: '/1.3/plan',
      query: {},
      json: fixture('upcloud/plan.json'),
      list: 'plans/plan',
      required: [
        '/plans',
        '/plans/plan',
        '/plans/plan/0/name',
        '/plans/plan/0/core_number',
        '/plans/plan/0/memory_amount',
      ],
      prices: [],
    },
    {
      path: '/1.3/price',
      query: {},
      json: fixture('upcloud/price.json'),
      list: 'prices/zone',
      required: [
        '/prices',
        '/prices/zone',
        '/prices/zone/0/name',
        '/prices/zone/0/server_plan_1xCPU-1GB/amount',
        '/prices/zone/0/server_plan_1xCPU-1GB/price',
      ],
      prices: ['/prices/zone/0/server_plan_1xCPU-1GB/price', '/prices/zone/1/server_plan_1xCPU-1GB/price'],
      otherRequired: ['/prices/zone/0/storage_maxiops/price', '/prices/zone/0/ipv4_address/amount'],
      otherPrices: [
        '/prices/zone/0/storage_maxiops/price',
        '/prices/zone/0/ipv4_address/price',
        '/prices/zone/0/public_ipv4_bandwidth_out/price',
        '/prices/zone/0/managed_database_1x1xCPU-2GB-25GB/price',
      ],
    },
    {
      path: '/1.3/database/service-types',
      query: {},
      json: fixture('upcloud/database-service-types.json'),
      list: 'pg/service_plans',
      maps: ['', '/*'],
      required: [],
      prices: [],
      otherRequired: ['/pg/service_plans/0/node_count', '/pg/service_plans/0/zones/zone'],
      additional: true,
    },
  ],
  empty: {
    '/1.3/database/service-types': {},
    '/1.3/zone': { zones: { zone: [] } },
    '/1.3/plan': { plans: { plan: [] } },
    '/1.3/price': { prices: { zone: [] } },
  },
  uncounted: ['/1.3/zone', '/1.3/plan', '/1.3/price', '/1.3/database/service-types'],
  databasePlans: {
    'de-fra1': [
      plan(
        { ...{ engine: 'postgresql', name: '1x1xCPU-2GB-25GB', nodes: 1, cpu: 1, ram: 2, storage: 26.844 } },
        '0.041667',
      ),
      // us-chi1 is no zone of the list.
      plan(
        { ...{ engine: 'mysql', name: '2x2xCPU-4GB-50GB', nodes: 2, cpu: 2, ram: 4, storage: 53.687 } },
        '0.166667',
      ),
    ],
    'fi-hel1': [
      plan(
        { ...{ engine: 'postgresql', name: '1x1xCPU-2GB-25GB', nodes: 1, cpu: 1, ram: 2, storage: 26.844 } },
        '0.045',
      ),
      plan({ ...{ engine: 'valkey', name: '1x1xCPU-2GB', nodes: 1, cpu: 1, ram: 2, storage: null } }, '0.04'),
    ],
  },
  regions: { 'de-fra1': 'Frankfurt #1', 'fi-hel1': 'Helsinki #1' },
  offers: [
    // Cents: 1.0416 of them an hour.
    offer('1xCPU-1GB', 'de-fra1', 1, 1, '0.010416'),
    offer('1xCPU-1GB', 'fi-hel1', 1, 1, '0.011'),
    // Its prices do not name it in Helsinki, where it is not sold.
    offer('2xCPU-4GB', 'de-fra1', 2, 4, '0.03869'),
    offer('HIMEM-2xCPU-8GB', 'de-fra1', 2, 8, '0.059523', 'discontinued'),
    offer('HIMEM-2xCPU-8GB', 'fi-hel1', 2, 8, '0.059523', 'discontinued'),
    // Sold and priced in only one zone.
    offer('GPU-8xCPU-64GB-1xL40S', 'fi-hel1', 8, 64, '1.505', 'accelerated'),
    offer('PREMIUM-2xCPU-4GB', 'de-fra1', 2, 4, '0.0375'),
    offer('PREMIUM-2xCPU-4GB', 'fi-hel1', 2, 4, '0.0375'),
    // No machine on demand has its size.
    offer('SPOT-1xCPU-1GB', 'de-fra1', 1, 2, '0.004', 'unavailable'),
    offer('PREMIUM-SPOT-2xCPU-4GB', 'de-fra1', 2, 4, '0.015', 'unavailable'),
    offer('PREMIUM-SPOT-2xCPU-4GB', 'fi-hel1', 2, 4, '0.015', 'unavailable'),
    offer('DEV-1xCPU-1GB-10GB', 'de-fra1', 1, 1, '0', 'zero_price'),
  ],
  facts: {
    '1xCPU-1GB': { includedIpv4: 1 },
    '2xCPU-4GB': { includedIpv4: 1 },
    'HIMEM-2xCPU-8GB': { includedIpv4: 1 },
  },
  // The price of 672 hours.
  terms: {
    '1xCPU-1GB@de-fra1': { monthlyCap: '6.999552' },
    '1xCPU-1GB@fi-hel1': { monthlyCap: '7.392' },
    '2xCPU-4GB': { monthlyCap: '25.99968' },
    'HIMEM-2xCPU-8GB': { monthlyCap: '39.999456' },
    'GPU-8xCPU-64GB-1xL40S': { monthlyCap: '1011.36' },
    // The price of the spot plan.
    'PREMIUM-2xCPU-4GB': {
      terms: { spot: { price: { amount: '0.015', per: 'hour', currency: 'EUR' } } },
      monthlyCap: '25.2',
    },
    'SPOT-1xCPU-1GB': { monthlyCap: '2.688' },
    'PREMIUM-SPOT-2xCPU-4GB': { monthlyCap: '10.08' },
  },
  // Cents, for an hour or for one GB of traffic.
  regionPrices: {
    'de-fra1': [
      regionPrice('block_storage', 'maxiops', 'GiB', '0.00031', perHour),
      regionPrice('block_storage', 'standard', 'GiB', '0.000116', { ...perHour, isDefault: false }),
      regionPrice('ipv4', 'ipv4_address', 'address', '0.003', perHour),
      regionPrice('traffic_out', 'public_ipv4_bandwidth_out', 'GB', '0.011', {
        per: undefined,
        currency: 'EUR',
      }),
    ],
    'fi-hel1': [
      regionPrice('block_storage', 'maxiops', 'GiB', '0.00031', perHour),
      regionPrice('ipv4', 'ipv4_address', 'address', '0.003', perHour),
    ],
  },
  rejected: [
    { key: 'STARTER-0xCPU-1GB', reason: /^core_number must be a whole number above 0; it is 0$/ },
    {
      key: 'DEV-1xCPU-1GB-10GB@fi-hel1',
      reason: /^server_plan_DEV-1xCPU-1GB-10GB\.amount must be 1, .* it is 10$/,
    },
    { key: 'prices of mars-oly1', reason: /^name is mars-oly1, which \/1\.3\/zone does not list/ },
  ],
};

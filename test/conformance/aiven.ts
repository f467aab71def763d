import type { OfferedPlan } from '../../src/domain/database-plan.ts';
import { type CatalogueCase, fixture } from './catalogue-case.ts';

const plan = (facts: Omit<OfferedPlan, 'price' | 'ramUnit'>, amount: string): OfferedPlan => ({
  ...{ ...facts, ramUnit: 'Binary' },
  price: { amount, per: 'hour', currency: 'USD' },
});
const business = { engine: 'postgresql', name: 'business-4', nodes: 2, ram: 4, storage: 85.899 } as const;

/** Aiven has no machines: the case has plans alone. */
export const catalogueCase: CatalogueCase = {
  now: new Date('2026-11-26T00:00:00Z'),
  pages: [
    {
      path: '/v1/clouds',
      query: {},
      json: fixture('aiven/clouds.json'),
      list: 'clouds',
      required: ['/clouds', '/clouds/0/cloud_name'],
      prices: [],
    },
    {
      path: '/v1/service_types',
      query: {},
      json: fixture('aiven/service-types.json'),
      list: 'service_types',
      maps: ['/service_types', '/service_types/*/service_plans/*/regions'],
      required: ['/service_types'],
      prices: [],
      otherRequired: [
        '/service_types/opensearch/service_plans',
        '/service_types/pg/service_plans/0/service_plan',
        '/service_types/pg/service_plans/0/node_count',
        '/service_types/pg/service_plans/0/regions',
        '/service_types/pg/service_plans/0/regions/aws-eu-west-1/price_usd',
      ],
      otherPrices: ['/service_types/pg/service_plans/0/regions/aws-eu-west-1/price_usd'],
    },
  ],
  empty: { '/v1/clouds': { clouds: [] }, '/v1/service_types': { service_types: {} } },
  uncounted: ['/v1/clouds', '/v1/service_types'],
  regions: {
    'aws-eu-west-1': 'Europe, Ireland - Amazon Web Services: Ireland',
    'google-europe-west3': 'Europe, Germany - Google Cloud: Frankfurt',
    'do-fra': 'do-fra',
  },
  offers: [],
  databasePlans: {
    'aws-eu-west-1': [
      plan({ ...business, cpu: 2 }, '0.27'),
      // The nodes share 245,760 MiB.
      plan({ engine: 'opensearch', name: 'business-4', nodes: 3, cpu: 2, ram: 4, storage: 85.899 }, '0.617'),
    ],
    'google-europe-west3': [
      plan({ ...business, cpu: 1 }, '0.2945'),
      plan({ engine: 'clickhouse', name: 'business-16', nodes: 3, cpu: 2, ram: 16, storage: null }, '1.37'),
    ],
    'do-fra': [
      plan({ engine: 'postgresql', name: 'hobbyist', nodes: 1, cpu: 1, ram: 2, storage: 8.59 }, '0.026'),
      plan({ engine: 'valkey', name: 'startup-1.5', nodes: 1, cpu: 1, ram: 1.5, storage: null }, '0.06'),
    ],
  },
  rejected: [
    {
      key: 'database plans',
      reason:
        /^5 prices are left out; the first is pg\/startup-4: regions\.aws-eu-west-1\.price_usd must be a decimal amount; it is null$/,
    },
  ],
};

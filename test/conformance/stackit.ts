import type { OfferedPlan } from '../../src/domain/database-plan.ts';
import { type CatalogueCase, fixture, offersIn, regionPrice } from './catalogue-case.ts';

const SERVICES = '/v1/skus';
const offer = offersIn('EUR', 'Decimal');
const perHour = { per: 'hour', currency: 'EUR' } as const;

const plan = (name: string, nodes: number, amount: string): OfferedPlan => ({
  ...{ engine: 'postgresql', name, nodes, cpu: 4, ram: 8, ramUnit: 'Decimal', storage: 0 },
  price: { amount, ...perHour },
});
const capacity = (amount: string) => regionPrice('block_storage', 'capacity', 'GB', amount, perHour);
const address = (amount: string) => regionPrice('ipv4', 'ipv4', 'address', amount, perHour);

/** Services in the format of the recorded ones. */
export const catalogueCase: CatalogueCase = {
  now: new Date('2026-06-10T00:00:00Z'),
  pages: [
    {
      path: SERVICES,
      query: {},
      json: fixture('stackit/skus.json'),
      list: 'services',
      required: [
        '/services',
        '/services/0/product',
        '/services/0/name',
        '/services/0/region',
        '/services/0/deprecated',
        '/services/0/priceListVisibility',
        '/services/0/currency',
        '/services/0/unitBilling',
        '/services/0/attributes',
        '/services/0/attributes/flavor',
        '/services/0/attributes/vCPU',
        '/services/0/attributes/ram',
      ],
      prices: ['/services/0/price', '/services/1/price', '/services/2/price'],
      otherRequired: ['/services/9/currency', '/services/16/attributes/nodes'],
      otherPrices: ['/services/9/price', '/services/14/price', '/services/16/price'],
    },
  ],
  empty: { [SERVICES]: { services: [] } },
  uncounted: [SERVICES],
  regions: { eu01: 'EU01', 'eu01-m': 'EU01-M', eu02: 'EU02' },
  offers: [
    offer('g1.2', 'eu01', 2, 8, '0.0612345678'),
    // In several availability zones at once.
    offer('g1.2', 'eu01-m', 2, 8, '0.1224691356'),
    offer('g1.2', 'eu02', 2, 8, '0.0643'),
    offer('s1.4', 'eu01', 4, 8, '0.021'),
    offer('n1.14d.g1', 'eu01', 14, 120, '2.5', 'accelerated'),
  ],
  facts: {
    'g1.2': { architecture: 'x86_64', cpuKind: 'dedicated' },
    's1.4': { architecture: 'x86_64', cpuKind: 'shared' },
    'n1.14d.g1': { architecture: 'x86_64', cpuKind: 'dedicated' },
  },
  regionPrices: {
    eu01: [capacity('0.0000907638'), address('0.00405555556')],
    'eu01-m': [capacity('0.0001336096')],
    eu02: [capacity('0.0000953'), address('0.00425833')],
  },
  databasePlans: {
    eu01: [
      plan('PostgreSQL-Flex-4.8-Single', 1, '0.23402944444'),
      // The price of three nodes.
      plan('PostgreSQL-Flex-4.8-Replica', 3, '0.40630792'),
    ],
  },
  rejected: [
    {
      key: 'General Purpose Server-g1.half-EU01',
      reason: /^attributes\.vCPU must be a whole number above 0; it is 1\.5$/,
    },
  ],
};

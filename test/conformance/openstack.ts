import type { ExclusionReason, Offer } from '../../src/domain/machine.ts';
import type { SourcePrice } from '../../src/domain/prices/price.ts';
import { type CatalogueCase, fixture } from './catalogue-case.ts';

function offer(
  name: string,
  cpu: number,
  ram: number,
  price: Partial<SourcePrice>,
  excluded?: ExclusionReason,
): Offer {
  const stated = { amount: '', per: 'hour', currency: 'EUR', ...price } as const;
  const found = { regionCode: 'dc1', name, cpu, ram, ramUnit: 'Binary', price: stated } as const;
  return excluded === undefined ? found : { ...found, excluded };
}

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  options: (upstream) => ({
    provider: 'Acme Cloud',
    region: 'dc1',
    regionName: 'Hall 1, Basel',
    prices: `${upstream}/prices.json`,
  }),
  pages: [
    {
      path: '/v2.1/flavors/detail',
      query: {},
      json: fixture('openstack/flavors-1.json'),
      list: 'flavors',
      required: [
        '/flavors',
        '/flavors/0/name',
        '/flavors/0/ram',
        '/flavors/0/vcpus',
        '/flavors_links/0/rel',
        '/flavors_links/0/href',
      ],
      prices: [],
    },
    {
      path: '/v2.1/flavors/detail',
      // The first page's link names another host.
      query: { limit: '6', marker: '6' },
      json: fixture('openstack/flavors-2.json'),
      list: 'flavors',
      required: ['/flavors', '/flavors/4/vcpus'],
      prices: [],
    },
    {
      path: '/prices.json',
      endpoint: '{prices}',
      query: {},
      anonymous: true,
      json: fixture('openstack/prices.json'),
      list: '',
      required: ['/0/name', '/0/price', '/0/per', '/0/currency'],
      prices: ['/0/price', '/1/price', '/12/price'],
    },
  ],
  empty: { '/v2.1/flavors/detail': { flavors: [] }, '{prices}': [] },
  uncounted: ['/v2.1/flavors/detail', '{prices}'],
  omitsNext: ['/v2.1/flavors/detail'],
  regions: { dc1: 'Hall 1, Basel' },
  offers: [
    offer('c2.small', 2, 4, { amount: '0.019' }),
    // The row for dc2 has another price.
    offer('c2.large', 8, 16, { amount: '0.076' }),
    offer('c2.nano', 1, 0.5, { amount: '0.003' }),
    offer('g1.large', 8, 64, { amount: '1.15' }, 'accelerated'),
    offer('c1.large', 8, 16, { amount: '0.08' }, 'unavailable'),
    offer('team.huge', 32, 128, { amount: '0.31' }, 'unavailable'),
    offer('w2.small', 2, 4, { amount: '0.041' }, 'licensed'),
    offer('c2.medium', 4, 8, { amount: '27.75', per: 'month', currency: 'USD' }),
  ],
  facts: {
    'c2.small': { cpuKind: 'shared' },
    'c2.large': { cpuKind: 'dedicated', architecture: 'arm64' },
  },
  rejected: [
    { key: 'test.unpriced@dc1', reason: /^the price list has no row for it/ },
    {
      key: 'test.twice@dc1',
      reason: /^the price list has it on row \d+ and row \d+; keep one of these rows$/,
    },
    {
      key: 'test.wrong@dc1',
      reason: /^prices row \d+: per must be minute, hour or month; it is "day"$/,
    },
  ],
};

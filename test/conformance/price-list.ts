import type { ExclusionReason, MemoryUnit, Offer } from '../../src/domain/machine.ts';
import type { SourcePrice } from '../../src/domain/prices/price.ts';
import { type CatalogueCase, fixture } from './catalogue-case.ts';

function offer(
  name: string,
  regionCode: string,
  cpu: number,
  [ram, ramUnit]: readonly [number, MemoryUnit],
  price: Partial<SourcePrice>,
  excluded?: ExclusionReason,
): Offer {
  const stated = { amount: '', per: 'hour', currency: 'CHF', ...price } as const;
  const found = { regionCode, name, cpu, ram, ramUnit, price: stated };
  return excluded === undefined ? found : { ...found, excluded };
}

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  basePath: '/lists/machines.json',
  options: () => ({ provider: 'Acme Cloud' }),
  pages: [
    {
      path: '/lists/machines.json',
      endpoint: '{url}',
      query: {},
      json: fixture('price-list/machines.json'),
      list: '',
      required: ['region_code', 'name', 'cpu', 'ram', 'ram_unit', 'price', 'per', 'currency'].map(
        (column) => `/0/${column}`,
      ),
      prices: ['/0/price', '/1/price', '/4/price'],
    },
  ],
  empty: { '{url}': [] },
  uncounted: ['{url}'],
  // No row of dc2 names it; those of dc3 differ.
  regions: { dc1: 'Hall 1, Basel', dc2: 'dc2' },
  offers: [
    offer('m.small', 'dc1', 2, [4, 'Binary'], { amount: '0.021' }),
    offer('m.large', 'dc1', 8, [32, 'Decimal'], { amount: '0.084' }),
    offer('m.nano', 'dc1', 1, [0.5, 'Binary'], { amount: '3.65', per: 'month', currency: 'EUR' }),
    offer('m.gpu', 'dc1', 8, [64, 'Binary'], { amount: '1.4' }, 'accelerated'),
    offer('m.small', 'dc2', 2, [4, 'Binary'], { amount: '0.00035', per: 'minute' }),
    offer('m.old', 'dc2', 2, [4, 'Binary'], { amount: '0.02' }, 'discontinued'),
    offer('m.zero', 'dc2', 2, [4, 'Binary'], { amount: '0' }, 'zero_price'),
    offer('m.small', 'dc3', 2, [4, 'Binary'], { amount: '0.021' }),
    offer('m.large', 'dc3', 8, [32, 'Binary'], { amount: '0.084' }),
  ],
  facts: {
    'm.small': {
      architecture: 'x86_64',
      generation: 'Genoa',
      cpuKind: 'shared',
      localDisk: 40.5,
      network: 1000,
      includedTraffic: 20_000,
      includedIpv4: 1,
      orderableUntil: '2027-03-01T00:00:00Z',
      retiresAt: '2027-09-30T10:00:00Z',
    },
  },
  rejected: [
    {
      key: 'dc3',
      reason:
        /^region_name must be the same on all rows of dc3; it is "Hall 3" on row 8, "Hall Three" on row 9$/,
    },
    { key: 'm.tera@dc1', reason: /^row 10: ram_unit must be GB, GiB or MiB; it is "TiB"$/ },
    { key: 'm.half@dc2', reason: /^row 11: cpu must be a whole number above 0; it is 1.5$/ },
  ],
};

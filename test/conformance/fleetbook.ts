import type { MemoryUnit, Offer } from '../../src/domain/machine.ts';
import { type CatalogueCase, type FixturePage, fixture } from './catalogue-case.ts';

function offer(
  name: string,
  regionCode: string,
  cpu: number,
  [ram, ramUnit]: readonly [number, MemoryUnit],
  amount: string,
): Offer {
  return { regionCode, name, cpu, ram, ramUnit, price: { amount, per: 'minute', currency: 'GBP' } };
}

/** The answer's header with the age of the other instance's data. */
const AS_OF = { 'fleetbook-as-of': '2026-02-28T23:59:00.000Z' };

function machines(region: string, id: number, rest: Pick<FixturePage, 'required' | 'prices'>): FixturePage {
  const query = { provider: '1000', region: String(id) };
  const json = fixture(`fleetbook/machines-${region}.json`);
  return { path: '/v1/machines', query, json, list: '', region, headers: AS_OF, ...rest };
}

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  options: () => ({ provider: 'acme cloud', currency: 'GBP' }),
  pages: [
    {
      path: '/v1/providers',
      query: {},
      headers: AS_OF,
      json: fixture('fleetbook/providers.json'),
      list: '',
      required: [
        '/1/id',
        '/1/name',
        '/1/regions',
        '/1/regions/0/id',
        '/1/regions/0/name',
        '/1/regions/0/code',
      ],
      prices: [],
    },
    machines('dc1', 11, {
      required: [
        '/0/name',
        '/0/cpu',
        '/0/ram',
        '/0/ram_unit',
        '/0/price',
        '/0/provider',
        '/0/provider/id',
        '/0/region/id',
      ],
      prices: ['/0/price', '/2/price'],
    }),
    machines('dc2', 12, { required: ['/0/price'], prices: ['/0/price'] }),
    // No machine there is within the limits.
    machines('dc4', 14, { required: [], prices: [] }),
  ],
  empty: { '/v1/providers': [], '/v1/machines': [] },
  uncounted: ['/v1/providers', '/v1/machines'],
  regions: { dc1: 'Hall 1, Basel', dc2: 'Hall 2, Olten', dc4: 'Hall 4' },
  offers: [
    offer('m.small', 'dc1', 2, [4, 'Binary'], '0.00035'),
    offer('m.large', 'dc1', 8, [32, 'Decimal'], '0.0014'),
    offer('m.tiny', 'dc1', 1, [1, 'Binary'], '0.0000001'),
    offer('m.small', 'dc2', 2, [4, 'Binary'], '0.000366666666666667'),
  ],
  rejected: [
    {
      key: 'm.stray@dc2',
      reason: /^requested provider\.id 1000 and region\.id 12, got 1000 and 11$/,
    },
  ],
};

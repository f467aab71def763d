import { type CatalogueCase, fixture, type Json, offersIn, regionPrice } from './catalogue-case.ts';

const query = (page: number) => ({ page: String(page), per_page: '50' });

const offer = offersIn('EUR', 'Decimal');

const perMonth = { per: 'month', currency: 'EUR' } as const;
const volume = regionPrice('block_storage', 'volume', 'GiB', '0.044', perMonth);
// A euro for each of 1024 GiB.
const traffic = regionPrice('traffic_out', 'traffic', 'GiB', '0.0009765625', {
  per: undefined,
  currency: 'EUR',
});

function empty(list: string): Json {
  return { [list]: [], meta: { pagination: { page: 1, next_page: null, total_entries: 0 } } };
}

/** 20 × 2^40 bytes, as GB. */
const includedTraffic = 21_990.233;

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  pages: [
    {
      path: '/v1/locations',
      query: query(1),
      json: fixture('hetzner/locations.json'),
      list: 'locations',
      required: [
        '/locations',
        '/locations/0/name',
        '/locations/0/city',
        '/meta',
        '/meta/pagination/next_page',
      ],
      prices: [],
    },
    {
      path: '/v1/server_types',
      query: query(1),
      json: fixture('hetzner/server_types-1.json'),
      list: 'server_types',
      required: [
        '/server_types',
        '/server_types/0/name',
        '/server_types/0/cores',
        '/server_types/0/memory',
        '/server_types/0/prices',
        '/server_types/0/prices/1/location',
        '/server_types/0/prices/1/price_hourly',
        '/server_types/0/prices/1/price_hourly/net',
        '/server_types/2/locations/1/name',
        '/meta/pagination/page',
        '/meta/pagination/next_page',
      ],
      prices: ['/server_types/0/prices/0/price_hourly/net', '/server_types/2/prices/2/price_hourly/net'],
    },
    {
      path: '/v1/server_types',
      query: query(2),
      json: fixture('hetzner/server_types-2.json'),
      list: 'server_types',
      required: ['/server_types/1/cores', '/meta/pagination'],
      prices: ['/server_types/0/prices/1/price_hourly/net'],
    },
    {
      path: '/v1/pricing',
      query: {},
      json: fixture('hetzner/pricing.json'),
      list: 'pricing/primary_ips/0/prices',
      required: ['/pricing', '/pricing/currency'],
      prices: [],
      otherRequired: [
        '/pricing/volume',
        '/pricing/primary_ips',
        '/pricing/primary_ips/0/prices',
        '/pricing/primary_ips/0/prices/0/price_monthly',
      ],
      otherPrices: [
        '/pricing/volume/price_per_gb_month/net',
        '/pricing/primary_ips/0/prices/0/price_monthly/net',
      ],
    },
  ],
  empty: {
    '/v1/locations': empty('locations'),
    '/v1/server_types': empty('server_types'),
    '/v1/pricing': { pricing: { currency: 'EUR', primary_ips: [] } },
  },
  uncounted: ['/v1/pricing'],
  regions: { fsn1: 'Falkenstein', hel1: 'Helsinki', ash: 'Ashburn, VA' },
  offers: [
    offer('cx22', 'fsn1', 2, 4, '0.006'),
    offer('cx22', 'hel1', 2, 4, '0.0062'),
    // `deprecated: false` next to a filled `deprecation`. The sync compares its date, which has passed.
    offer('cx11', 'fsn1', 1, 2, '0.0052'),
    // Announced there; no longer sold in hel1; unchanged in ash.
    offer('cpx11', 'fsn1', 2, 2, '0.007'),
    offer('cpx11', 'hel1', 2, 2, '0.007', 'unavailable'),
    offer('cpx11', 'ash', 2, 2, '0.008'),
    offer('cax11', 'fsn1', 2, 4, '0.0064', 'sold_out'),
    offer('cax11', 'hel1', 2, 4, '0.0064'),
    // The sync applies the limits.
    offer('ccx63', 'ash', 48, 192, '0.465'),
    offer('cpx21', 'fsn1', 3, 4, '0.0118'),
    // To be announced in December.
    offer('cpx31', 'hel1', 4, 8, '0.0216'),
  ],
  facts: {
    cx22: { architecture: 'x86_64', cpuKind: 'shared', localDisk: 40, includedTraffic },
    cx11: {
      architecture: 'x86_64',
      cpuKind: 'shared',
      localDisk: 40,
      includedTraffic,
      orderableUntil: '2024-09-06T00:00:00Z',
    },
    'cpx11@fsn1': {
      architecture: 'x86_64',
      cpuKind: 'shared',
      localDisk: 40,
      includedTraffic,
      orderableUntil: '2027-01-01T00:00:00Z',
    },
    cpx11: { architecture: 'x86_64', cpuKind: 'shared', localDisk: 40, includedTraffic },
    cax11: { architecture: 'arm64', cpuKind: 'shared', localDisk: 40, includedTraffic },
    ccx63: { architecture: 'x86_64', cpuKind: 'dedicated', localDisk: 960, includedTraffic },
    cpx21: { architecture: 'x86_64', cpuKind: 'shared', localDisk: 40, includedTraffic },
    // Its disk is network storage.
    cpx31: {
      architecture: 'x86_64',
      cpuKind: 'shared',
      includedTraffic,
      orderableUntil: '2027-03-01T00:00:00Z',
    },
  },
  terms: {
    'cx22@fsn1': { monthlyCap: '3.79' },
    'cx22@hel1': { monthlyCap: '3.9' },
    cx11: { monthlyCap: '3.29' },
    cpx11: { monthlyCap: '4.35' },
    'cpx11@ash': { monthlyCap: '4.99' },
    cax11: { monthlyCap: '3.99' },
    ccx63: { monthlyCap: '289.99' },
    cpx21: { monthlyCap: '7.05' },
    cpx31: { monthlyCap: '13.1' },
  },
  regionPrices: {
    fsn1: [traffic, volume, regionPrice('ipv4', 'primary_ip', 'address', '0.5', perMonth)],
    // It has no machine and no address for sale with a price.
    hel1: [traffic, volume],
    ash: [traffic, volume, regionPrice('ipv4', 'primary_ip', 'address', '0.6', perMonth)],
  },
  rejected: [
    { key: 'cpx21@mars1', reason: /^prices\[1\]\.location names mars1, which \/v1\/locations does not list/ },
  ],
};

import { type CatalogueCase, fixture, offersIn } from './catalogue-case.ts';

const offer = offersIn('USD');

const everywhere = ['nyc3', 'sfo1', 'ams3'];
const unavailable = { excluded: 'unavailable' } as const;
const query = (page: number) => ({ page: String(page), per_page: '200' });

/** 1,000 GiB, as GB. */
const includedTraffic = 1073.742;
const includedIpv4 = 1;

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  pages: [
    {
      path: '/v2/regions',
      query: query(1),
      json: fixture('digitalocean/regions.json'),
      list: 'regions',
      required: [
        '/regions',
        '/regions/0/slug',
        '/regions/0/name',
        '/regions/0/available',
        '/meta',
        '/meta/total',
      ],
      prices: [],
    },
    {
      path: '/v2/sizes',
      query: query(1),
      json: fixture('digitalocean/sizes-1.json'),
      list: 'sizes',
      required: [
        '/sizes',
        '/sizes/0/slug',
        '/sizes/0/memory',
        '/sizes/0/vcpus',
        '/sizes/0/regions',
        '/sizes/0/available',
        '/meta',
        '/meta/total',
      ],
      prices: ['/sizes/0/price_hourly'],
    },
    {
      path: '/v2/sizes',
      query: query(2),
      json: fixture('digitalocean/sizes-2.json'),
      list: 'sizes',
      required: ['/sizes/0/memory', '/meta/total'],
      prices: ['/sizes/0/price_monthly'],
    },
  ],
  empty: {
    '/v2/regions': { regions: [], links: {}, meta: { total: 0 } },
    '/v2/sizes': { sizes: [], links: {}, meta: { total: 0 } },
  },
  regions: { nyc3: 'New York 3', sfo1: 'San Francisco 1', ams3: 'Amsterdam 3' },
  offers: [
    // A float of 32 bits: the source's value is kept to the last digit.
    offer('s-1vcpu-1gb', 'nyc3', 1, 1, '0.007439999841153622'),
    offer('s-1vcpu-1gb', 'ams3', 1, 1, '0.007439999841153622'),
    // The region accepts no new Droplets.
    offer('s-1vcpu-1gb', 'sfo1', 1, 1, '0.007439999841153622', unavailable),
    // Sold out everywhere, or switched off.
    ...everywhere.map((region) => offer('s-2vcpu-2gb', region, 2, 2, '0.02232000045478344', unavailable)),
    ...everywhere.map((region) => offer('c-2', region, 2, 4, '0.0625', unavailable)),
    ...everywhere.map((region) =>
      offer('gpu-h100x1-80gb', region, 20, 240, '3.39', { excluded: 'accelerated' }),
    ),
    offer('m-2vcpu-16gb', 'nyc3', 2, 16, '84', { per: 'month' }),
    offer('m-2vcpu-16gb', 'ams3', 2, 16, '84', { per: 'month', excluded: 'unavailable' }),
    offer('m-2vcpu-16gb', 'sfo1', 2, 16, '84', { per: 'month', excluded: 'unavailable' }),
    offer('s-1vcpu-512mb-free', 'nyc3', 1, 0.5, '0', { excluded: 'zero_price' }),
    offer('s-1vcpu-512mb-free', 'ams3', 1, 0.5, '0', unavailable),
    offer('s-1vcpu-512mb-free', 'sfo1', 1, 0.5, '0', unavailable),
  ],
  facts: {
    's-1vcpu-1gb': { cpuKind: 'shared', localDisk: 26.844, includedTraffic, includedIpv4 },
    's-2vcpu-2gb': { cpuKind: 'shared', localDisk: 26.844, includedTraffic, includedIpv4 },
    'c-2': { cpuKind: 'dedicated', localDisk: 26.844, includedTraffic, includedIpv4 },
    'gpu-h100x1-80gb': { localDisk: 26.844, includedTraffic, includedIpv4 },
    'm-2vcpu-16gb': { cpuKind: 'dedicated', localDisk: 26.844, includedTraffic, includedIpv4 },
    's-1vcpu-512mb-free': { cpuKind: 'shared', localDisk: 26.844, includedTraffic, includedIpv4 },
  },
  terms: {
    's-1vcpu-1gb': { monthlyCap: '5' },
    's-2vcpu-2gb': { monthlyCap: '15' },
    'c-2': { monthlyCap: '42' },
    'gpu-h100x1-80gb': { monthlyCap: '2522.16' },
    'm-2vcpu-16gb': { monthlyCap: '84' },
  },
  rejected: [
    { key: 'm-2vcpu-16gb@lon1', reason: /^regions names lon1, which \/v2\/regions does not list/ },
    { key: 's-4vcpu-8gb', reason: /^vcpus must be a whole number above 0; it is "4"$/ },
  ],
};

import { type CatalogueCase, fixture, offersIn, regionPrice } from './catalogue-case.ts';

const ZONES = '/v2/zone';
const TYPES = '/v2/instance-type';
const PRICES = '/api/pricing/opencompute';

const offer = offersIn('EUR');

const perHour = { per: 'hour', currency: 'EUR' } as const;
/** The same in each zone. */
const prices = [
  regionPrice('block_storage', 'volume', 'GiB', '0.00014', perHour),
  regionPrice('block_storage', 'volume_data', 'GiB', '0.00006', { ...perHour, isDefault: false }),
  regionPrice('ipv4', 'eip_address', 'address', '0.01389', perHour),
  regionPrice('traffic_out', 'traffic', 'GB', '0.02', { per: undefined, currency: 'EUR' }),
];

/** Zones and types from the API's OpenAPI document, prices in the format of the public list. */
export const catalogueCase: CatalogueCase = {
  now: new Date('2026-11-23T00:00:00Z'),
  pages: [
    {
      path: ZONES,
      query: {},
      json: fixture('exoscale/zone.json'),
      list: 'zones',
      required: ['/zones', '/zones/0/name'],
      prices: [],
    },
    {
      path: TYPES,
      query: {},
      json: fixture('exoscale/instance-type.json'),
      list: 'instance-types',
      required: [
        '/instance-types',
        '/instance-types/0/family',
        '/instance-types/0/size',
        '/instance-types/0/cpus',
        '/instance-types/0/memory',
        '/instance-types/0/zones',
      ],
      prices: [],
    },
    {
      path: PRICES,
      query: {},
      json: fixture('exoscale/opencompute.json'),
      list: 'eur',
      required: ['/eur', '/eur/running_medium', '/eur/running_cpu_extra_large'],
      prices: ['/eur/running_medium', '/eur/running_extra_large', '/eur/running_cpu_extra_large'],
      otherRequired: ['/eur/volume', '/eur/volume_data', '/eur/eip_address', '/eur/traffic'],
      otherPrices: ['/eur/volume', '/eur/volume_data', '/eur/eip_address', '/eur/traffic'],
    },
  ],
  empty: { [ZONES]: { zones: [] }, [TYPES]: { 'instance-types': [] }, [PRICES]: { eur: {} } },
  uncounted: [ZONES, TYPES, PRICES],
  regions: { 'ch-gva-2': 'ch-gva-2', 'de-fra-1': 'de-fra-1' },
  offers: [
    offer('standard.medium', 'ch-gva-2', 2, 4, '0.04666'),
    offer('standard.medium', 'de-fra-1', 2, 4, '0.04666'),
    offer('standard.extra-large', 'de-fra-1', 4, 16, '0.18667'),
    offer('cpu.extra-large', 'ch-gva-2', 8, 16, '0.23333'),
    // For accounts with a permission.
    offer('storage.jumbo', 'ch-gva-2', 24, 225, '1.86667', 'unavailable'),
    offer('gpu3.small', 'de-fra-1', 12, 56, '1.0453', 'accelerated'),
    offer('gpua5000.small', 'de-fra-1', 12, 56, '1.4', 'accelerated'),
    offer('gpu3080ti.small', 'ch-gva-2', 12, 56, '1.1', 'accelerated'),
    offer('standard.tiny', 'ch-gva-2', 1, 1, '0.01458'),
  ],
  regionPrices: { 'ch-gva-2': prices, 'de-fra-1': prices },
  rejected: [
    { key: 'memory.huge', reason: /^cpus must be a whole number above 0; it is 0$/ },
    { key: 'standard.tiny@xx-mars-1', reason: /^zones holds xx-mars-1, which \/v2\/zone does not list$/ },
    { key: 'gpu9.small', reason: /^eur\.running_gpu9_small is missing/ },
    { key: 'standard.nano', reason: /^eur\.running_nano is missing/ },
  ],
};

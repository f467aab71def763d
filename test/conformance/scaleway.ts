import type { OfferedPlan } from '../../src/domain/database-plan.ts';
import { scalewayNode } from '../support/provider-answers.ts';
import { type CatalogueCase, type FixturePage, fixture, offersIn, regionPrice } from './catalogue-case.ts';

const SERVERS = '/instance/v1/zones/{zone}/products/servers';
const AVAILABILITY = `${SERVERS}/availability`;
const PRODUCTS = '/product-catalog/v2alpha1/public-catalog/products';
// Milan is in none of this project's lists.
const OTHER_ZONES = [
  'it-mil-1',
  'fr-par-2',
  'fr-par-3',
  'nl-ams-2',
  'nl-ams-3',
  'pl-waw-1',
  'pl-waw-2',
  'pl-waw-3',
];

const offer = offersIn('EUR');

function page(
  zone: string,
  endpoint: string,
  file: string,
  total: number,
  rest: Partial<FixturePage> = {},
): FixturePage {
  const path = endpoint.replace('{zone}', zone);
  const link = `</products/servers?page=1&per_page=100&>; rel="last"`;
  return {
    path,
    endpoint,
    region: zone,
    query: { page: '1', per_page: '100' },
    json: fixture(`scaleway/${file}.json`),
    headers: { 'x-total-count': String(total), link },
    list: 'servers',
    maps: ['/servers'],
    required: [],
    prices: [],
    ...rest,
  };
}

/** The relations of one of two pages, with paths relative as in the API. */
function linkOf(current: 1 | 2): string {
  const to = (page: number, rel: string) => `</products/servers?page=${page}&per_page=100&>; rel="${rel}"`;
  return (
    current === 1 ? [to(2, 'next'), to(2, 'last')] : [to(1, 'first'), to(1, 'previous'), to(2, 'last')]
  ).join(',');
}

/** A full page of products of one zone, and the last page. */
const product = (zone: string, number: number) => ({
  sku: `/compute/type_${number}/run_${zone}`,
  service_category: 'Compute',
  product: `TYPE-${number} Instance`,
  locality: { zone },
  price: { retail_price: { currency_code: 'EUR', units: 0, nanos: 53_200_000 } },
  properties: { hardware: {}, instance: { range: 'Production-Optimized' } },
  status: 'general_availability',
});
const products = [
  ...['fr-par-1', 'nl-ams-1', ...OTHER_ZONES].map((zone) => product(zone, 0)),
  {
    ...product('fr-par-1', 1),
    properties: { hardware: {}, instance: { range: 'Legacy', offer_id: 'START1-S' } },
    status: 'end_of_growth',
    end_of_life_at: '2026-12-31T00:00:00Z',
  },
  ...Array.from({ length: 92 }, (_, index) => product('fr-par-1', index + 2)),
];

function productsPage(page: number, rest: Partial<FixturePage>): FixturePage {
  const rows = products.slice((page - 1) * 100, page * 100);
  return {
    path: PRODUCTS,
    query: { product_types: 'instance', page: String(page), page_size: '100' },
    json: { products: rows, total_count: products.length },
    list: 'products',
    required: [],
    prices: [],
    ...rest,
  };
}

const volume = (name: string, zone: string, nanos: number, rest: object = {}) => ({
  ...product(zone, 0),
  sku: `/storage/block/${name}/${zone}`,
  price: { retail_price: { currency_code: 'EUR', units: 0, nanos } },
  unit_of_measure: { unit: 'gigabyte', size: 1 },
  properties: { block_storage: {} },
  ...rest,
});
const volumes = [
  volume('volume-low-latency-5k', 'fr-par-1', 130_000),
  volume('volume-bssd', 'fr-par-1', 120_000, { status: 'end_of_growth' }),
  volume('volume-bssd', 'nl-ams-1', 240_000, { unit_of_measure: { unit: 'gigabyte', size: 2 } }),
  // Not for sale any more, no volume, and in a zone without machines.
  volume('volume-low-latency-5k', 'nl-ams-1', 0, { status: 'end_of_sale', price: undefined }),
  volume('snapshot', 'fr-par-1', 49_000),
  volume('volume-bssd', 'us-nyc-1', 130_000),
];
const RELATIONAL = 'managed_relational_database';
const REDIS = 'managed_redis_database';
const MONGODB = 'managed_mongodb';
const price = (units: number, nanos: number) => ({
  price: { retail_price: { currency_code: 'EUR', units, nanos } },
});
const databases = {
  [RELATIONAL]: [
    scalewayNode(RELATIONAL, 'db-dev-s', { region: 'fr-par' }, 18_700_000),
    scalewayNode(RELATIONAL, 'db-pro2-xxs', { region: 'nl-ams' }, 0, price(1, 100_000_000)),
    // Not for sale any more, no node, and in a region without machines.
    scalewayNode(RELATIONAL, 'db-gp-s', { region: 'nl-ams' }, 1, { status: 'end_of_sale' }),
    scalewayNode(RELATIONAL, 'bssd', { region: 'fr-par' }, 1, {
      properties: { hardware: {}, [RELATIONAL]: { storage: {} } },
    }),
    scalewayNode(RELATIONAL, 'db-dev-s', { region: 'us-nyc' }, 18_700_000),
  ],
  [REDIS]: [
    scalewayNode(REDIS, 'RED1-micro', { zone: 'fr-par-1' }, 96_000_000, {
      unit_of_measure: { unit: 'hour', size: 2 },
    }),
    scalewayNode(REDIS, 'RED1-micro', { zone: 'fr-par-1' }, 27_000_000, {
      sku: '/storage/redis/additional-node/RED1-micro/fr-par-1',
    }),
  ],
  [MONGODB]: [scalewayNode(MONGODB, 'MGDB-PLAY2-NANO', { region: 'nl-ams' }, 40_000_000)],
};
const databasePage = (type: keyof typeof databases, rest: Partial<FixturePage>): FixturePage => ({
  path: PRODUCTS,
  query: { product_types: type, page: '1', page_size: '100' },
  json: { products: databases[type], total_count: databases[type].length },
  list: 'products',
  required: [],
  prices: [],
  additional: true,
  ...rest,
});
const plan = (engine: string, name: string, amount: string): OfferedPlan => ({
  ...{ engine, name, nodes: null, cpu: 2, ram: 2, ramUnit: 'Decimal', storage: null },
  price: { amount, per: 'hour', currency: 'EUR' },
});
// A plan of a region is listed in each of its zones.
const ofParis = [plan('postgresql', 'db-dev-s', '0.0187'), plan('mysql', 'db-dev-s', '0.0187')];
const ofAmsterdam = [
  ...[plan('postgresql', 'db-pro2-xxs', '1.1'), plan('mysql', 'db-pro2-xxs', '1.1')],
  plan('mongodb', 'MGDB-PLAY2-NANO', '0.04'),
];
const perHour = { per: 'hour', currency: 'EUR' } as const;

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  pages: [
    productsPage(1, {
      required: [
        '/products',
        '/total_count',
        '/products/0/sku',
        '/products/0/locality',
        '/products/2/locality/zone',
      ],
    }),
    productsPage(2, {}),
    {
      path: PRODUCTS,
      query: { product_types: 'block_storage', page: '1', page_size: '100' },
      json: { products: volumes, total_count: volumes.length },
      list: 'products',
      required: [],
      prices: [],
      otherRequired: ['/total_count', '/products/0/price', '/products/0/unit_of_measure/unit'],
      otherPrices: ['/products/0/price/retail_price/nanos'],
      additional: true,
    },
    databasePage(RELATIONAL, {
      otherRequired: [
        '/total_count',
        '/products/0/product',
        '/products/0/unit_of_measure/unit',
        '/products/0/properties/hardware/cpu',
        '/products/0/properties/hardware/ram',
      ],
      otherPrices: ['/products/0/price/retail_price/nanos'],
    }),
    databasePage(REDIS, { otherPrices: ['/products/0/price/retail_price/nanos'] }),
    databasePage(MONGODB, { otherPrices: ['/products/0/price/retail_price/nanos'] }),
    page('fr-par-1', SERVERS, 'fr-par-1-servers-1', 10, {
      headers: { 'x-total-count': '10', link: linkOf(1) },
      required: ['/servers/DEV1-S/ncpus', '/servers/DEV1-S/ram', '/servers/DEV1-S/end_of_service'],
      prices: ['/servers/DEV1-S/hourly_price'],
    }),
    page('fr-par-1', SERVERS, 'fr-par-1-servers-2', 10, {
      query: { page: '2', per_page: '100' },
      headers: { 'x-total-count': '10', link: linkOf(2) },
      required: ['/servers/PLAY2-PICO/ram'],
      prices: ['/servers/BASIC2-A2C-4G/monthly_price'],
    }),
    page('fr-par-1', AVAILABILITY, 'fr-par-1-availability', 9, {
      required: ['/servers/DEV1-S', '/servers/DEV1-S/availability'],
    }),
    page('nl-ams-1', SERVERS, 'nl-ams-1-servers', 2),
    page('nl-ams-1', AVAILABILITY, 'nl-ams-1-availability', 2),
    ...OTHER_ZONES.flatMap((zone) => [
      page(zone, SERVERS, 'other-servers', 2),
      page(zone, AVAILABILITY, 'other-availability', 2),
    ]),
  ],
  empty: {
    [PRODUCTS]: { products: [], total_count: 0 },
    [SERVERS]: { servers: {} },
    [AVAILABILITY]: { servers: {} },
  },
  regions: {
    'fr-par-1': 'Paris 1',
    'fr-par-2': 'Paris 2',
    'fr-par-3': 'Paris 3',
    'it-mil-1': 'Milan 1',
    'nl-ams-1': 'Amsterdam 1',
    'nl-ams-2': 'Amsterdam 2',
    'nl-ams-3': 'Amsterdam 3',
    'pl-waw-1': 'Warsaw 1',
    'pl-waw-2': 'Warsaw 2',
    'pl-waw-3': 'Warsaw 3',
  },
  offers: [
    // Bytes, and another price and stock in another zone.
    offer('DEV1-S', 'fr-par-1', 2, 2, '0.01368'),
    offer('DEV1-S', 'nl-ams-1', 2, 2, '0.0088', { excluded: 'sold_out' }),
    offer('GP1-S', 'fr-par-1', 8, 32, '0.1826', { excluded: 'sold_out' }),
    offer('GP1-S', 'nl-ams-1', 8, 32, '0.1826'),
    // The end of its service is announced.
    offer('START1-S', 'fr-par-1', 2, 2, '0.0106'),
    offer('L4-1-24G', 'fr-par-1', 8, 48, '0.7875', { excluded: 'accelerated' }),
    offer('POP2-2C-8G-WIN', 'fr-par-1', 2, 8, '0.1823', { excluded: 'licensed' }),
    offer('STARDUST1-S', 'fr-par-1', 1, 1, '0', { excluded: 'zero_price' }),
    // Scarce machines are still for sale.
    offer('PLAY2-PICO', 'fr-par-1', 1, 2, '0.014'),
    offer('BASIC2-A2C-4G', 'fr-par-1', 2, 4, '16.79', { per: 'month' }),
    ...OTHER_ZONES.map((zone) => offer('PLAY2-NANO', zone, 2, 4, '0.02754')),
    ...OTHER_ZONES.map((zone) => offer('PLAY2-MICRO', zone, 4, 8, '0.054')),
  ],
  facts: {
    'DEV1-S@fr-par-1': { architecture: 'x86_64', network: 200 },
    'BASIC2-A2C-4G': { architecture: 'arm64' },
    'START1-S@fr-par-1': { architecture: 'x86_64', retiresAt: '2026-12-31T00:00:00Z' },
    ...Object.fromEntries(
      [
        'DEV1-S',
        'GP1-S',
        'START1-S',
        'L4-1-24G',
        'POP2-2C-8G-WIN',
        'STARDUST1-S',
        'PLAY2-PICO',
        'PLAY2-NANO',
        'PLAY2-MICRO',
      ].map((name) => [name, { architecture: 'x86_64' }]),
    ),
  },
  databasePlans: {
    'fr-par-1': [...ofParis, plan('redis', 'RED1-micro', '0.048')],
    'fr-par-2': ofParis,
    'fr-par-3': ofParis,
    ...Object.fromEntries(['nl-ams-1', 'nl-ams-2', 'nl-ams-3'].map((zone) => [zone, ofAmsterdam])),
  },
  regionPrices: {
    'fr-par-1': [
      regionPrice('block_storage', 'volume-low-latency-5k', 'GB', '0.00013', perHour),
      regionPrice('block_storage', 'volume-bssd', 'GB', '0.00012', { ...perHour, isDefault: false }),
    ],
    'nl-ams-1': [regionPrice('block_storage', 'volume-bssd', 'GB', '0.00012', perHour)],
  },
  rejected: [
    {
      key: 'PRO2-XXS@fr-par-1',
      reason: /^servers\.PRO2-XXS\.ncpus must be a whole number above 0; it is 0$/,
    },
    {
      key: 'COPARM1-2C-8G@fr-par-1',
      reason: /^products\/servers\/availability: servers\.COPARM1-2C-8G\.availability is missing/,
    },
  ],
};

/** Small complete catalogues in the providers' formats, for tests of bad answers. */
import type { FakeAnswer, FakeUpstream } from './fake-upstream.ts';

type Page = { readonly names: readonly string[] } | { readonly instead: FakeAnswer };

/** The currency of Hetzner's prices, and prices besides those of its machines, in each run. */
export function hetznerPricing(upstream: FakeUpstream, currency = 'EUR'): void {
  const pricing = { currency, volume: { price_per_gb_month: { net: '0.044' } }, primary_ips: [] };
  upstream.expect({ path: '/v1/pricing', times: 'any' }, { json: { pricing } });
}

/** Linode's prices besides those of its machines, in each run. */
export function linodePrices(upstream: FakeUpstream): void {
  const one = (id: string, hourly: number, monthly: number | null) => ({
    json: { data: [{ id, price: { hourly, monthly }, region_prices: [] }], page: 1, pages: 1, results: 1 },
  });
  const query = { page: '1' };
  upstream.expect({ path: '/v4/volumes/types', query, times: 'any' }, one('volume', 0.00015, 0.1));
  upstream.expect(
    { path: '/v4/network-transfer/prices', query, times: 'any' },
    one('network_transfer', 0.005, null),
  );
  const old = { id: 'g6-old-1', vcpus: 1, memory: 1024, deprecated: true, engines: {} };
  const none = { json: { data: [old], page: 1, pages: 1, results: 1 } };
  upstream.expect({ path: '/v4/databases/types', query, times: 'any' }, none);
}

/** Hetzner's answers: one location, and its list of types page by page. All wait for `after`. */
export function hetzner(
  upstream: FakeUpstream,
  pages: readonly Page[],
  total: number,
  after = Promise.resolve(),
) {
  const meta = (page: number, next_page: number | null, total_entries: number) => ({
    pagination: { page, next_page, total_entries },
  });
  const query = (page: number) => ({ page: String(page), per_page: '50' });
  const locations = [{ name: 'fsn1', city: 'Falkenstein' }];
  const json = { locations, meta: meta(1, null, 1) };
  hetznerPricing(upstream);
  const expected = upstream.expect({ path: '/v1/locations', query: query(1) }, { json, after });
  for (const [index, page] of pages.entries()) {
    const number = index + 1;
    const call = { path: '/v1/server_types', query: query(number) };
    if ('instead' in page) {
      upstream.expect(call, page.instead);
      continue;
    }
    const prices = [{ location: 'fsn1', price_hourly: { net: '0.06' } }];
    const server_types = page.names.map((name) => ({ name, cores: 2, memory: 4, prices }));
    const next = number < pages.length ? number + 1 : null;
    upstream.expect(call, { json: { server_types, meta: meta(number, next, total) } });
  }
  return expected;
}

/** Google's SKUs of managed databases in each run. @param skus by default, one of a region without machines */
export function gcpDatabases(
  upstream: FakeUpstream,
  skus: readonly object[] = [
    {
      skuId: 'ELSEWHERE',
      description: 'Cloud SQL for MySQL: Zonal - vCPU in Elsewhere',
      category: { usageType: 'OnDemand' },
      serviceRegions: ['elsewhere1'],
    },
  ],
  { below = '', headers = {} }: { below?: string; headers?: Record<string, string> } = {},
): void {
  upstream.expect(
    {
      path: `${below}/v1/services/9662-B51E-5089/skus`,
      headers,
      query: { currencyCode: 'USD', pageSize: '5000' },
      times: 'any',
    },
    { json: { skus, nextPageToken: '' } },
  );
}

export const UPCLOUD_DATABASES = {
  pg: {
    service_plans: [{ plan: 'p', node_count: 1, core_number: 1, memory_amount: 1024, zones: { zone: [] } }],
  },
};

/** UpCloud's list of managed databases in each run. @param types by default, a plan that no zone sells */
export function upcloudDatabases(upstream: FakeUpstream, types: object = UPCLOUD_DATABASES): void {
  upstream.expect({ path: '/1.3/database/service-types', times: 'any' }, { json: types });
}

/** UpCloud's answers: one zone and its plans, with prices an hour in the upstream's format. */
export function upcloud(upstream: FakeUpstream, prices: Readonly<Record<string, number>>) {
  const zones = [{ id: 'fi-hel1', description: 'Helsinki 1', public: 'yes' }];
  const plans = Object.keys(prices).map((name) => ({ name, core_number: 2, memory_amount: 4096 }));
  const priced = Object.entries(prices).map(([name, price]) => [`server_plan_${name}`, { amount: 1, price }]);
  upstream.expect({ path: '/1.3/zone' }, { json: { zones: { zone: zones } } });
  upstream.expect({ path: '/1.3/plan' }, { json: { plans: { plan: plans } } });
  upcloudDatabases(upstream);
  upstream.expect(
    { path: '/1.3/price' },
    { json: { prices: { zone: [{ name: 'fi-hel1', ...Object.fromEntries(priced) }], currency: 'EUR' } } },
  );
}

export const ZONES = [
  'fr-par-1',
  'fr-par-2',
  'fr-par-3',
  'nl-ams-1',
  'nl-ams-2',
  'nl-ams-3',
  'pl-waw-1',
  'pl-waw-2',
  'pl-waw-3',
];

const CATALOGUE = '/product-catalog/v2alpha1/public-catalog/products';

function products(type: string, rows: readonly unknown[]) {
  const query = { product_types: type, page: '1', page_size: '100' };
  return [{ path: CATALOGUE, query }, { json: { products: rows, total_count: rows.length } }] as const;
}

/** Scaleway's volumes in its product catalogue, and a node of each managed database that is not sold any more, in each run. */
export function scalewayVolumes(upstream: FakeUpstream, zones: readonly string[] = ZONES): void {
  const volumes = zones.map((zone) => ({
    sku: `/storage/block/volume-bssd/${zone}`,
    locality: { zone },
    price: { retail_price: { currency_code: 'EUR', units: 0, nanos: 120_000 } },
    unit_of_measure: { unit: 'gigabyte', size: 1 },
  }));
  const [call, answer] = products('block_storage', volumes);
  upstream.expect({ ...call, times: 'any' }, answer);
  for (const type of ['managed_relational_database', 'managed_redis_database', 'managed_mongodb']) {
    const [node, listed] = products(type, [
      scalewayNode(type, 'OLD', { zone: 'fr-par-1' }, 1, { status: 'end_of_life' }),
    ]);
    upstream.expect({ ...node, times: 'any' }, listed);
  }
}

const NODE_SKUS: Readonly<Record<string, string>> = {
  managed_relational_database: '/storage/rdb/instance',
  managed_redis_database: '/storage/redis/main-node',
};

/** A node of a managed database in Scaleway's product catalogue: 2 vCPUs, 2 GB, at so many billionths of a euro an hour. */
export function scalewayNode(
  type: string,
  name: string,
  locality: { readonly zone: string } | { readonly region: string },
  nanos: number,
  rest: object = {},
) {
  const place = Object.values(locality).join();
  return {
    sku: `${NODE_SKUS[type] ?? `/unknown/${type}`}/${name}/${place}`,
    product: name,
    variant: `${name} - ${place}`,
    locality,
    price: { retail_price: { currency_code: 'EUR', units: 0, nanos } },
    unit_of_measure: { unit: 'hour', size: 1 },
    properties: {
      hardware: { cpu: { virtual: { count: 2 } }, ram: { size: 2_000_000_000 } },
      [type]: { node: {} },
    },
    status: 'general_availability',
    ...rest,
  };
}

/** Scaleway's product catalogue, which states the zones of its types. */
export function scalewayProducts(upstream: FakeUpstream, zones: readonly string[] = ZONES): void {
  const types = zones.map((zone) => ({ sku: `/compute/dev1_m/run_${zone}`, locality: { zone } }));
  upstream.expect(...products('instance', types));
  scalewayVolumes(upstream, zones);
}

/**
 * Scaleway's answers: one type in each zone, at 0.06 an hour by default; some may fail. The product catalogue lists
 * `zones`.
 */
export function scaleway(
  upstream: FakeUpstream,
  prices: Readonly<Record<string, number>> = {},
  unwell: Readonly<Record<string, FakeAnswer>> = {},
  zones: readonly string[] = ZONES,
) {
  scalewayProducts(upstream, zones);
  for (const zone of zones) {
    const path = `/instance/v1/zones/${zone}/products/servers`;
    const query = { page: '1', per_page: '100' };
    const headers = { 'x-total-count': '1' };
    const type = { ncpus: 2, ram: 4 * 2 ** 30, end_of_service: false, hourly_price: prices[zone] ?? 0.06 };
    const answer = unwell[zone] ?? { headers, json: { servers: { 'DEV1-M': type } } };
    upstream.expect({ path, query }, answer);
    if (unwell[zone] !== undefined) continue;
    const stock = { servers: { 'DEV1-M': { availability: 'available' } } };
    upstream.expect({ path: `${path}/availability`, query }, { headers, json: stock });
  }
}

const ROW = {
  region_code: 'dc1',
  cpu: 2,
  ram: 4,
  ram_unit: 'GiB',
  price: 0.06,
  per: 'hour',
  currency: 'EUR',
};
export type Row = Omit<typeof ROW, 'ram' | 'price'> & {
  name: string;
  ram: number | string;
  price: number | string;
};

/** A list of six machines of 4 GiB at 0.06 an hour, which is 0.001 a minute; `change` modifies them. */
export function priceList(upstream: FakeUpstream, change: (row: Row) => Row | readonly Row[] = (row) => row) {
  const rows = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6'].map((name): Row => ({ ...ROW, name }));
  upstream.expect({ path: '/prices' }, { json: rows.flatMap(change) });
}

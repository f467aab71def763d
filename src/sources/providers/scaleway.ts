import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { quotient } from '../../domain/prices/price.ts';
import { countIn, nextLink } from '../http/headers.ts';
import {
  anotherPage,
  completeRows,
  eachRegion,
  nothingListed,
  pageOf,
  pagesByNumber,
  pagesOf,
  wholeList,
} from '../http/lists.ts';
import { architecture, networkIn } from '../schema/facts.ts';
import { count, countOrNone, endTime, hourlyOrMonthly, label, oneOf, quantity } from '../schema/fields.ts';
import { offerItem, offerOrRejected, rejectedRow } from '../schema/items.ts';
import { RegionPrices } from '../schema/region-prices.ts';
import { labelIn, parseRow, readRow, valueIn } from '../schema/rows.ts';
import { badAnswer, type CatalogueAdapter, type CatalogueItem, type SourceHttp } from '../source.ts';
import { addPlans, DATABASES } from './scaleway/database-plans.ts';
import { InstanceProduct, isEnded, Money, Product } from './scaleway/products.ts';

const LARGEST_PAGE = 100;

const SERVERS = '/instance/v1/zones/{zone}/products/servers';
const AVAILABILITY = `${SERVERS}/availability`;
const PRODUCTS = '/product-catalog/v2alpha1/public-catalog/products';

/** Places for the names of zones. The product catalogue lists the zones. */
const PLACES: ReadonlyMap<string, string> = new Map([
  ['fr-par', 'Paris'],
  ['it-mil', 'Milan'],
  ['nl-ams', 'Amsterdam'],
  ['pl-waw', 'Warsaw'],
]);

/** `ListPublicCatalogProductsResponse` in scaleway-sdk-go, api/product_catalog/v2alpha1. */
const Products = pageOf('products', { total_count: z.int() }).transform(({ rows, total_count: total }) => {
  return { rows, total };
});
/** `/storage/block/volume-low-latency-5k/fr-par-1`; snapshots are no volumes. */
const VOLUME = /^\/storage\/block\/(?<name>volume-[^/]+)\//;

const Volume = Product.extend({
  price: z.object({ retail_price: Money }),
  /** Of an hour, as the bill's unit `gigabyte_hour` says. A volume of 1 GB has 10^9 bytes. */
  unit_of_measure: z.object({ unit: z.literal('gigabyte', { error: 'must be gigabyte' }), size: count }),
});

const Page = z.object({ servers: z.record(z.string(), z.unknown()) });

const ServerFields = z.object({
  ncpus: count,
  /** Bytes, in powers of two. */
  ram: quantity,
  arch: architecture,
  /** The most bit/s to the Internet. */
  network: z
    .object({ sum_internet_bandwidth: networkIn(1) })
    .optional()
    .catch(undefined),
  gpu: countOrNone.nullish(),
  gpu_info: z.unknown().optional(),
  /** True once the end of the service is announced. The product catalogue has its date. */
  end_of_service: z.boolean(),
});
const ServerType = ServerFields.and(hourlyOrMonthly('hourly_price', 'monthly_price', 'EUR'));
type ServerType = z.infer<typeof ServerType>;

/** "Scarce" is still for sale. */
const Availability = z.object({
  availability: oneOf(['available', 'scarce', 'shortage']),
});

/**
 * Source: https://www.scaleway.com/en/developers/api/instances/#path-instance-types-list-instance-types and
 * https://www.scaleway.com/en/developers/api/product-catalog/public-catalog/. The Instance API does not list its zones; the
 * product catalogue names the zone of each product, and states the prices of volumes. It states no prices of the addresses or the
 * traffic of machines.
 */
export const adapter: CatalogueAdapter = {
  id: 'scaleway',
  provider: { id: 8, name: 'Scaleway' },
  baseUrl: 'https://api.scaleway.com',
  endpoints: [PRODUCTS, SERVERS, AVAILABILITY],
  credentials: 'none',
  memoryUnit: 'bytes',
  currency: 'EUR',
  facts: ['architecture', 'network', 'retiresAt'],
  schedule: '27 * * * *',
  notes:
    'The product catalogue states the prices of block storage; the default is the one with 5,000 IOPS. It states no prices of the ' +
    'addresses or the traffic of machines. It also states the nodes of managed databases. The price of a plan is that of one node, ' +
    'without its volume and without the management fee that Scaleway adds for PostgreSQL and MySQL. For Redis, it is the price of ' +
    'the main node. Scaleway bills by the hour, without a monthly cap.',

  async *catalogue({ http }) {
    const products = yield* listInstances(http);
    const zones = [...products.keys()].sort();
    for (const code of zones) yield { kind: 'region', code, name: nameOf(code) };
    yield* eachRegion(zones, (zone) => Array.fromAsync(itemsOf(http, zone, products.get(zone))));
    const prices = new RegionPrices();
    await prices.read('block_storage', PRODUCTS, () => readVolumes(http, zones, prices));
    for (const database of DATABASES)
      await prices.read('database_plan', `${PRODUCTS}?product_types=${database.type}`, async () => {
        const rows = await completeRows(PRODUCTS, listProducts(http, database.type));
        addPlans(prices, rows, database, zones);
      });
    yield* prices.items(['volume-low-latency-5k', 'volume-bssd']);
  },
};

async function readVolumes(http: SourceHttp, zones: readonly string[], prices: RegionPrices): Promise<void> {
  const rows = await completeRows(PRODUCTS, listProducts(http, 'block_storage'));
  for (const row of rows) {
    const sku = labelIn(row, 'sku') ?? '';
    const name = VOLUME.exec(sku)?.groups?.name;
    if (name === undefined || isEnded(row)) continue;
    const volume = prices.usable('block_storage', sku, () => parseRow(Volume, row));
    const zone = volume?.locality.zone;
    if (volume === undefined || zone == null || !zones.includes(zone)) continue;
    const { amount, currency } = volume.price.retail_price;
    const price = { item: 'block_storage', name, unit: 'GB', per: 'hour', currency } as const;
    prices.add(zone, { ...price, amount: quotient(amount, String(volume.unit_of_measure.size)) });
  }
}

function listProducts(http: SourceHttp, type: string): AsyncGenerator<CatalogueItem, unknown[]> {
  const checkRepetition = repetitionCheck(PRODUCTS);
  let fetched = 0;
  const query = { product_types: type, page_size: LARGEST_PAGE };
  const pages = pagesByNumber(http, PRODUCTS, Products, query, ({ rows, total }, page) => {
    for (const row of rows) checkRepetition(labelIn(row, 'sku'), page);
    fetched += rows.length;
    return page * LARGEST_PAGE < total && fetched < total ? page + 1 : undefined;
  });
  return wholeList(PRODUCTS, 'products', pages);
}

/** The products of a zone, by the names of their types. */
type ZoneProducts = ReadonlyMap<string, InstanceProduct>;

/** Returns the zones with their products. A zone whose products are all retired does not exist any more. */
async function* listInstances(http: SourceHttp): AsyncGenerator<CatalogueItem, Map<string, ZoneProducts>> {
  const zones = new Map<string, Map<string, InstanceProduct>>();
  const existing = new Set<string>();
  for (const [index, row] of (yield* listProducts(http, 'instance')).entries()) {
    const { value: product, reason } = readRow(InstanceProduct, row);
    if (product === undefined) yield rejectedRow(labelIn(row, 'sku') ?? `product ${index + 1}`, reason);
    const zone = product?.locality.zone;
    if (product === undefined || zone == null) continue;
    const name = product.properties?.instance?.offer_id;
    const products = zones.get(zone) ?? new Map();
    zones.set(zone, name === undefined ? products : products.set(name, product));
    if (product.status !== 'retired') existing.add(zone);
  }
  if (existing.size === 0) throw nothingListed(`${PRODUCTS}: zones`);
  return new Map([...zones].filter(([zone]) => existing.has(zone)));
}

/** Returns a check of row keys: it finds a page that the API sends twice, since a page does not state its number. */
function repetitionCheck(path: string): (key: string | undefined, page: number) => void {
  const pageOf = new Map<string, number>();
  return (key, page) => {
    if (key === undefined) return;
    const before = pageOf.get(key) ?? page;
    if (before !== page) throw anotherPage(path, page, `got ${key}, which page ${before} had`);
    pageOf.set(key, page);
  };
}

/** `fr-par-1` → `Paris 1`, as Scaleway writes it. */
function nameOf(zone: string): string {
  const { region = '', number } = /^(?<region>.+)-(?<number>\d+)$/.exec(zone)?.groups ?? {};
  const place = PLACES.get(region);
  return place === undefined ? zone : `${place} ${number}`;
}

async function* itemsOf(
  http: SourceHttp,
  zone: string,
  products: ZoneProducts = new Map(),
): AsyncGenerator<CatalogueItem> {
  const types = yield* list(http, SERVERS.replace('{zone}', zone), `server types of ${zone}`);
  const stock = yield* list(http, AVAILABILITY.replace('{zone}', zone), `availability of ${zone}`);
  for (const [position, [key, row]] of [...types].entries()) {
    const name = label.safeParse(key).data;
    if (name === undefined) {
      const problem = 'has a name that cannot be stored';
      yield rejectedRow(`server type ${position + 1}@${zone}`, problem, { regionCode: zone });
    } else {
      yield offerOrRejected(name, zone, () =>
        offer(name, row, zone, { product: products.get(name), stockRow: stock.get(key) }),
      );
    }
  }
}

function offer(
  name: string,
  row: unknown,
  regionCode: string,
  { product, stockRow }: { readonly product: InstanceProduct | undefined; readonly stockRow: unknown },
): CatalogueItem {
  const type = parseRow(ServerType, row, ['servers', name]);
  const { ncpus: cpu, price } = type;
  const retiresAt = parseRow(endTime.nullish(), product?.end_of_life_at, ['end_of_life_at']) ?? undefined;
  const facts = { architecture: type.arch, network: type.network?.sum_internet_bandwidth, retiresAt };
  const found = { regionCode, name, cpu, ...memory(type.ram, adapter.memoryUnit), price, facts };
  const lasting = exclusion(name, type, product);
  if (lasting !== undefined) return offerItem(found, lasting);
  const stock = readRow(Availability, stockRow ?? {}, ['servers', name]);
  const { availability } = valueIn(stock, 'products/servers/availability: ');
  return offerItem(found, availability === 'shortage' ? 'sold_out' : undefined);
}

function exclusion(name: string, type: ServerType, product: InstanceProduct | undefined) {
  if (type.gpu || type.gpu_info != null) return 'accelerated';
  // The same machine, at a price that includes a Windows licence.
  if (name.endsWith('-WIN')) return 'licensed';
  if (isEnded(product)) return 'discontinued';
  // An end without a date: nothing says that the type is still sold.
  return type.end_of_service && product?.end_of_life_at == null ? 'discontinued' : undefined;
}

async function* list(
  http: SourceHttp,
  path: string,
  of: string,
): AsyncGenerator<CatalogueItem, Map<string, unknown>> {
  const checkRepetition = repetitionCheck(path);
  const pages = pagesOf(
    path,
    1,
    async (page) => {
      const query = { page, per_page: LARGEST_PAGE };
      const { data, values, headers, url } = await http.json(path, Page, { query });
      const rows = Object.entries(data.servers);
      for (const [name] of rows) checkRepetition(name, page);
      const next = nextLink(headers.get('link'));
      return { data: { rows, total: totalCount(path, headers) }, values, next, url };
    },
    ({ next, url }, page) => {
      if (next === undefined) return undefined;
      if (new URL(next, url).searchParams.get('page') === String(page + 1)) return page + 1;
      throw anotherPage(path, page, `its Link header has ${next} for the next one`);
    },
  );
  return new Map(yield* wholeList(path, of, pages));
}

/** @throws SourceError if the header is missing: a list that was cut would end unnoticed */
function totalCount(path: string, headers: Headers): number {
  const total = countIn(headers, 'X-Total-Count', path);
  if (total !== undefined) return total;
  throw badAnswer(`${path} answers without the header X-Total-Count, a whole number`);
}

import { z } from 'zod';
import type { ExclusionReason } from '../../domain/exclusion.ts';
import { memory } from '../../domain/machine.ts';
import { nextLink } from '../http/link.ts';
import { nothingListed, wholeList } from '../http/listing.ts';
import { anotherPage, pagesOf } from '../http/pages.ts';
import { failureOfRegion, failureOfRegions } from '../http/region-failure.ts';
import { architecture, networkIn } from '../schema/facts.ts';
import { amount, count, countOrNone, label, oneOf, quantity } from '../schema/fields.ts';
import { hourlyOrMonthly, offerItem } from '../schema/offers.ts';
import { labelIn, readRow, rejectedRow } from '../schema/rows.ts';
import { type CatalogueAdapter, type CatalogueItem, SourceError, type SourceHttp } from '../source.ts';

/** The largest page of the Instance API, whose default is 50. The product catalogue allows it as well. */
const PER_PAGE = 100;

const SERVERS = '/instance/v1/zones/{zone}/products/servers';
const AVAILABILITY = `${SERVERS}/availability`;
const PRODUCTS = '/product-catalog/v2alpha1/public-catalog/products';

/**
 * For the names of zones only: the product catalogue says which zones there are. Without a place, a zone is named by
 * its code.
 */
const PLACES: ReadonlyMap<string, string> = new Map([
  ['fr-par', 'Paris'],
  ['it-mil', 'Milan'],
  ['nl-ams', 'Amsterdam'],
  ['pl-waw', 'Warsaw'],
]);

/**
 * The shape is that of `ListPublicCatalogProductsResponse` in Scaleway's own SDK,
 * https://github.com/scaleway/scaleway-sdk-go/blob/main/api/product_catalog/v2alpha1/product_catalog_sdk.go.
 */
const Products = z.object({ products: z.array(z.unknown()), total_count: z.int() });
const Product = z.object({
  sku: label,
  /** "Precisely one of Global, Region, Zone, Datacenter must be set." */
  locality: z
    .object({
      zone: z
        .string()
        .regex(/^[a-z0-9]+(-[a-z0-9]+)+$/, { error: 'must be a zone such as fr-par-1' })
        .nullish(),
      region: z.string().nullish(),
      datacenter: z.string().nullish(),
      global: z.boolean().nullish(),
    })
    .refine((locality) => Object.values(locality).some((place) => place != null), {
      error: 'must have one of zone, region, datacenter and global',
    }),
  /** Of the products that are listed by default, only `retired` ones cannot be ordered. */
  status: z.string().nullish(),
});

/** By the name of the type. */
const Page = z.object({ servers: z.record(z.string(), z.unknown()) });

const ServerType = z.object({
  ncpus: count,
  /** Bytes, in powers of two. */
  ram: quantity,
  arch: architecture,
  /** bit/s to the Internet, at the most. */
  network: z
    .object({ sum_internet_bandwidth: networkIn(1) })
    .optional()
    .catch(undefined),
  gpu: countOrNone.nullish(),
  gpu_info: z.unknown().optional(),
  /** Not sold any more, although it has a price. */
  end_of_service: z.boolean(),
  /** Prices differ from zone to zone. */
  hourly_price: amount.nullish(),
  monthly_price: amount.nullish(),
});
type ServerType = z.infer<typeof ServerType>;

/** "Scarce" is still for sale. */
const Availability = z.object({
  availability: oneOf(['available', 'scarce', 'shortage']),
});

/**
 * Source: https://www.scaleway.com/en/developers/api/instances/#path-instance-types-list-instance-types and
 * https://www.scaleway.com/en/developers/api/product-catalog/public-catalog/.
 *
 * The Instance API does not list its zones; the product catalogue names the zone of each product. When that catalogue
 * cannot be read, the run ends and what is stored stays as it was.
 */
export const adapter: CatalogueAdapter = {
  id: 'scaleway',
  provider: { id: 8, name: 'Scaleway' },
  baseUrl: 'https://api.scaleway.com',
  endpoints: [PRODUCTS, SERVERS, AVAILABILITY],
  credentials: 'none',
  memoryUnit: 'bytes',
  currency: 'EUR',
  facts: ['architecture', 'network'],
  schedule: '27 * * * *',

  async *catalogue({ http }) {
    const zones = yield* listZones(http);
    const failures: SourceError[] = [];
    for (const zone of zones) {
      yield { kind: 'region', code: zone, name: nameOf(zone) };
      // A zone is reported only when all of it was read.
      const items = await Array.fromAsync(itemsOf(http, zone)).catch(failureOfRegion);
      if (items instanceof SourceError) {
        failures.push(items);
        yield { kind: 'unread', regionCode: zone, reason: items.message };
      } else {
        yield* items;
      }
    }
    if (failures.length === zones.length) throw failureOfRegions(failures);
  },
};

/** Every zone in which some type of instance is sold, in the order of their codes. */
async function* listZones(http: SourceHttp): AsyncGenerator<CatalogueItem, string[]> {
  const checkRepetition = repetitionCheck(PRODUCTS);
  let fetched = 0;
  const pages = pagesOf(
    PRODUCTS,
    1,
    async (page) => {
      const query = { product_types: 'instance', page, page_size: PER_PAGE };
      const { data, values } = await http.json(PRODUCTS, Products, { query });
      const { products, total_count: total } = data;
      for (const row of products) checkRepetition(labelIn(row, 'sku'), page);
      fetched += products.length;
      return { data: { rows: products, total }, values };
    },
    ({ data: { total } }, page) => (page * PER_PAGE < total && fetched < total ? page + 1 : undefined),
  );
  const zones = new Set<string>();
  for (const [index, row] of (yield* wholeList(PRODUCTS, 'products', pages)).entries()) {
    const { value: product, reason } = readRow(Product, row);
    if (product === undefined) yield rejectedRow(labelIn(row, 'sku') ?? `product ${index + 1}`, reason, {});
    else if (product.locality.zone != null && product.status !== 'retired') zones.add(product.locality.zone);
  }
  if (zones.size === 0) throw nothingListed(`${PRODUCTS}: zones`);
  return [...zones].sort();
}

/**
 * A page does not state its number. A page that is sent twice, in place of another one, is found by the keys of its
 * rows.
 */
function repetitionCheck(path: string): (key: string | undefined, page: number) => void {
  const pageOf = new Map<string, number>();
  return (key, page) => {
    if (key === undefined) return;
    const before = pageOf.get(key) ?? page;
    if (before !== page) throw anotherPage(path, page, `got ${key}, which page ${before} had`);
    pageOf.set(key, page);
  };
}

/** `fr-par-1` → `Paris 1`, as Scaleway itself calls it. */
function nameOf(zone: string): string {
  const { region = '', number } = /^(?<region>.+)-(?<number>\d+)$/.exec(zone)?.groups ?? {};
  const place = PLACES.get(region);
  return place === undefined ? zone : `${place} ${number}`;
}

async function* itemsOf(http: SourceHttp, zone: string): AsyncGenerator<CatalogueItem> {
  const types = yield* list(http, SERVERS.replace('{zone}', zone), `server types of ${zone}`);
  const stock = yield* list(http, AVAILABILITY.replace('{zone}', zone), `availability of ${zone}`);
  let position = 0;
  for (const [key, row] of types) {
    position += 1;
    const name = label.safeParse(key).data;
    const { value, reason } = readRow(ServerType, row, ['servers', key]);
    if (name === undefined) {
      yield rejectedRow(`server type ${position}@${zone}`, 'has a name that cannot be stored', {
        regionCode: zone,
      });
    } else if (value === undefined) {
      yield rejectedRow(`${name}@${zone}`, reason, { name, regionCode: zone });
    } else {
      yield offer(name, value, zone, stock.get(key));
    }
  }
}

function offer(name: string, type: ServerType, regionCode: string, stockRow: unknown): CatalogueItem {
  const rejected = (reason: string) => rejectedRow(`${name}@${regionCode}`, reason, { name, regionCode });
  const price = hourlyOrMonthly(type.hourly_price, type.monthly_price, adapter.currency);
  if (price === undefined) return rejected('must have an hourly_price or a monthly_price; it has neither');
  const { ram, unit: ramUnit } = memory(type.ram, adapter.memoryUnit);
  const facts = { architecture: type.arch, network: type.network?.sum_internet_bandwidth };
  const found = { regionCode, name, cpu: type.ncpus, ram, ramUnit, price, facts };
  const lasting = exclusion(name, type);
  if (lasting !== undefined) return offerItem(found, lasting);

  const { value: stock, reason } = readRow(Availability, stockRow ?? {}, ['servers', name]);
  if (stock === undefined) return rejected(`products/servers/availability: ${reason}`);
  return offerItem(found, stock.availability === 'shortage' ? 'sold_out' : undefined);
}

/** Why a type is not published, whatever its stock. */
function exclusion(name: string, type: ServerType): ExclusionReason | undefined {
  if (type.gpu || type.gpu_info != null) return 'accelerated';
  // The same machine again, at a price that includes a Windows licence.
  if (name.endsWith('-WIN')) return 'licensed';
  return type.end_of_service ? 'deprecated' : undefined;
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
      const query = { page, per_page: PER_PAGE };
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

/** @throws SourceError when there is none: then nothing tells whether every page came. */
function totalCount(path: string, headers: Headers): number {
  const text = headers.get('x-total-count') ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new SourceError(
    'invalid',
    `${path} answers without a whole number in X-Total-Count; it is "${text}"`,
  );
}

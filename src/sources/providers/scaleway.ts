import { z } from 'zod';
import type { ExclusionReason } from '../../domain/exclusion.ts';
import { memory } from '../../domain/memory.ts';
import { isPositive, type SourcePrice } from '../../domain/price.ts';
import { nextLink } from '../http/link.ts';
import { anotherPage, endlessPages, MOST_PAGES, nothingListed } from '../http/listing.ts';
import { amount, count, countOrNone, label, quantity } from '../schema/fields.ts';
import { labelIn, readRow, rejectedRow } from '../schema/rows.ts';
import { type CatalogueAdapter, type CatalogueItem, SourceError, type SourceHttp } from '../source.ts';

/** The largest page that the Instance API gives; without being asked it gives 50. The catalogue gives it as well. */
const PER_PAGE = 100;

const SERVERS = '/instance/v1/zones/{zone}/products/servers';
const AVAILABILITY = `${SERVERS}/availability`;
const PRODUCTS = '/product-catalog/v2alpha1/public-catalog/products';

/** Names alone: which zones are read, the product catalogue says. A zone of another place has its code for a name. */
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
  /** Of those that it lists unasked only `retired` ones cannot be used any more. */
  status: z.string().nullish(),
});

/** By the name of the type. */
const Page = z.object({ servers: z.record(z.string(), z.unknown()) });

const ServerType = z.object({
  ncpus: count,
  /** Bytes, in powers of two. */
  ram: quantity,
  gpu: countOrNone.nullish(),
  gpu_info: z.unknown().optional(),
  /** Not sold any more, although its price stands there. */
  end_of_service: z.boolean(),
  /** A month counts where no hour is priced. Prices differ from zone to zone. */
  hourly_price: amount.nullish(),
  monthly_price: amount.nullish(),
});
type ServerType = z.infer<typeof ServerType>;

/** "Scarce" is still for sale. */
const Availability = z.object({
  availability: z.enum(['available', 'scarce', 'shortage'], {
    error: ({ input }) =>
      `${input === undefined ? 'is missing; it must be' : 'must be'} available, scarce or shortage`,
  }),
});

/**
 * Source: https://www.scaleway.com/en/developers/api/instances/#path-instance-types-list-instance-types and
 * https://www.scaleway.com/en/developers/api/product-catalog/public-catalog/.
 *
 * The Instance API does not list its zones; the product catalogue does, by naming each product's. A catalogue that
 * cannot be read ends the run: what is stored stays as it was.
 */
export const adapter: CatalogueAdapter = {
  id: 'scaleway',
  provider: { id: 8, name: 'Scaleway' },
  baseUrl: 'https://api.scaleway.com',
  endpoints: [PRODUCTS, SERVERS, AVAILABILITY],
  credentials: 'none',
  memoryUnit: 'bytes',
  currency: 'EUR',
  schedule: '27 * * * *',

  async *catalogue({ http }) {
    let failed: unknown;
    let read = 0;
    for (const zone of yield* listZones(http)) {
      yield { kind: 'region', code: zone, name: nameOf(zone) };
      try {
        const items: CatalogueItem[] = [];
        for await (const item of itemsOf(http, zone)) items.push(item);
        yield* items;
        read += 1;
      } catch (error) {
        // A zone that cannot be read, for however long it says, holds its own machines, not the other zones'.
        if (!(error instanceof SourceError) || error.limitsAll) throw error;
        yield { kind: 'unread', regionCode: zone, reason: error.message };
        failed ??= error;
      }
    }
    if (read === 0) throw failed;
  },
};

/** Every zone in which some type of instance is sold, in the order of their codes. */
async function* listZones(http: SourceHttp): AsyncGenerator<CatalogueItem, string[]> {
  const zones = new Set<string>();
  const pageOf = new Map<string, number>();
  let fetched = 0;
  for (let page = 1, more = true; more; page++) {
    if (page > MOST_PAGES) throw endlessPages(PRODUCTS);
    const query = { product_types: 'instance', page, page_size: PER_PAGE };
    const { products, total_count: advertised } = (await http.json(PRODUCTS, Products, { query })).data;
    for (const row of products) {
      fetched += 1;
      const { value: product, reason } = readRow(Product, row);
      if (product === undefined) {
        yield rejectedRow(labelIn(row, 'sku') ?? `product ${fetched}`, reason, {});
        continue;
      }
      // A page does not say its number, and one that came twice would hide another.
      const before = pageOf.get(product.sku);
      if (before !== undefined && before !== page)
        throw anotherPage(PRODUCTS, page, `got ${product.sku}, which page ${before} had`);
      pageOf.set(product.sku, page);
      if (product.locality.zone != null && product.status !== 'retired') zones.add(product.locality.zone);
    }
    more = page * PER_PAGE < advertised && fetched < advertised;
    if (!more) yield { kind: 'total', of: 'products', advertised, fetched };
  }
  if (zones.size === 0) throw nothingListed(`${PRODUCTS}: zones`);
  return [...zones].sort();
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
  const price = priceOf(type);
  if (price === undefined) return rejected('must have an hourly_price or a monthly_price; it has neither');
  const { ram, unit: ramUnit } = memory(type.ram, adapter.memoryUnit);
  const found = { regionCode, name, cpu: type.ncpus, ram, ramUnit, price };
  const lasting = exclusion(name, type);
  if (lasting !== undefined) return { kind: 'offer', offer: { ...found, excluded: lasting } };

  const { value: stock, reason } = readRow(Availability, stockRow ?? {}, ['servers', name]);
  if (stock === undefined) return rejected(`products/servers/availability: ${reason}`);
  if (stock.availability === 'shortage')
    return { kind: 'offer', offer: { ...found, excluded: 'unavailable' } };
  return { kind: 'offer', offer: isPositive(price.amount) ? found : { ...found, excluded: 'zero_price' } };
}

function priceOf({ hourly_price: hourly, monthly_price: monthly }: ServerType): SourcePrice | undefined {
  if (hourly != null) return { amount: hourly, per: 'hour', currency: adapter.currency };
  return monthly == null ? undefined : { amount: monthly, per: 'month', currency: adapter.currency };
}

/** Why a type is not published whatever its stock. */
function exclusion(name: string, type: ServerType): ExclusionReason | undefined {
  if (type.gpu || type.gpu_info != null) return 'accelerated';
  // The same machine once more, with the price of a Windows licence in its own.
  if (name.endsWith('-WIN')) return 'licensed';
  return type.end_of_service ? 'deprecated' : undefined;
}

async function* list(
  http: SourceHttp,
  path: string,
  of: string,
): AsyncGenerator<CatalogueItem, Map<string, unknown>> {
  const rows = new Map<string, unknown>();
  const pageOf = new Map<string, number>();
  for (let page = 1, more = true; more; page++) {
    if (page > MOST_PAGES) throw endlessPages(path);
    const { data, headers, url } = await http.json(path, Page, { query: { page, per_page: PER_PAGE } });
    const next = nextLink(headers.get('link'));
    if (next !== undefined && new URL(next, url).searchParams.get('page') !== String(page + 1)) {
      throw anotherPage(path, page, `its Link header has ${next} for the next one`);
    }
    for (const [name, row] of Object.entries(data.servers)) {
      // A page does not say its number, and one that came twice would hide another.
      const before = pageOf.get(name);
      if (before !== undefined) throw anotherPage(path, page, `got ${name}, which page ${before} had`);
      pageOf.set(name, page);
      rows.set(name, row);
    }
    more = next !== undefined;
    if (more) continue;
    if (rows.size === 0) throw nothingListed(path);
    yield { kind: 'total', of, advertised: totalCount(path, headers), fetched: rows.size };
  }
  return rows;
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

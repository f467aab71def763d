import { z } from 'zod';
import type { ExclusionReason } from '../../domain/exclusion.ts';
import { memory } from '../../domain/machine.ts';
import { type ListPage, wholeList } from '../http/listing.ts';
import { anotherPage, pagesOf } from '../http/pages.ts';
import { diskIn } from '../schema/facts.ts';
import { amount, count, label } from '../schema/fields.ts';
import { hourlyOrMonthly, offerItem } from '../schema/offers.ts';
import { labelIn, readRow, rejectedRow, unusableRegion } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem, SourceHttp } from '../source.ts';

/** The largest page that the API gives. */
const PER_PAGE = 200;

/** Addresses of the pages before and after this one, where there are such pages. */
const Pages = z.object({ prev: z.string().nullish(), next: z.string().nullish() });
const Around = {
  links: z.object({ pages: Pages.nullish() }).nullish(),
  meta: z.object({ total: z.int() }),
};

interface Page extends ListPage<unknown> {
  readonly around: z.infer<typeof Pages>;
}

const RegionPage = z
  .object({ regions: z.array(z.unknown()), ...Around })
  .transform(({ regions, links, meta }): Page => page(regions, links?.pages, meta.total));

const SizePage = z
  .object({ sizes: z.array(z.unknown()), ...Around })
  .transform(({ sizes, links, meta }): Page => page(sizes, links?.pages, meta.total));

const Region = z.object({ slug: label, name: label, available: z.boolean() });
type Region = z.infer<typeof Region>;

/**
 * Kinds of cpu by the first words of a size's description. Basic Droplets share theirs, all others do not.
 * Source: https://docs.digitalocean.com/products/droplets/concepts/choosing-a-plan/.
 */
const CPU_KINDS = [
  [/^Basic\b/, 'shared'],
  [/^(General Purpose|(CPU|Memory|Storage)-Optimized)\b/, 'dedicated'],
] as const;

const Size = z.object({
  slug: label,
  /** "Megabytes" that are MiB: the size s-1vcpu-1gb has 1024 of them. */
  memory: count,
  vcpus: count,
  /** "Gigabytes" that are GiB: `disk_info`, where there is one, has the same number with the unit `gib`. */
  disk: diskIn('GiB'),
  description: z.string().optional().catch(undefined),
  /** Where new Droplets of this size can be made; may be empty. */
  regions: z.array(label),
  available: z.boolean(),
  /**
   * A 32-bit float printed as a 64-bit one: 0.007439999841153622 for 0.00744. It is kept as it is sent: parsed as a
   * double it has the same shortest digits.
   */
  price_hourly: amount.nullish(),
  price_monthly: amount.nullish(),
  /** Only with a GPU. */
  gpu_info: z.unknown().optional(),
});
type Size = z.infer<typeof Size>;

/** Source: https://docs.digitalocean.com/reference/api/reference/sizes/ and …/regions/. */
export const adapter: CatalogueAdapter = {
  id: 'digitalocean',
  provider: { id: 9, name: 'DigitalOcean' },
  baseUrl: 'https://api.digitalocean.com',
  endpoints: ['/v2/regions', '/v2/sizes'],
  credentials: 'bearer',
  memoryUnit: 'MiB',
  currency: 'USD',
  facts: ['cpuKind', 'localDisk'],
  schedule: '12 * * * *',
  notes:
    'DigitalOcean bills at most a monthly price, that of 672 hours, which is read only of sizes without an hourly one. The ' +
    'hourly price times 730 hours overstates the month by 9 %.',

  async *catalogue({ http }) {
    const regions: Region[] = [];
    for (const [index, row] of (yield* list(http, '/v2/regions', 'regions', RegionPage)).entries()) {
      const { value, reason } = readRow(Region, row);
      const code = labelIn(row, 'slug');
      if (value !== undefined) {
        regions.push(value);
        yield { kind: 'region', code: value.slug, name: value.name };
      } else {
        yield unusableRegion(code, `region ${index + 1}`, reason);
      }
    }

    for (const [index, row] of (yield* list(http, '/v2/sizes', 'sizes', SizePage)).entries()) {
      const { value, reason } = readRow(Size, row);
      const name = labelIn(row, 'slug');
      if (value !== undefined) yield* offers(value, regions);
      else yield rejectedRow(name ?? `size ${index + 1}`, reason, { name });
    }
  },
};

/**
 * A size is an offer in every region, and `unavailable` where its `regions` do not name that region. So a size that is
 * sold out leaves the catalogue at once and keeps its id. Prices are the same everywhere.
 */
function* offers(size: Size, regions: readonly Region[]): Generator<CatalogueItem> {
  const { slug: name, vcpus: cpu, disk: localDisk, description = '' } = size;
  const cpuKind = CPU_KINDS.find(([words]) => words.test(description))?.[1];
  const facts = { cpuKind, localDisk };
  const { ram, unit: ramUnit } = memory(size.memory, adapter.memoryUnit);
  const price = hourlyOrMonthly(size.price_hourly, size.price_monthly, adapter.currency);
  if (price === undefined) {
    yield rejectedRow(name, 'the size must have a price_hourly or a price_monthly; it has neither', { name });
    return;
  }
  const selling = new Set(size.regions);
  for (const { slug: regionCode, available } of regions) {
    const excluded = exclusion(size, available && selling.has(regionCode));
    yield offerItem({ regionCode, name, cpu, ram, ramUnit, price, facts }, excluded);
  }
  for (const regionCode of selling.difference(new Set(regions.map((region) => region.slug)))) {
    const problem = `regions names ${regionCode}, which /v2/regions does not list or not as it must`;
    yield rejectedRow(`${name}@${regionCode}`, problem, { name, regionCode });
  }
}

function exclusion(size: Size, sold: boolean): ExclusionReason | undefined {
  if (size.gpu_info != null || size.slug.startsWith('gpu-')) return 'accelerated';
  return sold && size.available ? undefined : 'unavailable';
}

function page(
  rows: readonly unknown[],
  around: z.infer<typeof Pages> | null | undefined,
  total: number,
): Page {
  return { rows, around: around ?? {}, total };
}

function list(
  http: SourceHttp,
  path: string,
  of: string,
  schema: z.ZodType<Page>,
): AsyncGenerator<CatalogueItem, unknown[]> {
  const pages = pagesOf(
    path,
    1,
    (page) => http.json(path, schema, { query: { page, per_page: PER_PAGE } }),
    ({ data: { around } }, page) => {
      const [before, after] = [numberIn(around.prev), numberIn(around.next)];
      // A page does not state its number; the addresses of its neighbours do.
      if ((before ?? 0) !== page - 1 || (after ?? page + 1) !== page + 1)
        throw anotherPage(path, page, `links.pages is that of a page between ${before} and ${after}`);
      return after;
    },
  );
  return wholeList(path, of, pages);
}

/** The number of the page at an address: NaN when that says none, undefined when there is no address. */
function numberIn(address: string | null | undefined): number | undefined {
  if (address == null) return undefined;
  return URL.canParse(address) ? Number(new URL(address).searchParams.get('page') ?? Number.NaN) : Number.NaN;
}

import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { anotherPage, pageOf, pagesByNumber, wholeList } from '../http/lists.ts';
import { diskIn, trafficIn } from '../schema/facts.ts';
import { count, hourlyOrMonthly, label } from '../schema/fields.ts';
import { offerItem, rejectedOffer, usableRegions, usableRows } from '../schema/items.ts';
import type { CatalogueAdapter, CatalogueItem, SourceHttp } from '../source.ts';

const LARGEST_PAGE = 200;

/** A "TB" of traffic is 1,000 GiB: the plans with 1 include "1,000 GiB/month", and further traffic has a price per GiB. */
const TB_BYTES = 1000 * 2 ** 30;

/** Source: https://docs.digitalocean.com/products/networking/ipv4/details/pricing/: the address of a Droplet costs nothing more. */
const INCLUDED_IPV4 = 1;

const Pages = z.object({ prev: z.string().nullish(), next: z.string().nullish() });

const Region = z
  .object({ slug: label, name: label, available: z.boolean() })
  .transform(({ slug: code, ...region }) => ({ code, ...region }));
type Region = z.infer<typeof Region>;

/** By the first words of a size's description. Source: https://docs.digitalocean.com/products/droplets/concepts/choosing-a-plan/. */
const CPU_KINDS = [
  [/^(Basic|v5 Shared)\b/, 'shared'],
  [/^(Premium |v5 )?(General Purpose|(CPU|Memory|Storage)[- ](Optimized|Intensive))\b/, 'dedicated'],
  // The CPU-Optimized sizes whose names end in -intel.
  [/^Premium Intel\b/, 'dedicated'],
] as const;

/** Sizes of the fifth generation, which are billed without a cap: "v5 Shared" and "v5 General Purpose". */
const V5 = /^v5\b/;

const Disks = z.array(z.object({ type: z.string() })).min(1);

const Size = z.object({
  slug: label,
  /** "Megabytes" that are MiB: the size s-1vcpu-1gb has 1024 of them. */
  memory: count,
  vcpus: count,
  /** "Gigabytes" that are GiB: `disk_info`, if present, has the same number with the unit `gib`. */
  disk: diskIn('GiB'),
  /** A `boot` disk is no `local` one: its type was `remote` in the API's document before. */
  disk_info: Disks.optional().catch(undefined),
  /** TB a month, shared with the team's other machines. */
  transfer: trafficIn(TB_BYTES),
  description: z.string().optional().catch(undefined),
  regions: z.array(label),
  available: z.boolean(),
  gpu_info: z.unknown().optional(),
});
/** A 32-bit float printed as a 64-bit one: 0.007439999841153622 for 0.00744. It is stored as sent. */
const PricedSize = Size.and(hourlyOrMonthly('price_hourly', 'price_monthly', 'USD'));
type Size = z.infer<typeof PricedSize>;

/**
 * Source: https://docs.digitalocean.com/reference/api/reference/sizes/ and …/regions/. Source of the cap, which
 * v5 sizes lack: https://docs.digitalocean.com/products/droplets/details/pricing/. The API states no prices of volumes, traffic
 * or addresses.
 */
export const adapter: CatalogueAdapter = {
  id: 'digitalocean',
  provider: { id: 9, name: 'DigitalOcean' },
  baseUrl: 'https://api.digitalocean.com',
  endpoints: ['/v2/regions', '/v2/sizes'],
  credentials: 'bearer',
  memoryUnit: 'MiB',
  currency: 'USD',
  facts: ['cpuKind', 'localDisk', 'includedTraffic', 'includedIpv4'],
  schedule: '12 * * * *',
  notes:
    'DigitalOcean caps the bill at a monthly price, that of 672 hours, which Fleetbook reads. Without it, the hourly price ' +
    'times 730 hours would overstate the month by 9 %. v5 Droplets have no cap.',

  async *catalogue({ http }) {
    const listed = yield* list(http, '/v2/regions', 'regions');
    const regions = yield* usableRegions(listed, Region, 'slug', 'region');
    const sizes = yield* list(http, '/v2/sizes', 'sizes');
    for (const size of yield* usableRows(sizes, PricedSize, 'slug', 'size')) yield* offers(size, regions);
  },
};

/** Yields a size in every region, so that one that is sold out leaves the catalogue at once and keeps its id. */
function* offers(size: Size, regions: readonly Region[]): Generator<CatalogueItem> {
  const { slug: name, vcpus: cpu, description = '', price } = size;
  const monthlyCap = V5.test(description) ? undefined : size.monthly;
  const localDisk = size.disk_info?.every(({ type }) => type === 'boot') ? 0 : size.disk;
  const includedTraffic = size.transfer;
  const cpuKind = CPU_KINDS.find(([words]) => words.test(description))?.[1];
  const machine = { name, cpu, ...memory(size.memory, adapter.memoryUnit), price, monthlyCap };
  const selling = new Set(size.regions);
  for (const { code: regionCode, available } of regions) {
    const excluded = exclusion(size, available && selling.has(regionCode));
    const facts = { cpuKind, localDisk, includedTraffic, includedIpv4: INCLUDED_IPV4 };
    yield offerItem({ regionCode, ...machine, facts }, excluded);
  }
  for (const regionCode of selling.difference(new Set(regions.map(({ code }) => code)))) {
    const problem = `regions names ${regionCode}, which /v2/regions does not list as a usable row`;
    yield rejectedOffer(name, regionCode, problem);
  }
}

function exclusion(size: Size, sold: boolean) {
  if (size.gpu_info != null || size.slug.startsWith('gpu-')) return 'accelerated';
  return sold && size.available ? undefined : 'unavailable';
}

function list(http: SourceHttp, path: string, field: string): AsyncGenerator<CatalogueItem, unknown[]> {
  const Page = pageOf(field, {
    links: z.object({ pages: Pages.nullish() }).nullish(),
    meta: z.object({ total: z.int() }),
  }).transform(({ rows, links, meta }) => ({ rows, total: meta.total, around: links?.pages }));
  const pages = pagesByNumber(http, path, Page, { per_page: LARGEST_PAGE }, ({ around }, page) => {
    const [before, after] = [numberIn(around?.prev), numberIn(around?.next)];
    // A page does not state its number; the addresses of its neighbours do.
    if ((before ?? 0) !== page - 1 || (after ?? page + 1) !== page + 1)
      throw anotherPage(path, page, `links.pages is that of a page between ${before} and ${after}`);
    return after;
  });
  return wholeList(path, field, pages);
}

/** Returns the page number in an address: NaN without a number, undefined without an address. */
function numberIn(address: string | null | undefined): number | undefined {
  if (address == null) return undefined;
  return URL.canParse(address) ? Number(new URL(address).searchParams.get('page') ?? Number.NaN) : Number.NaN;
}

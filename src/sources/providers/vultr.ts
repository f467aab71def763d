import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { isPositive, type SourcePrice } from '../../domain/prices/price.ts';
import { pageOf, pagesByToken, wholeList } from '../http/lists.ts';
import { diskIn, trafficIn } from '../schema/facts.ts';
import { amount, count, countryIn, hourlyOrMonthly, label } from '../schema/fields.ts';
import { offerItem, offerOrRejected, rejectedRow, usableRegions, usableRows } from '../schema/items.ts';
import { LeftOut } from '../schema/left-out.ts';
import { parseRow } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem, JsonRequest, SourceHttp } from '../source.ts';

const LARGEST_PAGE = 500;

const GPU_TYPES: ReadonlySet<string> = new Set(['vcg', 'vdm']);

/** Source: https://docs.vultr.com/products/compute/instances and the parameter `type` of the list of plans. */
const CPU_KIND: Readonly<Record<string, 'shared' | 'dedicated'>> = {
  vc2: 'shared',
  vhf: 'shared',
  vhp: 'shared',
  voc: 'dedicated',
  vdc: 'dedicated',
  vbm: 'dedicated',
};

/** Such a plan has no IPv4 address. Source of both: https://www.vultr.com/pricing/. */
const IPV6_ONLY = /-v6$/;

/** `next` is the cursor of the next page, empty on the last one. */
const Meta = z.object({ total: z.int(), links: z.object({ next: z.string() }) });

const Region = z
  .object({ id: label, city: label, country: countryIn })
  .transform(({ id: code, city: name, country }) => ({ code, name, country }));

/** Plans before 2023 have only a monthly price. With a monthly price, 0 for an hour is no price: the plan is sold by the month. */
const Price = hourlyOrMonthly('hourly_cost', 'monthly_cost', 'USD').transform(({ price, monthly }) => {
  if (isPositive(price.amount) || monthly === undefined || !isPositive(monthly)) return { price, monthly };
  return { price: { amount: monthly, per: 'month', currency: 'USD' } as const, monthly };
});

/** A price only if `deploy_preemptible` is true, otherwise the price on demand again. A region without one does not sell it. */
const Preemptible = z
  .object({ hourly_cost_preemptible: amount.nullish(), monthly_cost_preemptible: amount.nullish() })
  .transform(
    ({ hourly_cost_preemptible: hourly, monthly_cost_preemptible: monthly }): SourcePrice | undefined => {
      const isHourly = hourly != null && isPositive(hourly);
      const stated = isHourly ? hourly : monthly;
      if (stated == null || !isPositive(stated)) return undefined;
      return { amount: stated, per: isHourly ? 'hour' : 'month', currency: 'USD' };
    },
  );

/** A plan without a GPU has the brand `none`; older payloads have no brand. */
const gpuName = z
  .string()
  .transform((name) => (/^none$/i.test(name) ? '' : name))
  .nullish();

const Plan = z.looseObject({
  id: label,
  vcpu_count: count,
  /** "MB" that are MiB: the plan sold as 1 GB has 1024 of them. */
  ram: count,
  type: z.string(),
  disk: diskIn('GB'),
  /** "The monthly bandwidth quota in GB." */
  bandwidth: trafficIn(1e9),
  /** With several disks, the reference does not say whether `disk` is the size of one or of all. */
  disk_count: z.int().optional().catch(undefined),
  /** `block_storage` is a plan without a disk, at a `disk` of 1; absent in older payloads. */
  storage_type: z.string().optional().catch(undefined),
  /** Regions that can deploy it now. The API has sent an empty text among them, which is ignored. */
  locations: z.array(z.string()),
  /** Prices by region, which replace the plan's own. The API sends an empty map as an empty array. */
  location_cost: z
    .union([z.record(z.string(), z.unknown()), z.tuple([]).transform(() => ({}))], {
      error: 'must be prices by region',
    })
    .nullish(),
  /** False if only preemptible machines are sold; absent in older payloads. */
  deploy_ondemand: z.boolean().nullish(),
  /** A wrong value is a matter of spot prices alone. */
  deploy_preemptible: z.unknown().optional(),
  gpu_brand: gpuName,
  gpu_type: gpuName,
  gpu_vram_gb: z.number().nullish(),
});
type Plan = z.infer<typeof Plan>;

/**
 * Source: https://www.vultr.com/api/#tag/plans, #tag/region, and the fields of its public answers. Source of the cap:
 * https://docs.vultr.com/support/platform/billing/how-am-i-billed-for-my-servers. The API states no prices of storage, traffic
 * or addresses.
 */
export const adapter: CatalogueAdapter = {
  id: 'vultr',
  provider: { id: 7, name: 'Vultr' },
  baseUrl: 'https://api.vultr.com',
  endpoints: ['/v2/regions', '/v2/plans'],
  credentials: 'none',
  memoryUnit: 'MiB',
  currency: 'USD',
  facts: ['cpuKind', 'localDisk', 'includedTraffic', 'includedIpv4'],
  schedule: '7 * * * *',
  notes:
    'The prices of preemptible plans are spot prices. ' +
    'Vultr caps the bill at a monthly price, which Fleetbook reads. Hourly prices have three decimals: times 730 hours, they are ' +
    'from 12 % below that price to 4 % above it.',

  async *catalogue({ http }) {
    const listed = yield* list(http, '/v2/regions', 'regions');
    const usable = yield* usableRegions(listed, Region, 'id', 'region');
    const regions = usable.map(({ code }) => code);
    const plans = yield* list(http, '/v2/plans', 'plans', { type: 'all' });
    const leftOut = new LeftOut();
    for (const plan of yield* usableRows(plans, Plan, 'id', 'plan')) yield* offers(plan, regions, leftOut);
    yield* leftOut.rows();
  },
};

/** Yields a plan in every region, so that one that is sold out leaves the catalogue at once and keeps its id. */
function* offers(plan: Plan, regions: readonly string[], leftOut: LeftOut): Generator<CatalogueItem> {
  const { id: name, vcpu_count: cpu } = plan;
  const oneDisk = plan.disk_count === 1 ? plan.disk : undefined;
  const localDisk = plan.storage_type === 'block_storage' ? 0 : oneDisk;
  // Optimized plans have a suffix: `voc-g`, `voc-c`.
  const facts = {
    cpuKind: CPU_KIND[plan.type.split('-', 1)[0] ?? ''],
    localDisk,
    includedTraffic: plan.bandwidth,
    includedIpv4: IPV6_ONLY.test(name) ? 0 : 1,
  };
  const machine = { name, cpu, ...memory(plan.ram, adapter.memoryUnit), facts };
  const selling = new Set(plan.locations.filter((location) => location !== ''));
  for (const regionCode of regions) {
    yield offerOrRejected(name, regionCode, () => {
      const stated = statedIn(plan, regionCode);
      const { price, monthly: monthlyCap } = parseRow(Price, ...stated);
      const spot =
        plan.deploy_preemptible === true
          ? leftOut.read('spot prices', `${name}@${regionCode}`, () => parseRow(Preemptible, ...stated))
          : undefined;
      const terms = spot && { terms: { spot: { price: spot } } };
      return offerItem(
        { regionCode, ...machine, price, ...terms, monthlyCap },
        exclusion(plan, selling.has(regionCode)),
      );
    });
  }
  for (const location of selling.difference(new Set(regions))) {
    const regionCode = label.safeParse(location).data;
    const problem = `locations names ${location}, which /v2/regions does not list as a usable row`;
    yield rejectedRow(`${name}@${location}`, problem, { name, regionCode });
  }
}

/** Returns the object with the prices of a region, and its place in the plan. */
function statedIn(plan: Plan, regionCode: string): [prices: unknown, at: readonly string[]] {
  const own = Object.entries(plan.location_cost ?? {}).find(([region]) => region === regionCode);
  return own === undefined ? [plan, []] : [own[1], ['location_cost', regionCode]];
}

function exclusion(plan: Plan, sold: boolean) {
  const gpu = Boolean(plan.gpu_brand || plan.gpu_type || plan.gpu_vram_gb);
  // Some bare-metal plans show the GPU only in their id.
  if (gpu || GPU_TYPES.has(plan.type) || plan.id.startsWith('vcg-')) return 'accelerated';
  return !sold || plan.deploy_ondemand === false ? 'unavailable' : undefined;
}

function list(
  http: SourceHttp,
  path: string,
  field: string,
  query: JsonRequest['query'] = {},
): AsyncGenerator<CatalogueItem, unknown[]> {
  const Page = pageOf(field, { meta: Meta }).transform(({ rows, meta }) => {
    return { rows, total: meta.total, next: meta.links.next };
  });
  const whole = { ...query, per_page: LARGEST_PAGE };
  const pages = pagesByToken(http, path, Page, whole, ({ next }) => next, 'cursor');
  return wholeList(path, field, pages);
}

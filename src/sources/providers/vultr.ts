import { z } from 'zod';
import type { ExclusionReason } from '../../domain/exclusion.ts';
import { memory } from '../../domain/machine.ts';
import type { SourcePrice } from '../../domain/price.ts';
import { pageOf, wholeList } from '../http/listing.ts';
import { pagesByToken } from '../http/pages.ts';
import { diskIn } from '../schema/facts.ts';
import { amount, count, label } from '../schema/fields.ts';
import { hourlyOrMonthly, offerItem } from '../schema/offers.ts';
import { type Row, readRow, rejectedOffer, rejectedRow, usableRegions, usableRows } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem, JsonRequest, SourceHttp } from '../source.ts';

/** The API's largest page. */
const PER_PAGE = 500;

/** Types of plan whose machines have a GPU, whatever their other fields say. */
const GPU_TYPES: ReadonlySet<string> = new Set(['vcg', 'vdm']);

/**
 * Kinds of cpu by type of plan. Cloud Compute (`vc2`), High Frequency (`vhf`) and High Performance (`vhp`) share it;
 * Optimized (`voc`), Dedicated Cloud (`vdc`) and Bare Metal (`vbm`) do not.
 * Source: https://docs.vultr.com/products/compute/instances and the parameter `type` of the list of plans.
 */
const CPU_KIND: Readonly<Record<string, 'shared' | 'dedicated'>> = {
  vc2: 'shared',
  vhf: 'shared',
  vhp: 'shared',
  voc: 'dedicated',
  vdc: 'dedicated',
  vbm: 'dedicated',
};

/** `next` is the cursor of the next page, empty on the last one. */
const Meta = z.object({ total: z.int(), links: z.object({ next: z.string() }) });

const Region = z.object({ id: label, city: label }).transform(({ id: code, city: name }) => ({ code, name }));

/** Plans before 2023 have only a monthly price. */
const Price = z.object({ hourly_cost: amount.nullish(), monthly_cost: amount.nullish() });

const Plan = z.looseObject({
  id: label,
  vcpu_count: count,
  /** "MB" that are MiB: the plan sold as 1 GB has 1024 of them. */
  ram: count,
  type: z.string(),
  disk: diskIn('GB'),
  /** With several disks, the reference does not say whether `disk` is the size of one or of all. */
  disk_count: z.int().optional().catch(undefined),
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
  gpu_brand: z.string().nullish(),
  gpu_type: z.string().nullish(),
  gpu_vram_gb: z.number().nullish(),
});
type Plan = z.infer<typeof Plan>;

/** Source: https://www.vultr.com/api/#tag/plans, #tag/region, and the fields of its public answers. */
export const adapter: CatalogueAdapter = {
  id: 'vultr',
  provider: { id: 7, name: 'Vultr' },
  baseUrl: 'https://api.vultr.com',
  endpoints: ['/v2/regions', '/v2/plans'],
  credentials: 'none',
  memoryUnit: 'MiB',
  currency: 'USD',
  facts: ['cpuKind', 'localDisk'],
  schedule: '7 * * * *',

  async *catalogue({ http }) {
    const listed = yield* list(http, '/v2/regions', 'regions');
    const usable = yield* usableRegions(listed, Region, 'id', 'region');
    const regions = usable.map(({ code }) => code);
    const plans = yield* list(http, '/v2/plans', 'plans', { type: 'all' });
    for (const plan of yield* usableRows(plans, Plan, 'id', 'plan')) yield* offers(plan, regions);
  },
};

/**
 * Yields a plan as an offer in every region; `unavailable` if its `locations` do not name the region. So a plan that is
 * sold out leaves the catalogue at once and keeps its id.
 */
function* offers(plan: Plan, regions: readonly string[]): Generator<CatalogueItem> {
  const { id: name, vcpu_count: cpu } = plan;
  const localDisk = plan.disk_count === 1 ? plan.disk : undefined;
  // Optimized plans have a suffix: `voc-g`, `voc-c`.
  const facts = { cpuKind: CPU_KIND[plan.type.split('-', 1)[0] ?? ''], localDisk };
  const { ram, unit: ramUnit } = memory(plan.ram, adapter.memoryUnit);
  const selling = new Set(plan.locations.filter((location) => location !== ''));
  for (const regionCode of regions) {
    const { value: price, reason } = priceIn(plan, regionCode);
    const excluded = exclusion(plan, selling.has(regionCode));
    if (price === undefined) yield rejectedOffer(name, regionCode, reason);
    else yield offerItem({ regionCode, name, cpu, ram, ramUnit, price, facts }, excluded);
  }
  for (const location of selling.difference(new Set(regions))) {
    const regionCode = label.safeParse(location).data;
    const problem = `locations names ${location}, which /v2/regions does not list as a usable row`;
    yield rejectedRow(`${name}@${location}`, problem, { name, regionCode });
  }
}

function priceIn(plan: Plan, regionCode: string): Row<SourcePrice> {
  const own = Object.entries(plan.location_cost ?? {}).find(([region]) => region === regionCode);
  const at = own === undefined ? [] : ['location_cost', regionCode];
  const { value, reason } = readRow(Price, own === undefined ? plan : own[1], at);
  if (value === undefined) return { reason };
  const price = hourlyOrMonthly(value.hourly_cost, value.monthly_cost, adapter.currency);
  if (price !== undefined) return { value: price };
  const where = own === undefined ? 'the plan' : `location_cost.${regionCode}`;
  return { reason: `${where} must have an hourly_cost or a monthly_cost; it has neither` };
}

function exclusion(plan: Plan, sold: boolean): ExclusionReason | undefined {
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
  const whole = { ...query, per_page: PER_PAGE };
  return wholeList(
    path,
    field,
    pagesByToken(http, path, Page, whole, ({ next }) => next, 'cursor'),
  );
}

import { z } from 'zod';
import type { ExclusionReason } from '../../domain/exclusion.ts';
import { memory } from '../../domain/memory.ts';
import { isPositive, type SourcePrice } from '../../domain/price.ts';
import { endlessPages, MOST_PAGES, nothingListed } from '../http/listing.ts';
import { amount, count, label } from '../schema/fields.ts';
import { labelIn, readRow, rejectedRow, unusableRegion } from '../schema/rows.ts';
import {
  type CatalogueAdapter,
  type CatalogueItem,
  type JsonRequest,
  SourceError,
  type SourceHttp,
} from '../source.ts';

/** The largest page that the API gives. */
const PER_PAGE = 500;

/** Types of plan whose machines have a GPU, whatever their other fields say. */
const GPU_TYPES: ReadonlySet<string> = new Set(['vcg', 'vdm']);

/** `next` is what to send as `cursor`, empty at the end. */
const Meta = z.object({ total: z.int(), links: z.object({ next: z.string() }) });

interface Page {
  readonly rows: readonly unknown[];
  readonly meta: z.infer<typeof Meta>;
}

const RegionPage = z
  .object({ regions: z.array(z.unknown()), meta: Meta })
  .transform(({ regions, meta }): Page => ({ rows: regions, meta }));

const PlanPage = z
  .object({ plans: z.array(z.unknown()), meta: Meta })
  .transform(({ plans, meta }): Page => ({ rows: plans, meta }));

const Region = z.object({ id: label, city: label });

/** A month counts where no hour is priced, as in every plan before 2023. */
const Price = z.object({ hourly_cost: amount.nullish(), monthly_cost: amount.nullish() });

const Plan = z.looseObject({
  id: label,
  vcpu_count: count,
  /** "MB" that are MiB: the plan that is sold as 1 GB has 1024 of them. */
  ram: count,
  type: z.string(),
  /** Regions that can deploy it now. An empty text has stood among them: it names none. */
  locations: z.array(z.string()),
  /** By region, in place of the plan's own prices; an empty array where PHP had an empty map. */
  location_cost: z
    .union([z.record(z.string(), z.unknown()), z.tuple([]).transform(() => ({}))], {
      error: 'must be prices by region',
    })
    .nullish(),
  /** False where only preemptible machines are sold; older payloads know no such machines. */
  deploy_ondemand: z.boolean().nullish(),
  gpu_brand: z.string().nullish(),
  gpu_type: z.string().nullish(),
  gpu_vram_gb: z.number().nullish(),
});
type Plan = z.infer<typeof Plan>;

/** Source: https://www.vultr.com/api/#tag/plans, #tag/region, and the fields that its public answers have. */
export const adapter: CatalogueAdapter = {
  id: 'vultr',
  provider: { id: 7, name: 'Vultr' },
  baseUrl: 'https://api.vultr.com',
  endpoints: ['/v2/regions', '/v2/plans'],
  credentials: 'none',
  memoryUnit: 'MiB',
  currency: 'USD',
  schedule: '7 * * * *',

  async *catalogue({ http }) {
    const regions: string[] = [];
    const listed = yield* list(http, '/v2/regions', 'regions', RegionPage);
    for (const [index, row] of listed.entries()) {
      const { value, reason } = readRow(Region, row);
      const code = labelIn(row, 'id');
      if (value !== undefined) {
        regions.push(value.id);
        yield { kind: 'region', code: value.id, name: value.city };
      } else {
        yield unusableRegion(code, `region ${index + 1}`, reason);
      }
    }

    const plans = yield* list(http, '/v2/plans', 'plans', PlanPage, { type: 'all' });
    for (const [index, row] of plans.entries()) {
      const { value, reason } = readRow(Plan, row);
      const name = labelIn(row, 'id');
      if (value !== undefined) yield* offers(value, regions);
      else yield rejectedRow(name ?? `plan ${index + 1}`, reason, { name });
    }
  },
};

/**
 * A plan is an offer in every region, unavailable where its `locations` do not name it: what is sold out must leave
 * the catalogue at once, and keeps its id for the day when it is back.
 */
function* offers(plan: Plan, regions: readonly string[]): Generator<CatalogueItem> {
  const { id: name, vcpu_count: cpu } = plan;
  const { ram, unit: ramUnit } = memory(plan.ram, adapter.memoryUnit);
  const selling = new Set(plan.locations.filter((location) => location !== ''));
  for (const regionCode of regions) {
    const { price, reason } = priceIn(plan, regionCode);
    if (price === undefined) {
      yield rejectedRow(`${name}@${regionCode}`, reason ?? 'has no price', { name, regionCode });
      continue;
    }
    const excluded = exclusion(plan, selling.has(regionCode), price);
    const offer = { regionCode, name, cpu, ram, ramUnit, price };
    yield { kind: 'offer', offer: excluded === undefined ? offer : { ...offer, excluded } };
  }
  for (const location of selling.difference(new Set(regions))) {
    const regionCode = label.safeParse(location).data;
    const problem = `locations names ${location}, which /v2/regions does not list or not as it must`;
    yield rejectedRow(`${name}@${location}`, problem, { name, regionCode });
  }
}

function priceIn(plan: Plan, regionCode: string): { price?: SourcePrice; reason?: string } {
  const own = Object.entries(plan.location_cost ?? {}).find(([region]) => region === regionCode);
  const at = own === undefined ? [] : ['location_cost', regionCode];
  const { value, reason } = readRow(Price, own === undefined ? plan : own[1], at);
  if (value === undefined) return { reason };
  const { hourly_cost: hourly, monthly_cost: monthly } = value;
  if (hourly != null) return { price: { amount: hourly, per: 'hour', currency: adapter.currency } };
  if (monthly != null) return { price: { amount: monthly, per: 'month', currency: adapter.currency } };
  const where = own === undefined ? 'the plan' : `location_cost.${regionCode}`;
  return { reason: `${where} must have an hourly_cost or a monthly_cost; it has neither` };
}

function exclusion(plan: Plan, sold: boolean, price: SourcePrice): ExclusionReason | undefined {
  const gpu = Boolean(plan.gpu_brand || plan.gpu_type || plan.gpu_vram_gb);
  // Plans of dedicated metal have had a GPU in their id alone.
  if (gpu || GPU_TYPES.has(plan.type) || plan.id.startsWith('vcg-')) return 'accelerated';
  if (!sold || plan.deploy_ondemand === false) return 'unavailable';
  return isPositive(price.amount) ? undefined : 'zero_price';
}

async function* list(
  http: SourceHttp,
  path: string,
  of: string,
  schema: z.ZodType<Page>,
  query: JsonRequest['query'] = {},
): AsyncGenerator<CatalogueItem, unknown[]> {
  const rows: unknown[] = [];
  const seen = new Set<string>();
  let advertised = 0;
  let cursor = '';
  do {
    const after: JsonRequest['query'] = cursor === '' ? {} : { cursor };
    const { data } = await http.json(path, schema, { query: { ...query, per_page: PER_PAGE, ...after } });
    rows.push(...data.rows);
    advertised = data.meta.total;
    cursor = data.meta.links.next;
    if (seen.has(cursor)) throw new SourceError('invalid', `${path}: meta.links.next leads in a circle`);
    seen.add(cursor);
    if (seen.size > MOST_PAGES) throw endlessPages(path);
  } while (cursor !== '');
  if (rows.length === 0) throw nothingListed(path);
  yield { kind: 'total', of, advertised, fetched: rows.length };
  return rows;
}

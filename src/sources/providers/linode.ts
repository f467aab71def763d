import { z } from 'zod';
import type { ExclusionReason } from '../../domain/exclusion.ts';
import { memory } from '../../domain/memory.ts';
import { isPositive, type SourcePrice } from '../../domain/price.ts';
import { amount, count, countOrNone, label } from '../schema/fields.ts';
import { labelIn, readRow, rejectedRow, unusableRegion } from '../schema/rows.ts';
import { type CatalogueAdapter, type CatalogueItem, SourceError, type SourceHttp } from '../source.ts';

/** Many times what there is; an upstream that always has one more page is broken. */
const MOST_PAGES = 200;

/** What a region must be capable of to sell a class of types. Source: the API's reference of `class`. */
const CAPABILITY: ReadonlyMap<string, string> = new Map([
  ['nanode', 'Linodes'],
  ['standard', 'Linodes'],
  ['dedicated', 'Linodes'],
  ['highmem', 'Linodes'],
  ['premium', 'Premium Plans'],
  ['gpu', 'GPU Linodes'],
  ['accelerated', 'NETINT Quadra T1U'],
]);

const Page = z.object({ data: z.array(z.unknown()), page: z.int(), pages: z.int(), results: z.int() });

const Region = z.object({
  id: label,
  label,
  capabilities: z.array(z.string()),
  status: z.string(),
  site_type: z.enum(['core', 'distributed'], { error: 'must be core or distributed' }).optional(),
});
type Region = z.infer<typeof Region>;

/** A month counts where no hour is priced; null where the price depends on the region or is not published. */
const Price = z.object({ hourly: amount.nullish(), monthly: amount.nullish() });

const Type = z.object({
  id: label,
  class: label.refine((name) => CAPABILITY.has(name), {
    error: `must be one of ${[...CAPABILITY.keys()].join(', ')}`,
  }),
  /** "MB" that are MiB: 1024 of them are sold as 1 GB, and are 1 GiB. */
  memory: count,
  vcpus: count,
  gpus: countOrNone,
  accelerated_devices: countOrNone.nullish(),
  successor: z.string().nullable(),
  price: z.unknown(),
  region_prices: z.array(z.looseObject({ id: label })),
});
type Type = z.infer<typeof Type>;

const Availability = z.object({ region: label, plan: label, available: z.boolean() });

/** Source: https://techdocs.akamai.com/linode-api/reference/get-linode-types, get-regions, get-regions-availability. */
export const adapter: CatalogueAdapter = {
  id: 'linode',
  provider: { id: 6, name: 'Linode' },
  baseUrl: 'https://api.linode.com',
  endpoints: ['/v4/regions', '/v4/linode/types', '/v4beta/regions/availability'],
  credentials: 'none',
  memoryUnit: 'MiB',
  currency: 'USD',
  schedule: '37 * * * *',

  async *catalogue({ http }) {
    const regions: Region[] = [];
    for (const [index, row] of (yield* list(http, '/v4/regions', 'regions')).entries()) {
      const { value, reason } = readRow(Region, row);
      const code = labelIn(row, 'id');
      if (value === undefined) {
        yield unusableRegion(code, `region ${index + 1}`, reason);
      } else {
        regions.push(value);
        yield { kind: 'region', code: value.id, name: value.label };
      }
    }

    const types = yield* list(http, '/v4/linode/types', 'types');
    const availability = yield* list(http, '/v4beta/regions/availability', 'availability');
    const stock = new Map<string, boolean | string>();
    for (const [index, row] of availability.entries()) {
      const { value, reason } = readRow(Availability, row);
      const [regionCode, name] = [labelIn(row, 'region'), labelIn(row, 'plan')];
      if (value !== undefined) stock.set(pair(value.region, value.plan), value.available);
      else if (regionCode !== undefined && name !== undefined)
        stock.set(pair(regionCode, name), `availability: ${reason}`);
      else yield rejectedRow(`availability ${index + 1}`, reason, { regionCode, name });
    }

    for (const [index, row] of types.entries()) {
      const { value, reason } = readRow(Type, row);
      const name = labelIn(row, 'id');
      if (value === undefined) yield rejectedRow(name ?? `type ${index + 1}`, reason, { name });
      else yield* offers(value, regions, stock);
    }
  },
};

/** Types list no regions: a type is in every region that has its capability, whatever availability says there. */
function* offers(
  type: Type,
  regions: readonly Region[],
  stock: ReadonlyMap<string, boolean | string>,
): Generator<CatalogueItem> {
  const { id: name, vcpus: cpu } = type;
  const { ram, unit: ramUnit } = memory(type.memory, adapter.memoryUnit);
  const selling = regions.filter((region) => sells(region, type));
  if (selling.length === 0) {
    // Were the capability renamed, its types must not be taken for gone.
    yield rejectedRow(
      name,
      `no region has the capability "${CAPABILITY.get(type.class)}" that class ${type.class} needs`,
      { name },
    );
  }
  for (const region of selling) {
    const regionCode = region.id;
    const available = stock.get(pair(regionCode, name)) ?? true;
    const { price, reason } = priceIn(type, regionCode);
    if (price === undefined || typeof available === 'string') {
      yield rejectedRow(`${name}@${regionCode}`, reason ?? String(available), { name, regionCode });
      continue;
    }
    const excluded = exclusion(type, available && region.status === 'ok', price);
    const offer = { regionCode, name, cpu, ram, ramUnit, price };
    yield { kind: 'offer', offer: excluded === undefined ? offer : { ...offer, excluded } };
  }
}

/** Distributed sites sell plans of their own, which the public list of types does not hold. */
function sells(region: Region, type: Type): boolean {
  if (region.site_type === 'distributed') return false;
  return region.capabilities.includes(CAPABILITY.get(type.class) ?? '');
}

function priceIn(type: Type, regionCode: string): { price?: SourcePrice; reason?: string } {
  const index = type.region_prices.findIndex((candidate) => candidate.id === regionCode);
  const at = index < 0 ? ['price'] : ['region_prices', index];
  const { value, reason } = readRow(Price, index < 0 ? type.price : type.region_prices[index], at);
  if (value === undefined) return { reason };
  const { hourly, monthly } = value;
  if (hourly != null) return { price: { amount: hourly, per: 'hour', currency: adapter.currency } };
  if (monthly != null) return { price: { amount: monthly, per: 'month', currency: adapter.currency } };
  return {
    reason: `${index < 0 ? 'price' : `region_prices[${index}]`} must have an hourly or a monthly amount; it has neither`,
  };
}

function exclusion(type: Type, orderable: boolean, price: SourcePrice): ExclusionReason | undefined {
  const accelerators = type.gpus + (type.accelerated_devices ?? 0);
  if (accelerators > 0 || type.class === 'gpu' || type.class === 'accelerated') return 'accelerated';
  if (type.successor !== null) return 'deprecated';
  if (!orderable) return 'unavailable';
  return isPositive(price.amount) ? undefined : 'zero_price';
}

function pair(regionCode: string, name: string): string {
  return JSON.stringify([regionCode, name]);
}

async function* list(http: SourceHttp, path: string, of: string): AsyncGenerator<CatalogueItem, unknown[]> {
  const rows: unknown[] = [];
  let advertised = 0;
  for (let page = 1, pages = 1; page <= pages; page++) {
    const { data } = await http.json(path, Page, { query: { page } });
    if (data.page !== page)
      throw new SourceError('invalid', `${path}: asked for page ${page}, got page ${data.page}`);
    if (data.pages > MOST_PAGES)
      throw new SourceError('invalid', `${path} has more than ${MOST_PAGES} pages`);
    rows.push(...data.data);
    pages = data.pages;
    advertised = data.results;
  }
  if (rows.length === 0)
    throw new SourceError('invalid', `${path} lists nothing; an empty answer is never taken for "all gone"`);
  yield { kind: 'total', of, advertised, fetched: rows.length };
  return rows;
}

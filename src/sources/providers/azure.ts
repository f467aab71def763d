import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { siblingHost } from '../http/address.ts';
import { eachRegion, nothingListed, pagesByLink } from '../http/lists.ts';
import { architecture, gigabytes } from '../schema/facts.ts';
import {
  count,
  endTime,
  invalid,
  label,
  NOTHING_LISTED,
  omittedAtEnd,
  quantity,
  someRows,
} from '../schema/fields.ts';
import { offerItem, rejectedOffer, rejectedRow, unusableRegion } from '../schema/items.ts';
import { LeftOut } from '../schema/left-out.ts';
import { RegionPrices } from '../schema/region-prices.ts';
import { labelIn, type Row, readRow } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem, RejectedRow, SourceHttp } from '../source.ts';
import { readPlans, type Size } from './azure/database-plans.ts';
import { BOUNDS, PRICES } from './azure/price-list.ts';
import { type RegionOfPrices, readPrices } from './azure/prices.ts';
import { PREFERRED, readRegionPrices } from './azure/region-prices.ts';

const LOCATIONS = '/locations';
const SKUS = '/providers/Microsoft.Compute/skus';
const SUBSCRIPTION = 'https://management.azure.com/subscriptions/SUBSCRIPTION';

const Locations = z.object({ value: someRows });
/** A location may be `Logical`, such as `europe` or `global`. */
const Location = z.object({
  name: label.regex(/^[a-z0-9-]+$/, { error: 'must be a name such as eastus' }),
  metadata: z.object({ regionType: z.string().optional() }).nullish(),
});
/** Regions for tests of Azure itself: they have SKUs and no prices. */
const CANARY = /(euap|stage|stg)$/;

const SkuPage = z.object({ value: z.array(z.unknown()), nextLink: omittedAtEnd });
const Kind = z.object({ resourceType: z.string(), name: label });
const cpus = z
  .string()
  .regex(/^\d{1,5}$/, { error: 'must be a whole number above 0' })
  .transform(Number)
  .pipe(count);
/** `03/31/2027`; `01/01/9999` means never, and all sizes of the seventh version have it. */
const retirement = z
  .string()
  .transform((text, context) => {
    const [, month, day, year] = /^(\d{2})\/(\d{2})\/(\d{4})$/.exec(text) ?? [];
    return year === undefined
      ? invalid(context, `must be a date such as 03/31/2027; it is ${JSON.stringify(text.slice(0, 40))}`)
      : `${year}-${month}-${day}`;
  })
  .pipe(endTime);
const Capabilities = z.object({
  vCPUs: cpus,
  /** For a constrained size, which has fewer vCPUs than Azure charges for. */
  vCPUsAvailable: cpus.optional(),
  MemoryGB: z
    .string()
    .regex(/^\d{1,6}(\.\d+)?$/, { error: 'must be a number above 0' })
    .transform(Number)
    .pipe(quantity),
  GPUs: z.string().optional(),
  CpuArchitectureType: architecture,
  /** The temporary disk, "MB" that are MiB: Standard_D2ds_v5 has 76800, sold as 75 GiB. */
  MaxResourceVolumeMB: z.string().optional().catch(undefined),
  NvmeDiskSizeInMiB: z.string().optional().catch(undefined),
  RetirementDateUtc: retirement.optional(),
});
const Sku = z.object({
  capabilities: z
    .array(z.object({ name: z.string(), value: z.string() }))
    .transform((list): unknown => Object.fromEntries(list.map(({ name, value }) => [name, value])))
    .pipe(Capabilities),
  restrictions: z.array(z.object({ type: z.string() })),
});
type Sku = z.infer<typeof Sku>;

interface Sizes {
  readonly byName: ReadonlyMap<string, Row<Sku>>;
  /** Rows without a readable name: each may be any size. */
  readonly nameless: readonly RejectedRow[];
}

type Regions = Map<string, Sizes & RegionOfPrices>;

/**
 * Source: https://learn.microsoft.com/rest/api/compute/resource-skus/list, /rest/api/resources/subscriptions/list-locations and
 * azure/prices.ts. The price list has the price of a size in a region. The list of SKUs has its shape, and whether the region sells it.
 */
export const adapter: CatalogueAdapter = {
  id: 'azure',
  provider: { id: 3, name: 'Azure' },
  baseUrl: 'https://management.azure.com',
  endpoints: [LOCATIONS, SKUS].map((path) => `/subscriptions/{subscription}${path}`).concat(PRICES),
  credentials: 'bearer',
  tokenIssuers: {
    'client-credentials': {
      tokenUrl: 'https://login.microsoftonline.com/{tenantId}/oauth2/v2.0/token',
      scope: 'https://management.azure.com/.default',
    },
    'managed-identity': { resource: 'https://management.azure.com/' },
  },
  memoryUnit: 'GiB',
  currency: 'USD',
  facts: ['architecture', 'generation', 'localDisk', 'retiresAt'],
  schedule: '7 */6 * * *',
  notes:
    `The URL names a subscription: \`${SUBSCRIPTION}\`. The credentials belong to an application or to a managed identity ` +
    'with the role Reader in it. An access token for `https://management.azure.com/` (`AZURE_TOKEN`) expires after about ' +
    'an hour: use [credentials that renew themselves](#credentials). Each region that the subscription lists is read by itself. A ' +
    'size without an ordinary price in it counts as missing. A size that the subscription may not deploy in a ' +
    'region is `unavailable` there. Prices are read from `https://prices.azure.com` without credentials. If the URL is ' +
    `not Microsoft’s, prices are read there too: \`${PRICES}\` replaces the path from \`/subscriptions/\` on. Terms of Linux ` +
    'are Spot, savings plans and reservations; a reservation is paid upfront, or in equal parts by the month at the same ' +
    'total. Of the disks, only Premium SSD v2 has a price for a GiB: the others are sold in fixed sizes. Flexible servers of Azure Database for ' +
    'PostgreSQL and MySQL are plans with one node. The price list has the price of a vCore or of a whole server. The numbers of vCores are the documented ones, and CPUs and memory are ' +
    'those of the size with the same name in the list of SKUs, but E64ds_v4 has 432 GiB for PostgreSQL. A row that names no size or no series is left out. A standby of high availability, storage and backups cost extra.',

  async *catalogue({ http, now }) {
    const prices = siblingHost(http, {
      below: /^(.*)\/subscriptions\/[^/]+\/?$/,
      example: SUBSCRIPTION,
      first: /(^|\.)management\.azure\.com$/,
      second: 'https://prices.azure.com',
      credentials: 'none',
    });
    const leftOut = new LeftOut();
    const regions: Regions = new Map();
    yield* eachRegion(yield* readLocations(http), async (code) => {
      const sizes = await readSizes(http, code);
      const { items, found } = await gathered(readPrices(prices, code, now(), leftOut));
      regions.set(code, { ...sizes, ...found });
      return [...sizes.nameless, ...items];
    });
    for (const [code, { name }] of regions) if (name !== undefined) yield { kind: 'region', code, name };
    if (![...regions.values()].some(({ reservations }) => reservations > 0))
      leftOut.add('reserved prices', 'reservations', NOTHING_LISTED);
    const anywhere = skusIn(regions);
    yield* offers(regions, anywhere);
    const regionPrices = new RegionPrices(leftOut);
    yield* readRegionPrices(prices, now(), regionPrices, regions);
    await readPlans(prices, now(), regionPrices, regions, sizesIn(anywhere));
    yield* regionPrices.items(PREFERRED);
  },
};

async function* readLocations(http: SourceHttp): AsyncGenerator<CatalogueItem, string[]> {
  const query = { 'api-version': '2022-12-01' };
  const { value: rows } = (await http.json(LOCATIONS, Locations, { query })).data;
  const codes = new Set<string>();
  for (const [index, row] of rows.entries()) {
    const { value, reason } = readRow(Location, row);
    if (value === undefined) yield unusableRegion(labelIn(row, 'name'), `location ${index + 1}`, reason);
    else if (value.metadata?.regionType !== 'Logical' && !CANARY.test(value.name)) codes.add(value.name);
  }
  return [...codes];
}

async function gathered<T>(
  reading: AsyncGenerator<CatalogueItem, T>,
): Promise<{ items: CatalogueItem[]; found: T }> {
  const items: CatalogueItem[] = [];
  for (;;) {
    const { done, value } = await reading.next();
    if (done) return { items, found: value };
    items.push(value);
  }
}

async function readSizes(http: SourceHttp, regionCode: string): Promise<Sizes> {
  const byName = new Map<string, Row<Sku>>();
  const nameless: RejectedRow[] = [];
  const query = { 'api-version': '2021-07-01', $filter: `location eq '${regionCode}'` };
  let listed = 0;
  const pages = pagesByLink(http, SKUS, SkuPage, query, (page) => page.nextLink, BOUNDS);
  for await (const { data } of pages) {
    for (const row of data.value) {
      listed += 1;
      const { value: kind, reason } = readRow(Kind, row);
      const name = labelIn(row, 'name');
      if (kind?.resourceType === 'virtualMachines') byName.set(kind.name, readRow(Sku, row));
      else if (kind === undefined && name !== undefined) byName.set(name, { reason });
      else if (kind === undefined)
        nameless.push(rejectedRow(`SKU ${listed}@${regionCode}`, reason, { regionCode }));
    }
  }
  if (listed === 0) throw nothingListed(`${http.base.pathname}${SKUS} in ${regionCode}`);
  return { byName, nameless };
}

/** Returns the SKUs of all regions by name: a size has the same shape in each. */
function skusIn(regions: Regions): ReadonlyMap<string, Sku> {
  const anywhere = new Map<string, Sku>();
  for (const { byName } of regions.values())
    for (const [name, { value }] of byName) if (value !== undefined) anywhere.set(name, value);
  return anywhere;
}

/** The price list spells names of sizes in several ways. */
function sizesIn(skus: ReadonlyMap<string, Sku>): ReadonlyMap<string, Size> {
  return new Map(
    [...skus].map(([name, { capabilities }]) => {
      const { vCPUs, vCPUsAvailable: cpu = vCPUs, MemoryGB } = capabilities;
      return [name.toLowerCase(), { name, cpu, memory: MemoryGB }];
    }),
  );
}

function* offers(regions: Regions, anywhere: ReadonlyMap<string, Sku>): Generator<CatalogueItem> {
  const unknown = new Set<string>();
  const priced = [...regions.values()].flatMap((region) =>
    region.priced.map((size) => ({ ...size, region })),
  );
  for (const { name, regionCode, price, terms, region } of priced) {
    const rejected = (reason: string) => rejectedOffer(name, regionCode, reason);
    const here = region.byName.get(name);
    const sku = here === undefined ? anywhere.get(name) : here.value;
    if (price.value === undefined) yield rejected(price.reason);
    // The rejected row without a name already covers this size.
    else if (here === undefined && region.nameless.length > 0) continue;
    else if (here?.reason !== undefined) yield rejected(here.reason);
    else if (sku === undefined) unknown.add(name);
    else {
      const { MemoryGB, vCPUs, vCPUsAvailable: cpu = vCPUs } = sku.capabilities;
      const hourly = { amount: price.value, per: 'hour', currency: adapter.currency } as const;
      const machine = { name, cpu, ...memory(MemoryGB, adapter.memoryUnit), price: hourly };
      const excluded = exclusion(name, sku, here !== undefined);
      const some = Object.keys(terms).length > 0 && { terms };
      yield offerItem({ regionCode, ...machine, ...some, facts: factsOf(name, sku) }, excluded);
    }
  }
  if (unknown.size > 0) yield notOffered([...unknown].sort());
}

/** Sizes that one row names. */
const MOST_NAMED = 20;

/** One row for all sizes: they are hundreds in every run, and would hide other rejected rows. */
function notOffered(names: readonly string[]): RejectedRow {
  const shown = names.slice(0, MOST_NAMED).join(', ');
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : '';
  const sizes = names.length === 1 ? 'one size is' : `${names.length} sizes are`;
  const reason = `${sizes} not offered to this subscription: ${shown}${more}. The price list has them, and no region lists them among its SKUs`;
  // No machine has this name.
  return { ...rejectedRow('sizes', reason, { name: 'sizes' }), waits: true };
}

/** Source of the generation: https://learn.microsoft.com/azure/virtual-machines/vm-naming-conventions. */
function factsOf(name: string, { capabilities }: Sku) {
  const { CpuArchitectureType, MaxResourceVolumeMB, NvmeDiskSizeInMiB = '0' } = capabilities;
  const sizes = [MaxResourceVolumeMB ?? '', NvmeDiskSizeInMiB];
  const isStated = sizes.every((size) => /^\d{1,9}$/.test(size));
  const [temporary = 0, nvme = 0] = sizes.map(Number);
  // If a size has both, the documentation does not say whether one includes the other.
  const mebibytes = isStated && (temporary === 0 || nvme === 0) ? temporary + nvme : undefined;
  return {
    architecture: CpuArchitectureType,
    generation: /_(v\d+)$/.exec(name)?.[1],
    localDisk: mebibytes === undefined ? undefined : gigabytes(mebibytes, 'MiB'),
    retiresAt: capabilities.RetirementDateUtc,
  };
}

function exclusion(name: string, sku: Sku, isListed: boolean) {
  const { capabilities, restrictions } = sku;
  // All N-series have accelerators; GPUs does not count the FPGAs of NP.
  if (Number(capabilities.GPUs ?? 0) > 0 || /^Standard_N/.test(name)) return 'accelerated';
  // A restriction of type `Zone` leaves other zones of the region.
  return !isListed || restrictions.some(({ type }) => type === 'Location') ? 'unavailable' : undefined;
}

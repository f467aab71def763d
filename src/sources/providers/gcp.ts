import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { siblingHost } from '../http/address.ts';
import { nothingListed, pagesByToken } from '../http/lists.ts';
import { architecture, gigabytes } from '../schema/facts.ts';
import { count, endTime, label, omittedAtEnd } from '../schema/fields.ts';
import { offerItem, offerOrRejected, rejectedRow, unusableRegion } from '../schema/items.ts';
import { LeftOut } from '../schema/left-out.ts';
import { RegionPrices } from '../schema/region-prices.ts';
import { labelIn, readRow, unusable } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem, RejectedRow, SourceHttp, UnreadRegion } from '../source.ts';
import { DATABASE_SKUS, readPlans } from './gcp/database-plans.ts';
import { localDisks } from './gcp/local-disks.ts';
import { Rates } from './gcp/rates.ts';
import { RegionSkus } from './gcp/region-prices.ts';
import { SKUS_QUERY, Sku, SkuPage } from './gcp/sku.ts';

const TYPES = '/aggregated/machineTypes';
/** The SKUs of Compute Engine. Source: https://cloud.google.com/billing/docs/reference/rest/v1/services.skus/list. */
const SKUS = '/v1/services/6F81-5844-456A/skus';
const AUTH = 'https://www.googleapis.com/auth';
const SCOPE = `${AUTH}/compute.readonly ${AUTH}/cloud-billing.readonly`;
const PROJECT = 'https://compute.googleapis.com/compute/v1/projects/PROJECT';

const TypePage = z.object({
  items: z.record(z.string(), z.unknown()),
  nextPageToken: omittedAtEnd,
  unreachables: z.array(z.string()).optional(),
});
const Scope = z
  .object({
    machineTypes: z.array(z.unknown()).optional(),
    warning: z.object({ code: z.string() }).optional(),
  })
  .refine(({ machineTypes, warning }) => machineTypes !== undefined || warning !== undefined, {
    path: ['machineTypes'],
    error: 'is missing, and no warning says why',
  });
const MachineType = z.object({
  name: label,
  guestCpus: count,
  memoryMb: count,
  isSharedCpu: z.boolean().optional(),
  architecture,
  accelerators: z.array(z.unknown()).optional(),
  bundledLocalSsds: z.unknown().optional(),
  description: z.string().max(1000).optional().catch(undefined),
  deprecated: z
    .object({ state: z.string(), obsolete: endTime.optional(), deleted: endTime.optional() })
    .optional(),
});
type MachineType = z.infer<typeof MachineType>;

type TypesByRegion = Map<string, Map<string, MachineType[]>>;

/**
 * Source: https://cloud.google.com/compute/docs/reference/rest/v1/machineTypes/aggregatedList and gcp/rates.ts. Rates are by
 * region, types by zone: a region has every type that one of its zones has. The price of a machine with accelerators lacks
 * these and its disks; such machines are never published.
 */
export const adapter: CatalogueAdapter = {
  id: 'gcp',
  provider: { id: 1, name: 'GCP' },
  baseUrl: 'https://compute.googleapis.com',
  endpoints: [`/compute/v1/projects/{project}${TYPES}`, SKUS, DATABASE_SKUS],
  credentials: 'bearer',
  tokenIssuers: { 'service-account': { scope: SCOPE }, 'metadata-server': { scope: SCOPE } },
  apiKey: {
    credentials: 'x-goog-api-key',
    describe: 'API key that reads the prices instead of the token; machine types need a token anyway',
  },
  memoryUnit: 'MiB',
  currency: 'USD',
  facts: ['architecture', 'generation', 'cpuKind', 'localDisk', 'orderableUntil'],
  schedule: '47 */6 * * *',
  notes:
    `The URL names a project: \`${PROJECT}\`. The credentials belong to a service account with the role Compute Viewer ` +
    'in it; the Compute Engine API and the Cloud Billing API are enabled in the project. An access token (`GCP_TOKEN`) ' +
    'expires after an hour: use [credentials that renew themselves](#credentials). Prices are read from ' +
    '`https://cloudbilling.googleapis.com`, with the same token or with an API key. If the URL is not ' +
    `Google’s, prices are read there too: \`${SKUS}\` replaces the path from \`/compute/v1/\` on. Terms are Spot and ` +
    'commitments for resources, which are billed by the month without a payment upfront; commitments for an amount of money ' +
    'have no price of a machine. Local disks that a type always has are part of its price. The default of traffic is the Premium Tier to the part of the world of its region. Included ' +
    'quantities are those of an account. Plans of databases are dedicated instances of Cloud SQL for PostgreSQL and MySQL. Google prices their CPUs and memory, so Fleetbook adds both ' +
    'for the shapes that Google names: Enterprise with 3.75 and 6.5 GiB for each CPU, and Enterprise Plus. A Zonal instance has one node; a Regional one has two, and its price includes ' +
    'the standby. Shared cores, N4 and C4A, old tiers with one price, commitments, storage and Extended Support are not listed. The SKUs do not state which shapes a region sells.',

  async *catalogue({ http, now }) {
    const billing = siblingHost(http, {
      below: /^(.*)\/compute\/v1\/projects\/[^/]+\/?$/,
      example: PROJECT,
      first: /\.googleapis\.com$/,
      second: 'https://cloudbilling.googleapis.com',
      credentials: 'key',
    });
    const regions: TypesByRegion = new Map();
    const unread: Unread[] = [];
    for await (const row of readTypes(http, regions)) {
      unread.push(row);
      yield row;
    }
    const leftOut = new LeftOut();
    const regionPrices = new RegionPrices(leftOut);
    const { rates, regionSkus } = yield* readSkus(billing, now(), leftOut);
    const unpriced = new Map<string, string>();
    for (const [regionCode, types] of regions) {
      // Google names a region only by its code.
      yield { kind: 'region', code: regionCode, name: regionCode };
      regionSkus.addTo(regionPrices, regionCode);
      for (const [name, zones] of types) {
        const isShared = zones.some((type) => type.isSharedCpu === true);
        const disks = isAccelerated(zones) ? 0 : localDisks(name, zones);
        const problem = disks === undefined ? UNKNOWN_DISKS : rates.unpriced(name, isShared);
        if (problem !== undefined) unpriced.set(name, problem);
        // An unread zone may still sell it: the zone's row already covers the type.
        else if (!isSold(zones) && unread.some((row) => covers(row, name, regionCode))) continue;
        else yield offerOrRejected(name, regionCode, () => offered(regionCode, name, zones, rates, disks));
      }
    }
    // One row for all regions, since it is one problem.
    for (const [name, reason] of unpriced) yield rejectedRow(name, reason, { name });
    await readPlans(billing, now(), regionPrices, regions);
    yield* regionPrices.items(['pd-balanced']);
  },
};

const UNKNOWN_DISKS = 'has local disks in its price, and their size is not known';

type Unread = RejectedRow | UnreadRegion;

async function* readSkus(
  http: SourceHttp,
  now: Date,
  leftOut: LeftOut,
): AsyncGenerator<RejectedRow, { rates: Rates; regionSkus: RegionSkus }> {
  const rates = new Rates(leftOut);
  const regionSkus = new RegionSkus();
  let listed = 0;
  const pages = pagesByToken(http, SKUS, SkuPage, SKUS_QUERY, (page) => page.nextPageToken, 'pageToken');
  for await (const { data } of pages) {
    for (const row of data.skus) {
      listed += 1;
      const id = labelIn(row, 'skuId') ?? `SKU ${listed}`;
      const { value: sku, reason } = readRow(Sku, row);
      if (sku === undefined) {
        yield rejectedRow(id, reason);
        continue;
      }
      const found = { ...sku, usage: sku.category.usageType, id, row, now };
      rates.add(found);
      regionSkus.add(found);
    }
  }
  if (listed === 0) throw nothingListed(`${SKUS}: skus`);
  return { rates, regionSkus };
}

async function* readTypes(http: SourceHttp, regions: TypesByRegion): AsyncGenerator<Unread, void> {
  const query = { maxResults: 500, returnPartialSuccess: 'true' };
  let listed = 0;
  const pages = pagesByToken(http, TYPES, TypePage, query, (page) => page.nextPageToken, 'pageToken');
  for await (const { data: page } of pages) {
    for (const zone of page.unreachables ?? []) yield unreadZone(zone, 'could not be reached');
    for (const [zone, row] of Object.entries(page.items)) {
      const { value: scope, reason } = readRow(Scope, row, ['items', zone]);
      const code = scope?.warning?.code ?? 'NO_RESULTS_ON_PAGE';
      if (scope === undefined) yield unreadZone(zone, reason);
      else if (code !== 'NO_RESULTS_ON_PAGE') yield unreadZone(zone, code);
      yield* typesOf(zone, scope?.machineTypes ?? [], regions);
      listed += scope?.machineTypes?.length ?? 0;
    }
  }
  if (listed === 0) throw nothingListed(`${TYPES}: items`);
}

function* typesOf(zone: string, rows: readonly unknown[], regions: TypesByRegion): Generator<RejectedRow> {
  const regionCode = regionOf(zone);
  if (regionCode === undefined) {
    if (rows.length > 0) yield rejectedRow(zone, `items.${zone} is no zone such as zones/us-central1-a`);
    return;
  }
  const types = regions.get(regionCode) ?? new Map<string, MachineType[]>();
  for (const [index, row] of rows.entries()) {
    const { value: type, reason } = readRow(MachineType, row);
    const name = labelIn(row, 'name');
    if (type !== undefined) types.set(type.name, [...(types.get(type.name) ?? []), type]);
    else yield rejectedRow(`${name ?? `machine type ${index + 1}`}@${zone}`, reason, { name, regionCode });
  }
  if (types.size > 0) regions.set(regionCode, types);
}

function regionOf(zone: string): string | undefined {
  return /\bzones\/([a-z]+(?:-[a-z]+)+\d+)-[a-z0-9]+$/.exec(zone)?.[1];
}

/** An unread zone makes its whole region unread: the other zones may lack some of its types. */
function unreadZone(zone: string, why: string): Unread {
  const reason = `${zone}: ${why}; the machines of its region stay as they were`;
  return unusableRegion(regionOf(zone), zone, reason);
}

function offered(
  regionCode: string,
  name: string,
  zones: readonly MachineType[],
  rates: Rates,
  disks = 0,
): CatalogueItem {
  const [type, ...others] = zones;
  if (type === undefined) return unusable('is in no zone');
  const { guestCpus: cpu, memoryMb } = type;
  if (others.some((other) => other.guestCpus !== cpu || other.memoryMb !== memoryMb))
    unusable('guestCpus or memoryMb differ between the zones of the region');
  const billed = { name, guestCpus: cpu, memoryMb, disks };
  const price = {
    amount: rates.hourly(billed, regionCode),
    per: 'hour',
    currency: adapter.currency,
  } as const;
  const machine = { name, cpu, ...memory(memoryMb, adapter.memoryUnit), price };
  const excluded = exclusion(zones);
  const terms = excluded === 'accelerated' ? {} : rates.terms(billed, regionCode);
  const some = Object.keys(terms).length > 0 && { terms };
  return offerItem({ regionCode, ...machine, ...some, facts: factsOf(name, zones, disks) }, excluded);
}

/** Source of the series: https://cloud.google.com/compute/docs/machine-resource#machine_type_terminology. */
function factsOf(name: string, zones: readonly MachineType[], disks: number) {
  const isShared = agreed(zones.map((zone) => zone.isSharedCpu));
  const architecture = agreed(zones.map((zone) => zone.architecture));
  return {
    architecture: architecture === 'architecture_unspecified' ? undefined : architecture,
    generation: name.split('-')[0],
    // Other types may have disks that are no part of their price.
    localDisk: disks === 0 ? undefined : gigabytes(disks, 'GiB'),
    cpuKind: isShared === undefined ? undefined : isShared ? ('shared' as const) : ('dedicated' as const),
    orderableUntil: endOfSale(zones),
  };
}

/** Returns the value of all zones that state one; undefined if they differ. */
function agreed<T>(values: readonly (T | undefined)[]): T | undefined {
  const [one, ...others] = new Set(values.filter((each) => each !== undefined));
  return others.length === 0 ? one : undefined;
}

function exclusion(zones: readonly MachineType[]) {
  if (isAccelerated(zones)) return 'accelerated';
  return isSold(zones) ? undefined : 'discontinued';
}

function isAccelerated(zones: readonly MachineType[]): boolean {
  return zones.some(({ accelerators = [] }) => accelerators.length > 0);
}

/** "Operations which create a new resource using a DEPRECATED resource will return successfully." OBSOLETE and DELETED ones fail. */
const SOLD: ReadonlySet<string> = new Set(['ACTIVE', 'DEPRECATED']);

const sellsIn = ({ deprecated }: MachineType): boolean => SOLD.has(deprecated?.state ?? 'ACTIVE');

/** A type can be ordered if one zone sells it. */
function isSold(zones: readonly MachineType[]): boolean {
  return zones.some(sellsIn);
}

/** Returns when the last zone that sells a type becomes OBSOLETE or DELETED; undefined if one of them states no time. */
function endOfSale(zones: readonly MachineType[]): string | undefined {
  const ends = zones.filter(sellsIn).map(({ deprecated }) => {
    // Both have the same form, so their order is that of the times.
    const [first] = [deprecated?.obsolete, deprecated?.deleted].filter((end) => end !== undefined).sort();
    return first;
  });
  return ends.includes(undefined) ? undefined : ends.sort().at(-1);
}

function covers(row: Unread, name: string, regionCode: string): boolean {
  return (
    ((row.kind === 'rejected' ? row.name : undefined) ?? name) === name &&
    (row.regionCode ?? regionCode) === regionCode
  );
}

import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { anotherPage, completeRows, pagesByNumber, wholeList } from '../http/lists.ts';
import { diskIn, networkIn, trafficIn } from '../schema/facts.ts';
import { amount, count, countOrNone, countryIn, hourlyOrMonthly, label, oneOf } from '../schema/fields.ts';
import { offerItem, offerOrRejected, rejectedRow, usableRegions, usableRows } from '../schema/items.ts';
import { RegionPrices } from '../schema/region-prices.ts';
import { labelIn, parseRow, type Row, readRow, valueIn } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem, SourceHttp, UnreadItem } from '../source.ts';
import { addPlans } from './linode/database-plans.ts';

const VOLUMES = '/v4/volumes/types';
const TRAFFIC = '/v4/network-transfer/prices';
const DATABASES = '/v4/databases/types';

/** The capability that a region needs to sell a class of types. Source: the API's reference of `class`. */
const CAPABILITY: ReadonlyMap<string, string> = new Map([
  ['nanode', 'Linodes'],
  ['standard', 'Linodes'],
  ['dedicated', 'Linodes'],
  ['highmem', 'Linodes'],
  ['premium', 'Premium Plans'],
  ['gpu', 'GPU Linodes'],
  ['accelerated', 'NETINT Quadra T1U'],
]);

/** Source: the same reference. */
const CPU_KIND: Readonly<Record<string, 'shared' | 'dedicated'>> = {
  nanode: 'shared',
  standard: 'shared',
  dedicated: 'dedicated',
  highmem: 'dedicated',
  premium: 'dedicated',
};

/** Source: https://techdocs.akamai.com/linode-api/reference/post-add-linode-ip, "after the one included with each Linode". */
const INCLUDED_IPV4 = 1;

const Page = z
  .object({ data: z.array(z.unknown()), page: z.int(), pages: z.int(), results: z.int() })
  .transform(({ data, page, pages, results }) => ({ rows: data, page, pages, total: results }));

const Region = z
  .object({
    id: label,
    label,
    capabilities: z.array(z.string()),
    site_type: oneOf(['core', 'distributed']).optional(),
    country: countryIn,
  })
  .transform(({ id: code, label: name, ...region }) => ({ code, name, ...region }));
type Region = z.infer<typeof Region>;

const Price = hourlyOrMonthly('hourly', 'monthly', 'USD');

const Type = z.object({
  id: label,
  class: label.refine((name) => CAPABILITY.has(name), {
    error: `must be one of ${[...CAPABILITY.keys()].join(', ')}`,
  }),
  /** "MB" that are MiB, as for the disk: 1024 of them are sold as 1 GB. */
  memory: count,
  vcpus: count,
  disk: diskIn('MiB'),
  network_out: networkIn(1e6),
  /** GB a month, shared with the account's other machines. */
  transfer: trafficIn(1e9),
  gpus: countOrNone,
  accelerated_devices: countOrNone.nullish(),
  successor: z.string().nullable(),
  price: z.unknown(),
  region_prices: z.array(z.looseObject({ id: label })),
});
type Type = z.infer<typeof Type>;

/** In both lists of prices. The price of one GB of traffic is in `hourly`, and there is no month. */
const Rate = z.object({ hourly: amount.nullable(), monthly: amount.nullable() });
const Rated = z.object({ id: label, price: Rate, region_prices: z.array(Rate.extend({ id: label })) });
type Rated = z.infer<typeof Rated>;

const Availability = z.object({ region: label, plan: label, available: z.boolean() });

/**
 * Source: https://techdocs.akamai.com/linode-api/reference/get-linode-types, get-regions, get-regions-availability,
 * get-volume-types, get-network-transfer-prices, get-databases-types. Source of the cap: https://www.linode.com/pricing/, "up to its monthly cap".
 */
export const adapter: CatalogueAdapter = {
  id: 'linode',
  provider: { id: 6, name: 'Linode' },
  baseUrl: 'https://api.linode.com',
  endpoints: ['/v4/regions', '/v4/linode/types', '/v4beta/regions/availability', VOLUMES, TRAFFIC, DATABASES],
  credentials: 'none',
  memoryUnit: 'MiB',
  currency: 'USD',
  facts: ['cpuKind', 'localDisk', 'network', 'includedTraffic', 'includedIpv4'],
  schedule: '37 * * * *',
  notes:
    'Linode caps the bill at a monthly price, which Fleetbook reads. Without it, the hourly price times 730 hours would ' +
    'overstate the month by 9.5 %. The prices of storage and of managed databases are their monthly ones, for the same reason.',

  async *catalogue({ http }) {
    const listed = yield* list(http, '/v4/regions', 'regions');
    const regions = yield* usableRegions(listed, Region, 'id', 'region');
    const types = yield* list(http, '/v4/linode/types', 'types');
    const availability = yield* list(http, '/v4beta/regions/availability', 'availability');
    const stock = new Map<string, Row<z.infer<typeof Availability>>>();
    for (const [index, row] of availability.entries()) {
      const read = readRow(Availability, row);
      const [regionCode, name] = [labelIn(row, 'region'), labelIn(row, 'plan')];
      if (regionCode !== undefined && name !== undefined) stock.set(pair(regionCode, name), read);
      else yield rejectedRow(`availability ${index + 1}`, read.reason ?? '', { regionCode, name });
    }
    for (const type of yield* usableRows(types, Type, 'id', 'type')) yield* offers(type, regions, stock);
    const prices = new RegionPrices();
    const read = (item: UnreadItem, path: string, add: (row: unknown, key: string) => void) =>
      prices.read(item, path, async () => {
        const rows = await completeRows(path, list(http, path, path));
        for (const [index, row] of rows.entries()) add(row, labelIn(row, 'id') ?? String(index + 1));
      });
    await read('block_storage', VOLUMES, (row, key) => addStorage(prices, key, row, regions));
    await read('traffic_out', TRAFFIC, (row, key) => addTraffic(prices, key, row, regions));
    const selling = regions.filter(({ capabilities }) => capabilities.includes('Managed Databases'));
    const codes = selling.map(({ code }) => code);
    await read('database_plan', DATABASES, (row, key) => addPlans(prices, key, row, codes));
    yield* prices.items();
  },
};

/** A volume of 20 "GB" is one of 20 GiB: https://github.com/linode/linode-blockstorage-csi-driver. */
function addStorage(prices: RegionPrices, key: string, row: unknown, regions: readonly Region[]): void {
  const rated = prices.usable('block_storage', key, () => parseRow(Rated, row));
  if (rated?.id !== 'volume') return;
  for (const { code, capabilities } of regions) {
    const { hourly, monthly } = rateIn(rated, code);
    const amount = monthly ?? hourly;
    if (amount === null || !capabilities.includes('Block Storage')) continue;
    const per = monthly === null ? 'hour' : 'month';
    const price = { item: 'block_storage', name: rated.id, unit: 'GiB', per, amount } as const;
    prices.add(code, { ...price, currency: adapter.currency });
  }
}

/** Traffic beyond what the machines include. Distributed sites have another price. */
function addTraffic(prices: RegionPrices, key: string, row: unknown, regions: readonly Region[]): void {
  const rated = prices.usable('traffic_out', key, () => parseRow(Rated, row));
  if (rated === undefined) return;
  for (const { code, site_type: site } of regions) {
    const { hourly: amount } = rateIn(rated, code);
    const name = site === 'distributed' ? 'distributed_network_transfer' : 'network_transfer';
    if (amount === null || name !== rated.id) continue;
    const price = { item: 'traffic_out', name, unit: 'GB', per: undefined, amount } as const;
    prices.add(code, { ...price, currency: adapter.currency });
  }
}

function rateIn({ price, region_prices }: Rated, regionCode: string): z.infer<typeof Rate> {
  return region_prices.find(({ id }) => id === regionCode) ?? price;
}

function* offers(
  type: Type,
  regions: readonly Region[],
  stock: ReadonlyMap<string, Row<z.infer<typeof Availability>>>,
): Generator<CatalogueItem> {
  const { id: name, vcpus: cpu, disk: localDisk, network_out: network, transfer: includedTraffic } = type;
  const facts = {
    cpuKind: CPU_KIND[type.class],
    localDisk,
    network,
    includedTraffic,
    includedIpv4: INCLUDED_IPV4,
  };
  const machine = { name, cpu, ...memory(type.memory, adapter.memoryUnit), facts };
  const selling = regions.filter((region) => sells(region, type));
  if (selling.length === 0) {
    // The capability may have been renamed: its types must not count as missing.
    const problem = `no region has the capability "${CAPABILITY.get(type.class)}" that class ${type.class} needs`;
    yield rejectedRow(name, problem, { name });
  }
  for (const { code: regionCode } of selling) {
    yield offerOrRejected(name, regionCode, () => {
      const { price, monthly: monthlyCap } = priceIn(type, regionCode);
      const stocked = stock.get(pair(regionCode, name));
      const isStocked = stocked === undefined || valueIn(stocked, 'availability: ').available;
      const excluded = exclusion(type, isStocked);
      return offerItem({ regionCode, ...machine, price, monthlyCap }, excluded);
    });
  }
}

/** Distributed sites sell plans that the public list of types lacks. */
function sells(region: Region, type: Type): boolean {
  if (region.site_type === 'distributed') return false;
  return region.capabilities.includes(CAPABILITY.get(type.class) ?? '');
}

function priceIn(type: Type, regionCode: string) {
  const index = type.region_prices.findIndex((candidate) => candidate.id === regionCode);
  if (index < 0) return parseRow(Price, type.price, ['price']);
  return parseRow(Price, type.region_prices[index], ['region_prices', index]);
}

function exclusion(type: Type, orderable: boolean) {
  const accelerators = type.gpus + (type.accelerated_devices ?? 0);
  if (accelerators > 0 || type.class === 'gpu' || type.class === 'accelerated') return 'accelerated';
  if (type.successor !== null) return 'discontinued';
  return orderable ? undefined : 'sold_out';
}

function pair(regionCode: string, name: string): string {
  return JSON.stringify([regionCode, name]);
}

function list(http: SourceHttp, path: string, of: string): AsyncGenerator<CatalogueItem, unknown[]> {
  const pages = pagesByNumber(http, path, Page, {}, ({ page, pages }, requested) => {
    if (page !== requested) throw anotherPage(path, requested, `got page ${page}`);
    return page < pages ? page + 1 : undefined;
  });
  return wholeList(path, of, pages);
}

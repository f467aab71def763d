import { z } from 'zod';
import { type ExclusionReason, hasEnded, memory } from '../../domain/machine.ts';
import { product } from '../../domain/prices/price.ts';
import { anotherPage, nothingListed, pageOf, pagesByNumber, wholeList } from '../http/lists.ts';
import { architecture, cpuKind, diskIn, trafficIn } from '../schema/facts.ts';
import { amount, count, countryIn, currencyCode, endTime, label, quantity } from '../schema/fields.ts';
import {
  offerItem,
  offerOrRejected,
  rejectedOffer,
  rejectedRow,
  usableRegions,
  usableRows,
} from '../schema/items.ts';
import { RegionPrices } from '../schema/region-prices.ts';
import { labelIn, parseRow, readRow } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem, SourceHttp } from '../source.ts';

const LARGEST_PAGE = 50;

const PRICING = '/v1/pricing';

/** `included_traffic` of 20 TB is 20 × 2^40 bytes, so a TB is 1024 GiB. */
const PER_TIB = '0.0009765625';

const Meta = z.object({
  pagination: z.object({
    page: z.int(),
    next_page: z.int().nullable(),
    total_entries: z.int().nullish(),
  }),
});

const Location = z
  .object({ name: label, city: label, country: countryIn })
  .transform(({ name: code, city: name, country }) => ({ code, name, country }));

/** "Once this date is reached, … the resource can not be used to create new resources." */
const Deprecation = z.object({ unavailable_after: endTime }).nullish();

const ServerType = z.object({
  name: label,
  cores: count,
  memory: quantity,
  architecture,
  cpu_type: cpuKind,
  /** GB; of the host, unless `storage_type` is `network`. */
  disk: diskIn('GB'),
  storage_type: z.string().optional().catch(undefined),
  /** Only true is reliable, and only without `deprecation`: the API has sent false with a filled one. */
  deprecated: z.boolean().nullish(),
  deprecation: z.unknown().optional(),
  prices: z.array(z.unknown()),
  /** In newer payloads: the locations that sell the type. Their `deprecation` outranks the one above. */
  locations: z
    .array(z.object({ name: label, deprecation: z.unknown().optional(), available: z.boolean().nullish() }))
    .nullish(),
});
type ServerType = z.infer<typeof ServerType>;
type Offered = NonNullable<ServerType['locations']>[number];

const Net = z.object({ net: amount });
/** Net amounts: an account's VAT is in the gross ones. */
const Price = z.object({
  location: label,
  price_hourly: Net,
  price_monthly: Net.nullish(),
  included_traffic: trafficIn(1),
});
const Traffic = z.object({ price_per_tb_traffic: Net.nullish() });

const AddressPrice = z.object({ location: label, price_monthly: Net });

/** "VAT and currency of the Project owner are used": the machines have the same currency, and do not state it. */
const Pricing = z.object({
  pricing: z.object({
    currency: currencyCode,
    volume: z.unknown().optional(),
    primary_ips: z.array(z.unknown()).optional().catch(undefined),
  }),
});
type Pricing = z.infer<typeof Pricing>['pricing'];

/** One price for all locations. A "GB" of a volume is a GiB: https://github.com/hetznercloud/csi-driver, internal/driver. */
const Volume = z.object({ volume: z.object({ price_per_gb_month: Net }) });
const Addresses = z.object({
  primary_ips: z.array(z.object({ type: z.string(), prices: z.array(z.unknown()) })),
});

/** Location → prices of outgoing traffic that its machines for sale state. */
type TrafficPrices = Map<string, Set<string>>;

/**
 * Source: https://docs.hetzner.cloud/reference/cloud#server-types, #pricing, and its changelog of 2025-09-24 and 2026-04-01.
 * Source of the cap: https://docs.hetzner.com/cloud/billing/faq.
 */
export const adapter: CatalogueAdapter = {
  id: 'hetzner',
  // "This applies exclusively to new orders and rescales of existing servers", announced in May 2026 for 15 June.
  provider: { id: 5, name: 'Hetzner', keepsPricesSince: '2026-06-15T00:00:00Z' },
  baseUrl: 'https://api.hetzner.cloud',
  endpoints: ['/v1/locations', '/v1/server_types', PRICING],
  credentials: 'bearer',
  memoryUnit: 'GB',
  currency: 'EUR',
  facts: ['architecture', 'cpuKind', 'localDisk', 'includedTraffic', 'orderableUntil'],
  schedule: '17 * * * *',
  notes:
    'Hetzner caps the bill at a monthly price, which Fleetbook reads. Without it, the hourly price times 730 hours would ' +
    'overstate the month by 15 to 22 %, for `cpx11` by 19 %. The price of an address is its monthly one, for the same reason. ' +
    'The currency is that of the project’s owner, euros or US dollars: a run that cannot read it from `/v1/pricing` fails. ' +
    'Since 15 June 2026, price changes leave existing servers alone: a cluster costs the [price of its creation](decisions/0103-the-price-of-a-cluster-at-its-creation.md).',

  async *catalogue({ http, now }) {
    const locations = yield* list(http, '/v1/locations', 'locations');
    const regions = yield* usableRegions(locations, Location, 'name', 'location');
    const known = new Set(regions.map(({ code }) => code));
    const types = yield* list(http, '/v1/server_types', 'server_types');
    const pricing = await readPricing(http);
    const { currency } = pricing;
    const prices = new RegionPrices();
    const traffic: TrafficPrices = new Map();
    for (const type of yield* usableRows(types, ServerType, 'name', 'server type'))
      yield* offers(type, known, currency, now(), (location, read) => {
        const stated = prices.usable('traffic_out', `${type.name}@${location}`, read);
        const amounts = traffic.get(location) ?? new Set();
        if (stated?.price_per_tb_traffic) traffic.set(location, amounts.add(stated.price_per_tb_traffic.net));
      });
    addTraffic(prices, traffic, currency);
    addStorage(prices, pricing, known);
    addAddresses(prices, pricing, known);
    yield* prices.items();
  },
};

function* offers(
  type: ServerType,
  known: ReadonlySet<string>,
  currency: string,
  now: Date,
  noteTraffic: (location: string, read: () => z.infer<typeof Traffic>) => void,
): Generator<CatalogueItem> {
  const { name, cores: cpu, architecture, cpu_type: cpuKind } = type;
  const localDisk = type.storage_type === 'local' ? type.disk : undefined;
  const machine = { name, cpu, ...memory(type.memory, adapter.memoryUnit) };
  const unpriced = new Set(type.locations?.map((location) => location.name));
  for (const [index, row] of type.prices.entries()) {
    const { value, reason } = readRow(Price, row, ['prices', index]);
    const regionCode = labelIn(row, 'location');
    if (regionCode !== undefined) unpriced.delete(regionCode);
    if (value === undefined) {
      yield rejectedRow(`${name}@${regionCode ?? `prices[${index}]`}`, reason, { name, regionCode });
    } else if (!known.has(value.location)) {
      const problem = `prices[${index}].location names ${value.location}, which /v1/locations does not list as a usable row`;
      yield rejectedOffer(name, value.location, problem);
    } else {
      const price = { amount: value.price_hourly.net, per: 'hour', currency } as const;
      const monthlyCap = value.price_monthly?.net;
      yield offerOrRejected(name, value.location, () => {
        const { orderableUntil, excluded } = endIn(type, value.location);
        const { included_traffic: includedTraffic } = value;
        const facts = { architecture, cpuKind, localDisk, includedTraffic, orderableUntil };
        if (excluded === undefined && !hasEnded({ orderableUntil: orderableUntil ?? null }, now))
          noteTraffic(value.location, () => parseRow(Traffic, row, ['prices', index]));
        return offerItem({ regionCode: value.location, ...machine, price, monthlyCap, facts }, excluded);
      });
    }
  }
  for (const regionCode of unpriced)
    yield rejectedOffer(name, regionCode, 'prices has no entry for a location that locations lists');
  if (type.prices.length === 0 && unpriced.size === 0) {
    const problem = 'prices is empty; it must have an entry for each location that sells the type';
    yield rejectedRow(name, problem, { name });
  }
}

/** The API states the price with each machine, and Hetzner has one price in a location. */
function addTraffic(prices: RegionPrices, traffic: TrafficPrices, currency: string): void {
  const price = { item: 'traffic_out', name: 'traffic', unit: 'GiB', per: undefined, currency } as const;
  for (const [location, amounts] of traffic) {
    const [net = '', ...others] = amounts;
    const differ = `price_per_tb_traffic differs between machines: ${[...amounts].join(', ')}`;
    if (others.length > 0) prices.leaveOut('traffic_out', location, differ);
    else prices.add(location, { ...price, amount: product(net, PER_TIB) });
  }
}

/** @throws SourceError if the answer cannot be read: without its currency, no price is known */
async function readPricing(http: SourceHttp): Promise<Pricing> {
  const { pricing } = (await http.json(PRICING, Pricing)).data;
  if (pricing.volume === undefined && !pricing.primary_ips?.length) throw nothingListed(PRICING);
  return pricing;
}

function addStorage(prices: RegionPrices, pricing: Pricing, known: ReadonlySet<string>): void {
  const read = prices.usable('block_storage', PRICING, () => parseRow(Volume, pricing, ['pricing']));
  if (read === undefined) return;
  const { currency } = pricing;
  const storage = { item: 'block_storage', name: 'volume', unit: 'GiB', per: 'month', currency } as const;
  const amount = read.volume.price_per_gb_month.net;
  for (const location of known) prices.add(location, { ...storage, amount });
}

function addAddresses(prices: RegionPrices, pricing: Pricing, known: ReadonlySet<string>): void {
  const read = prices.usable('ipv4', PRICING, () => parseRow(Addresses, pricing, ['pricing']));
  const rows = (read?.primary_ips ?? [])
    .filter(({ type }) => type === 'ipv4')
    .flatMap(({ prices }) => prices);
  const { currency } = pricing;
  const address = { item: 'ipv4', name: 'primary_ip', unit: 'address', per: 'month', currency } as const;
  for (const [index, row] of rows.entries()) {
    const value = prices.usable('ipv4', labelIn(row, 'location') ?? String(index + 1), () =>
      parseRow(AddressPrice, row, ['primary_ips', 'prices', index]),
    );
    if (value !== undefined && known.has(value.location))
      prices.add(value.location, { ...address, amount: value.price_monthly.net });
  }
}

/** An unreadable date ends the surrounding `rowOf`. */
function endIn(type: ServerType, location: string) {
  const index = type.locations?.findIndex((candidate) => candidate.name === location) ?? -1;
  const here = type.locations?.[index];
  const [deprecation, path] =
    here?.deprecation === undefined
      ? [type.deprecation, ['deprecation']]
      : [here.deprecation, ['locations', index, 'deprecation']];
  const end = parseRow(Deprecation, deprecation, path);
  return { orderableUntil: end?.unavailable_after, excluded: exclusion(type, here, end) };
}

function exclusion(
  type: ServerType,
  here: Offered | undefined,
  end: z.infer<typeof Deprecation>,
): ExclusionReason | undefined {
  // An end without a date: nothing says that the type is still sold.
  if (type.deprecated === true && here?.deprecation === undefined && end == null) return 'discontinued';
  if (here?.available === false) return 'sold_out';
  return type.locations && here === undefined ? 'unavailable' : undefined;
}

function list(http: SourceHttp, path: string, field: string): AsyncGenerator<CatalogueItem, unknown[]> {
  const Page = pageOf(field, { meta: Meta }).transform(({ rows, meta: { pagination } }) => {
    return { rows, total: pagination.total_entries, page: pagination.page, next: pagination.next_page };
  });
  const pages = pagesByNumber(http, path, Page, { per_page: LARGEST_PAGE }, ({ page, next }, requested) => {
    if (page !== requested || (next ?? requested + 1) !== requested + 1)
      throw anotherPage(path, requested, `meta.pagination states page ${page} and next_page ${next}`);
    return next ?? undefined;
  });
  return wholeList(path, field, pages);
}

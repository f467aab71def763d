import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { isPositive, product } from '../../domain/prices/price.ts';
import { amount, amountIn, count, countOrNone, currencyCode, label, someRows } from '../schema/fields.ts';
import { offerItem, rejectedOffer, rejectedRow, unusableRegion, usableRows } from '../schema/items.ts';
import { LeftOut } from '../schema/left-out.ts';
import { type FoundPrice, RegionPrices } from '../schema/region-prices.ts';
import { labelIn, parseRow, readRow, unusable } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem } from '../source.ts';
import { addPlans, SERVICE_TYPES } from './upcloud/database-plans.ts';

const Zones = z.object({ zones: z.object({ zone: someRows }) });
const Plans = z.object({ plans: z.object({ plan: someRows }) });
/** `currency` is the account's; older payloads do not name it. */
const Prices = z.object({ prices: z.object({ zone: someRows, currency: currencyCode.nullish() }) });

/** A zone that is not public belongs to one customer. */
const Zone = z.object({ id: label, description: label, public: z.enum(['yes', 'no']) });

const Plan = z.object({
  name: label,
  core_number: count,
  memory_amount: count,
  gpu_amount: countOrNone.nullish(),
  gpu_model: z.string().nullish(),
  /** In newer payloads: "no" for a plan that is no longer sold. */
  current_offering: z.enum(['yes', 'no']).nullish(),
});
type Plan = z.infer<typeof Plan>;

/** The other fields are prices; a plan's price is in `server_plan_<name>`. */
const ZonePrices = z.looseObject({ name: label });
type ZonePrices = z.infer<typeof ZonePrices>;

const Price = z.object({
  /** The count of units that the price buys; 256 for memory. */
  amount: amount.refine((units) => units === '1', { error: 'must be 1, the price of one' }),
  /** Cents (of the account's currency) per hour: 1.0416 is a little more than one cent. */
  price: amountIn('0.01'),
});

/** UpCloud bills at most 28 days of a month. */
const MOST_HOURS = String(28 * 24);

/** `PREMIUM-SPOT-2xCPU-4GB` is PREMIUM-2xCPU-4GB that UpCloud may take away. Source: src/sc_crawler/vendors/_upcloud.py of SpareCores/sc-crawler. */
const SPOT = /(^|-)SPOT-/;

/** Plans whose price includes an address: https://upcloud.com/resources/docs/networking. The page does not state it for others. */
const WITH_IPV4 = /^(?:HICPU-|HIMEM-)?[0-9]{1,3}xCPU-/;

/** `storage_maxiops` and other tiers of storage; backups and templates have a price too, and are no disks of a machine. */
const STORAGE = /^storage_(?!backup$|template$)(?<tier>.+)$/;

/**
 * Source: https://developers.upcloud.com/1.3/ and https://upcloud.com/docs/guides/getting-started-upcloud-api/. Source of the cap:
 * https://upcloud.com/pricing/, and internal/commands/server/plan_list.go of https://github.com/UpCloudLtd/upcloud-cli.
 */
export const adapter: CatalogueAdapter = {
  id: 'upcloud',
  provider: { id: 10, name: 'UpCloud' },
  baseUrl: 'https://api.upcloud.com',
  endpoints: ['/1.3/zone', '/1.3/plan', '/1.3/price', SERVICE_TYPES],
  credentials: 'basic-or-bearer',
  memoryUnit: 'MiB',
  currency: 'EUR',
  facts: ['includedIpv4'],
  schedule: '22 * * * *',
  notes:
    'A zone sells the plans that its part of the price list names. The price of a spot plan is the spot price of the plan with the same ' +
    'name without `SPOT-`. ' +
    'The price list also states storage (the default is MaxIOPS), IPv4 addresses and outgoing traffic of each zone, and ' +
    'plans of managed databases at the price of all nodes. UpCloud bills at most 28 days of a month, so the monthly cap of a ' +
    'machine is the price of 672 hours. Without it, the hourly price times 730 hours would overstate the month by 9 %.',

  async *catalogue({ http }) {
    const { zones } = (await http.json('/1.3/zone', Zones)).data;
    const selling = new Map<string, boolean>();
    for (const [index, row] of zones.zone.entries()) {
      const { value, reason } = readRow(Zone, row);
      const code = labelIn(row, 'id');
      if (value === undefined) {
        yield unusableRegion(code, `zone ${index + 1}`, reason);
      } else {
        selling.set(value.id, value.public === 'yes');
        if (value.public === 'yes') yield { kind: 'region', code: value.id, name: value.description };
      }
    }

    const { plans } = (await http.json('/1.3/plan', Plans)).data;
    const readable = yield* usableRows(plans.plan, Plan, 'name', 'plan');

    const { prices } = (await http.json('/1.3/price', Prices)).data;
    const currency = prices.currency ?? adapter.currency;
    const leftOut = new LeftOut();
    const regionPrices = new RegionPrices(leftOut);
    const priced = new Map<string, ZonePrices>();
    const unpriced = new Set([...selling].flatMap(([zone, sells]) => (sells ? [zone] : [])));
    for (const [index, row] of prices.zone.entries()) {
      const { value, reason } = readRow(ZonePrices, row);
      if (value === undefined) {
        yield rejectedRow(`prices of zone ${index + 1}`, reason);
      } else if (!selling.has(value.name)) {
        const problem = `name is ${value.name}, which /1.3/zone does not list as a usable row`;
        yield rejectedRow(`prices of ${value.name}`, problem, { regionCode: value.name });
      } else if (selling.get(value.name) === true) {
        unpriced.delete(value.name);
        priced.set(value.name, value);
        yield* offers(value, readable, currency, leftOut);
        addPrices(regionPrices, value, currency);
      }
    }
    for (const regionCode of unpriced) {
      const reason = '/1.3/price has no prices for a zone that /1.3/zone lists';
      yield { kind: 'unread', regionCode, reason };
    }
    const priceIn = (zone: string, field: string) => {
      const stated = priced.get(zone)?.[field];
      if (stated === undefined) return undefined;
      const read = () => parseRow(Price, stated, [field]).price;
      return regionPrices.usable('database_plan', `${zone}/${field}`, read);
    };
    await regionPrices.read('database_plan', SERVICE_TYPES, () =>
      addPlans(http, regionPrices, priceIn, currency),
    );
    yield* regionPrices.items(['maxiops', 'standard']);
  },
};

/** A zone sells the plans that its prices name: some zones lack single plans of a family. */
function* offers(
  zone: ZonePrices,
  plans: readonly Plan[],
  currency: string,
  leftOut: LeftOut,
): Generator<CatalogueItem> {
  const regionCode = zone.name;
  for (const plan of plans) {
    const { name, core_number: cpu } = plan;
    const field = `server_plan_${name}`;
    if (zone[field] === undefined) continue;
    const { value, reason } = readRow(Price, zone[field], [field]);
    if (value === undefined) {
      yield rejectedOffer(name, regionCode, reason);
      continue;
    }
    const price = { amount: value.price, per: 'hour', currency } as const;
    const monthlyCap = product(value.price, MOST_HOURS);
    const spot = spotPrice(zone, plan, plans, leftOut);
    const terms = spot && { terms: { spot: { price: { ...price, amount: spot } } } };
    const size = { cpu, ...memory(plan.memory_amount, adapter.memoryUnit) };
    const machine = { name, ...size, price, ...terms, monthlyCap };
    const facts = WITH_IPV4.test(name) ? { facts: { includedIpv4: 1 } } : {};
    yield offerItem({ regionCode, ...machine, ...facts }, exclusion(plan));
  }
}

/** Returns the price of the spot plan of the same family and size; undefined if the zone does not sell it. */
function spotPrice(
  zone: ZonePrices,
  { name, core_number: cpu, memory_amount: memoryAmount }: Plan,
  plans: readonly Plan[],
  leftOut: LeftOut,
): string | undefined {
  const twin = plans.find(
    (plan) =>
      plan.name !== name &&
      plan.name.replace(SPOT, '$1') === name &&
      plan.core_number === cpu &&
      plan.memory_amount === memoryAmount &&
      plan.current_offering !== 'no',
  );
  const field = `server_plan_${twin?.name}`;
  if (!twin || zone[field] === undefined) return undefined;
  const read = () => parseRow(Price, zone[field], [field]).price;
  const price = leftOut.read('spot prices', `${name}@${zone.name}`, read);
  return price !== undefined && isPositive(price) ? price : undefined;
}

/** All prices of a zone are those of one hour, except the price of one GB of traffic. A "GB" of storage is a GiB. */
function addPrices(prices: RegionPrices, zone: ZonePrices, currency: string): void {
  const add = (field: string, price: Omit<FoundPrice, 'tiers' | 'currency'>, isFree: boolean) => {
    if (zone[field] === undefined) return;
    const amount = prices.usable(price.item, zone.name, () => {
      const { price: stated } = parseRow(Price, zone[field], [field]);
      return isFree || isPositive(stated) ? stated : unusable(`${field}.price must be above 0; it is 0`);
    });
    if (amount !== undefined) prices.add(zone.name, { ...price, currency, amount });
  };
  for (const field of Object.keys(zone)) {
    const name = STORAGE.exec(field)?.groups?.tier;
    if (name !== undefined) add(field, { item: 'block_storage', name, unit: 'GiB', per: 'hour' }, false);
  }
  const address = 'ipv4_address';
  add(address, { item: 'ipv4', name: address, unit: 'address', per: 'hour' }, true);
  const out = 'public_ipv4_bandwidth_out';
  add(out, { item: 'traffic_out', name: out, unit: 'GB', per: undefined }, true);
}

function exclusion(plan: Plan) {
  if (plan.gpu_model || plan.gpu_amount || plan.name.startsWith('GPU-')) return 'accelerated';
  if (plan.current_offering === 'no') return 'discontinued';
  // UpCloud may take such a machine away: it is not on demand. Its price is the spot price of the plan with the rest of its name.
  return SPOT.test(plan.name) ? 'unavailable' : undefined;
}

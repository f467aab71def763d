import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { count, oneOf } from '../../schema/fields.ts';
import { type FoundPrice, type RegionPrices, tiersOf } from '../../schema/region-prices.ts';
import { parseRow, type Row, rowOf, unusable, valueIn } from '../../schema/rows.ts';
import { hourlyAmount, isConsumption, Pricing, priceAboveZero } from './machine.ts';
import {
  type Addon,
  configuredRegions,
  NOWHERE,
  type Places,
  regionsSelling,
  sellingIn,
} from './selling-regions.ts';

/** `volume.classic.consumption`, `volume.high-speed-gen2.consumption.3AZ`: type and kind of place. */
const VOLUME =
  /^volume\.(?<type>classic|classic-multiattach|high-speed|high-speed-gen2)\.consumption(\..+)?$/;

/** The price is for a GB and an hour. */
const VolumeAddon = z.object({ pricings: z.array(Pricing) });

/**
 * Adds the price of a volume in the regions that sell machines. OVH's block storage is that of OpenStack, whose gigabytes have 2^30
 * bytes: https://docs.openstack.org/api-ref/block-storage/v3/.
 */
export function addVolume(prices: RegionPrices, addon: Addon, places: Places): void {
  const name = VOLUME.exec(addon.planCode)?.groups?.type;
  if (name === undefined) return;
  const amount = prices.usable('block_storage', addon.planCode, () =>
    priceAboveZero(hourlyAmount(parseRow(VolumeAddon, addon.row).pricings)),
  );
  if (amount === undefined) return;
  const { currency } = places;
  const price = { item: 'block_storage', name, unit: 'GiB', per: 'hour', currency, amount } as const;
  for (const region of regionsSelling(prices, 'block_storage', addon, places)) prices.add(region, price);
}

/** `bandwidth_instance_out.consumption.SGP1`: traffic of instances to the internet, and kind of place. */
const TRAFFIC_OUT = /^bandwidth_instance_out\.consumption(\..+)?$/;

/** A step is for the units from `min` to `max`, counted from 1. */
const Step = Pricing.extend({
  quantity: z.object({ min: count, max: count.nullish() }),
  strategy: z.string().optional(),
});
const TrafficAddon = z.object({ pricings: z.array(Step) });
const Billed = z.object({
  blobs: z.object({ commercial: z.object({ price: z.object({ unit: oneOf(['GB', 'GiB']) }) }) }),
});

type TrafficPrice = Pick<FoundPrice, 'name' | 'unit' | 'tiers'>;

/** Outgoing traffic in one kind of place. */
interface Traffic {
  readonly planCode: string;
  readonly price: Row<TrafficPrice>;
}

const FREE: TrafficPrice = { name: 'unmetered', unit: 'GB', tiers: [{ from: '0', amount: '0' }] };

function trafficPrice(addon: unknown): TrafficPrice {
  const steps = parseRow(TrafficAddon, addon)
    .pricings.filter(isConsumption)
    .toSorted((a, b) => a.quantity.min - b.quantity.min);
  // A maximum without a next step is a free allowance without its price.
  if (
    steps.some(
      ({ quantity: { max } }, i) => (max == null ? undefined : max + 1) !== steps[i + 1]?.quantity.min,
    )
  )
    return unusable('pricings must be steps by quantity without a gap');
  if (steps.length > 1 && steps.some(({ strategy }) => strategy !== 'tiered'))
    return unusable('strategy must be tiered if there are several steps');
  const tiers = steps.map(({ quantity, price }) => ({ from: String(quantity.min - 1), amount: price }));
  if (tiers[0]?.from === '0' && tiers.every(({ amount }) => amount === '0')) return FREE;
  const found = tiersOf(tiers);
  return {
    name: 'bandwidth_instance_out',
    unit: parseRow(Billed, addon).blobs.commercial.price.unit,
    tiers: found,
  };
}

/**
 * Regions outside Asia-Pacific. "Outbound public network traffic is included in the price of instances on all locations, except the
 * Asia-Pacific region": https://www.ovhcloud.com/en/public-cloud/prices/.
 */
const UNMETERED = /^((GRA|SBG|RBX|DE|UK|WAW|BHS)(\d+|-[A-Z])|(AF|CA|EU|US)-.+)$/;

/** Adds the price of outgoing traffic that the catalogue states for a region, else that of OVH's price page. */
export function addTraffic(prices: RegionPrices, addons: readonly Addon[], places: Places): void {
  const stated = new Map<string, Traffic[]>();
  for (const { planCode, row } of addons.filter((addon) => TRAFFIC_OUT.test(addon.planCode))) {
    const configured = configuredRegions(row);
    // Each traffic addon is about the regions that it names itself. The rules may list it for more.
    const named = configured.length > 0 ? configured : (places.regionsOf(planCode) ?? []);
    const regions = sellingIn(named, places);
    const price = rowOf(() => trafficPrice(row));
    // The US has one without regions.
    if (regions.size === 0 && price.value !== FREE) prices.leaveOut('traffic_out', planCode, NOWHERE);
    for (const region of regions) stated.set(region, [...(stated.get(region) ?? []), { planCode, price }]);
  }
  const { selling, currency } = places;
  for (const region of selling) {
    const [first, ...others] = stated.get(region) ?? [];
    const price =
      first === undefined
        ? UNMETERED.test(region) && FREE
        : prices.usable('traffic_out', `${first.planCode}@${region}`, () => agreed(first, others));
    if (price) prices.addTiers(region, { item: 'traffic_out', ...price, per: undefined, currency });
  }
}

function agreed(first: Traffic, others: readonly Traffic[]): TrafficPrice {
  const price = valueIn(first.price);
  for (const other of others)
    if (!isDeepStrictEqual(valueIn(other.price), price)) unusable(`differs from ${other.planCode}`);
  return price;
}

import { z } from 'zod';
import { amountIn, label } from '../../schema/fields.ts';
import type { RegionPrices } from '../../schema/region-prices.ts';
import { type Row, readRow, rowOf, unusable, valueIn } from '../../schema/rows.ts';

/** `volume.classic.consumption`, `volume.high-speed-gen2.consumption.3AZ`: type and kind of place. */
const VOLUME = /^volume\.(?<type>classic|high-speed|high-speed-gen2)\.consumption(\..+)?$/;

const Addon = z.object({
  pricings: z.array(
    z.object({
      /** In units of 10^-8 of the currency, for a GB and an hour. Consumption may have no interval: it is counted by the hour. */
      price: amountIn('0.00000001'),
      intervalUnit: z.string(),
      capacities: z.array(z.string()),
    }),
  ),
  configurations: z
    .array(z.object({ name: z.string(), values: z.array(label).nullish() }))
    .nullish()
    .catch(undefined),
});

/** A type of volume in one kind of place. */
export interface Volume {
  readonly planCode: string;
  readonly type: string;
  readonly row: Row<{ readonly amount: string; readonly configured: readonly string[] }>;
}

/** Returns the volume of an addon; undefined if it is another product. */
export function volumeIn(planCode: string, addon: unknown): Volume | undefined {
  const type = VOLUME.exec(planCode)?.groups?.type;
  if (type === undefined) return undefined;
  const row = rowOf(() => {
    const { pricings, configurations } = valueIn(readRow(Addon, addon));
    const hourly = pricings.filter(
      ({ intervalUnit, capacities }) =>
        ['hour', 'none'].includes(intervalUnit) && capacities.includes('consumption'),
    );
    const [amount, ...others] = new Set(hourly.map(({ price }) => price));
    if (amount === undefined || amount === '0' || others.length > 0)
      return unusable(
        `pricings must have one price above 0 for an hour of consumption; it has ${hourly.length}`,
      );
    const regions = (configurations ?? []).filter(({ name }) => name === 'region');
    return { amount, configured: regions.flatMap(({ values }) => values ?? []) };
  });
  return { planCode, type, row };
}

/**
 * Adds the prices of volumes in the regions that sell machines. OVH's block storage is that of OpenStack, whose gigabytes have 2^30
 * bytes: https://docs.openstack.org/api-ref/block-storage/v3/.
 */
export function addVolumes(
  prices: RegionPrices,
  volumes: readonly Volume[],
  regionsOf: (planCode: string) => readonly string[] | undefined,
  selling: ReadonlySet<string>,
  currency: string,
): void {
  for (const { planCode, type, row } of volumes) {
    const volume = prices.leftOut.value('storage prices', planCode, row);
    if (volume === undefined) continue;
    const price = { item: 'block_storage', name: type, unit: 'GiB', per: 'hour', currency } as const;
    for (const region of new Set(regionsOf(planCode) ?? volume.configured))
      if (selling.has(region)) prices.add(region, { ...price, amount: volume.amount });
  }
}

/** Regions in Europe and Canada. Asia-Pacific has a quota, and another subsidiary sells the United States. */
const UNMETERED = /^((GRA|SBG|RBX|DE|UK|WAW|BHS)\d+|(EU|CA)-.+)$/;

/** "Outbound public network traffic is included in the price of instances": https://www.ovhcloud.com/en/public-cloud/prices/. */
export function addTraffic(prices: RegionPrices, selling: ReadonlySet<string>, currency: string): void {
  const price = { item: 'traffic_out', name: 'unmetered', unit: 'GB', per: undefined, currency } as const;
  for (const region of selling) if (UNMETERED.test(region)) prices.add(region, { ...price, amount: '0' });
}

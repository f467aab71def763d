import { z } from 'zod';
import { memory } from '../../../domain/machine.ts';
import { count, quantity } from '../../schema/fields.ts';
import type { RegionPrices } from '../../schema/region-prices.ts';
import { parseRow } from '../../schema/rows.ts';
import { Disks, hourlyAmount, Pricing, priceAboveZero, sizeOf } from './machine.ts';
import { type Addon, type Places, regionsSelling } from './selling-regions.ts';

/** `databases.postgresql-business-db1-7.hour.consumption.3AZ`: engine, plan with its type of node, and kind of place. */
const PLAN = /^databases\.(?<engine>[a-z0-9]+)-(?<name>.+)\.hour\.consumption(\..+)?$/i;

/** The price of one GB that a plan has beyond its own: no plan. */
const STORAGE = /-additionnal-storage-gb$/;

/** `discovery-db2-free`: it costs nothing, so it is no plan with a price. */
const FREE = /-free$/;

const DatabaseAddon = z.object({
  pricings: z.array(Pricing),
  blobs: z
    .object({
      tags: z.array(z.string()).nullish(),
      technical: z
        .object({
          cpu: z.object({ cores: count }).optional().catch(undefined),
          memory: z.object({ size: quantity }).optional().catch(undefined),
          storage: Disks.optional().catch(undefined),
        })
        .optional()
        .catch(undefined),
    })
    .nullable(),
});

/**
 * Adds a plan, at the price of one node, in the regions that sell machines. Skips an addon that is another product, free, or kept for
 * existing customers. OVH sells databases by place (GRA), machines by datacenter (GRA9).
 * Source of the codes: packages/manager/apps/pci-databases-analytics in https://github.com/ovh/manager.
 */
export function addPlan(prices: RegionPrices, addon: Addon, places: Places): void {
  const { engine = '', name = '' } = PLAN.exec(addon.planCode)?.groups ?? {};
  if (name === '' || STORAGE.test(name)) return;
  const plan = prices.usable('database_plan', addon.planCode, () => {
    const { pricings, blobs } = parseRow(DatabaseAddon, addon.row);
    if (blobs === null || blobs.tags?.includes('legacy')) return undefined;
    const amount = hourlyAmount(pricings);
    if (amount === '0' && FREE.test(name)) return undefined;
    return { ...blobs.technical, amount: priceAboveZero(amount) };
  });
  if (plan === undefined) return;
  const { cpu, memory: size, storage, amount } = plan;
  const node = {
    cpu: cpu?.cores ?? null,
    ...(size ? memory(size.size, 'GB') : { ram: null, ramUnit: null }),
    storage: storage?.disks.length ? (sizeOf(storage.disks) ?? null) : null,
    price: { amount, per: 'hour', currency: places.currency } as const,
  };
  for (const region of regionsSelling(prices, 'database_plan', addon, places))
    prices.addPlan(region, { engine: engine.toLowerCase(), name, nodes: null, ...node });
}

import { z } from 'zod';
import { memory } from '../../../domain/machine.ts';
import { count, quantity } from '../../schema/fields.ts';
import type { RegionPrices } from '../../schema/region-prices.ts';
import { type Row, readRow, rowOf, valueIn } from '../../schema/rows.ts';
import { Disks, hourlyAmount, Pricing, priceAboveZero } from './machine.ts';
import { configuredRegions, NOWHERE, type Places, regionsSelling } from './places.ts';

/** `databases.postgresql-business-db1-7.hour.consumption.3AZ`: engine, plan with its type of node, and kind of place. */
const PLAN = /^databases\.(?<engine>[a-z0-9]+)-(?<name>.+)\.hour\.consumption(\..+)?$/i;

/** The price of one GB that a plan has beyond its own: no plan. */
const STORAGE = /-additionnal-storage-gb$/;

/** `discovery-db2-free`: it costs nothing, so it is no plan with a price. */
const FREE = /-free$/;

const Addon = z.object({
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

/** A plan in one kind of place, with the price of one node for an hour. */
export interface DatabasePlan {
  readonly planCode: string;
  readonly engine: string;
  readonly name: string;
  readonly configured: readonly string[];
  readonly row: Row<{ readonly amount: string; readonly addon: z.infer<typeof Addon> }>;
}

/** Returns the plan of an addon; undefined if it is another product, free, or kept for existing customers. */
export function planIn(planCode: string, addon: unknown): DatabasePlan | undefined {
  const { engine = '', name = '' } = PLAN.exec(planCode)?.groups ?? {};
  if (name === '' || STORAGE.test(name)) return undefined;
  const read = readRow(Addon, addon);
  if (read.value?.blobs === null || read.value?.blobs.tags?.includes('legacy')) return undefined;
  const amount = rowOf(() => hourlyAmount(valueIn(read).pricings));
  if (amount.value === '0' && FREE.test(name)) return undefined;
  const row = rowOf(() => ({ amount: priceAboveZero(valueIn(amount)), addon: valueIn(read) }));
  return { planCode, engine: engine.toLowerCase(), name, configured: configuredRegions(addon), row };
}

/**
 * Adds the plans in the regions that sell machines. OVH sells databases by place (GRA), machines by datacenter (GRA9).
 * Source of the codes: packages/manager/apps/pci-databases-analytics in https://github.com/ovh/manager.
 */
export function addPlans(
  prices: RegionPrices,
  plans: readonly DatabasePlan[],
  places: Places,
  currency: string,
): void {
  for (const plan of plans) {
    const { planCode, engine, name, row } = plan;
    const read = prices.usable('database_plan', planCode, row);
    if (read === undefined) continue;
    const { amount, addon } = read;
    const { cpu, memory: size, storage } = addon.blobs?.technical ?? {};
    const node = {
      cpu: cpu?.cores ?? null,
      ...(size ? memory(size.size, 'GB') : { ram: null, ramUnit: null }),
      storage: storageOf(storage),
      price: { amount, per: 'hour', currency } as const,
    };
    const regions = regionsSelling(plan, places);
    if (regions.size === 0) prices.leaveOut('database_plan', planCode, NOWHERE);
    for (const region of regions) prices.addPlan(region, { engine, name, nodes: null, ...node });
  }
}

/** Returns GB; null if the size of a disk is unknown. */
function storageOf(storage: z.infer<typeof Disks> | undefined): number | null {
  const sizes = storage?.disks.map(({ capacity, number }) => (capacity ?? Number.NaN) * number) ?? [];
  const sum = sizes.reduce((all, size) => all + size, 0);
  return sizes.length === 0 || Number.isNaN(sum) ? null : sum;
}

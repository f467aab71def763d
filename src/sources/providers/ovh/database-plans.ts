import { z } from 'zod';
import { memory } from '../../../domain/machine.ts';
import { count, label, quantity } from '../../schema/fields.ts';
import { PLANS, type RegionPrices, regionsIn } from '../../schema/region-prices.ts';
import { type Row, readRow, rowOf, unusable, valueIn } from '../../schema/rows.ts';
import { Disks, Pricing } from './machine.ts';

/** `databases.postgresql-business-db1-7.hour.consumption.3AZ`: engine, plan with its type of node, and kind of place. */
const PLAN = /^databases\.(?<engine>[a-z0-9]+)-(?<name>.+)\.hour\.consumption(\..+)?$/i;

/** The price of one GB that a plan has beyond its own: no plan. */
const STORAGE = /-additionnal-storage-gb$/;

const Addon = z.object({
  pricings: z.array(Pricing),
  configurations: z
    .array(z.object({ name: z.string(), values: z.array(label).nullish() }))
    .nullish()
    .catch(undefined),
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
  readonly row: Row<{ readonly amount: string; readonly addon: z.infer<typeof Addon> }>;
}

/** Returns the plan of an addon; undefined if it is another product, or a plan that OVH keeps for existing customers. */
export function planIn(planCode: string, addon: unknown): DatabasePlan | undefined {
  const { engine = '', name = '' } = PLAN.exec(planCode)?.groups ?? {};
  if (name === '' || STORAGE.test(name)) return undefined;
  const read = readRow(Addon, addon);
  if (read.value?.blobs === null || read.value?.blobs.tags?.includes('legacy')) return undefined;
  const row = rowOf(() => {
    const value = valueIn(read);
    const hourly = value.pricings.filter(
      ({ intervalUnit, capacities }) =>
        ['hour', 'none'].includes(intervalUnit) && capacities.includes('consumption'),
    );
    const [amount, ...others] = new Set(hourly.map(({ price }) => price));
    if (amount === undefined || amount === '0' || others.length > 0)
      return unusable(`pricings must have one price above 0 for an hour; it has ${hourly.length}`);
    return { amount, addon: value };
  });
  return { planCode, engine: engine.toLowerCase(), name, row };
}

/**
 * Adds the plans in the regions that sell machines. OVH sells databases by place (GRA), machines by datacenter (GRA9).
 * Source of the codes: packages/manager/apps/pci-databases-analytics in https://github.com/ovh/manager.
 */
export function addPlans(
  prices: RegionPrices,
  plans: readonly DatabasePlan[],
  regionsOf: (planCode: string) => readonly string[] | undefined,
  selling: ReadonlySet<string>,
  currency: string,
): void {
  for (const { planCode, engine, name, row } of plans) {
    const plan = prices.leftOut.value(PLANS, planCode, row);
    if (plan === undefined) continue;
    const { amount, addon } = plan;
    const { cpu, memory: size, storage } = addon.blobs?.technical ?? {};
    const node = {
      cpu: cpu?.cores ?? null,
      ...(size ? memory(size.size, 'GB') : { ram: null, ramUnit: null }),
      storage: storageOf(storage),
      price: { amount, per: 'hour', currency } as const,
    };
    const configured = (addon.configurations ?? []).filter(({ name: field }) => field === 'region');
    const places = regionsOf(planCode) ?? configured.flatMap(({ values }) => values ?? []);
    const regions = new Set(places.flatMap((place) => regionsIn(place, selling)));
    if (regions.size === 0)
      prices.leftOut.add(
        PLANS,
        planCode,
        'neither its addon nor the rules of availability name a region with machines',
      );
    for (const region of regions) prices.addPlan(region, { engine, name, nodes: null, ...node });
  }
}

/** Returns GB; null if the size of a disk is unknown. */
function storageOf(storage: z.infer<typeof Disks> | undefined): number | null {
  const sizes = storage?.disks.map(({ capacity, number }) => (capacity ?? Number.NaN) * number) ?? [];
  const sum = sizes.reduce((all, size) => all + size, 0);
  return sizes.length === 0 || Number.isNaN(sum) ? null : sum;
}

import { z } from 'zod';
import { diskIn, gigabytes, networkIn } from '../../schema/facts.ts';
import { amountIn, count, quantity } from '../../schema/fields.ts';
import { unusable } from '../../schema/rows.ts';

export const Pricing = z.object({
  /** In units of 10^-8 of the currency: 6810000 is 0.0681. */
  price: amountIn('0.00000001'),
  intervalUnit: z.string(),
  capacities: z.array(z.string()),
});
type Pricing = z.infer<typeof Pricing>;

/** Some disks name the unit of their capacity; OVH shows it as GB. */
const Disk = z.object({
  capacity: diskIn('GB'),
  number: z.int().min(1).default(1),
  sizeUnit: z.literal('GB').optional(),
});
export const Disks = z.object({ disks: z.array(Disk) });

export const Machine = z.object({
  pricings: z.array(Pricing),
  blobs: z.object({
    tags: z.array(z.string()),
    technical: z.object({
      cpu: z.object({ cores: count }),
      /** GB: b3-8 has 8 here, and a `ram` of 8000 MB in the cloud's API. */
      memory: z.object({ size: quantity }),
      gpu: z.object({ number: z.number().nullish() }).nullish(),
      os: z.object({ family: z.string() }).nullish(),
      storage: Disks.extend({ raid: z.string().optional() }).optional().catch(undefined),
      /** Further disks of the host. The size of unreadable ones is unknown. */
      nvme: Disks.optional().catch({ disks: [{ capacity: undefined, number: 1 }] }),
      /** Mbit/s, as OVH's manager shows it. */
      bandwidth: z
        .object({ level: networkIn(1e6) })
        .optional()
        .catch(undefined),
    }),
  }),
});
export type Machine = z.infer<typeof Machine>;

/** Returns GB. Disks that are not `local` are in a storage cluster. */
export function localDisk({ storage, nvme }: Machine['blobs']['technical']): number | undefined {
  if (storage?.raid !== 'local') return undefined;
  return sizeOf([...storage.disks, ...(nvme?.disks ?? [])]);
}

/** Returns GB; undefined if the size of a disk is unknown. */
export function sizeOf(disks: z.infer<typeof Disks>['disks']): number | undefined {
  const sum = disks.reduce((all, { capacity = Number.NaN, number }) => all + capacity * number, 0);
  return Number.isNaN(sum) ? undefined : gigabytes(sum, 'GB');
}

export function isPaidByHour(row: unknown): boolean {
  const { data } = z.object({ pricings: z.array(z.unknown()) }).safeParse(row);
  return (data?.pricings ?? []).some((pricing) => {
    const known = Pricing.safeParse(pricing).data;
    return known?.intervalUnit === 'hour' && isConsumption(known);
  });
}

/** Consumption is counted by the hour. All of the US, and volumes and traffic elsewhere, have no interval. */
export function isConsumption({ intervalUnit, capacities }: Pricing): boolean {
  return ['hour', 'none'].includes(intervalUnit) && capacities.includes('consumption');
}

/** Returns the price for an hour among the pricings of a plan code of consumption. */
export function hourlyAmount(pricings: readonly Pricing[]): string {
  const hourly = pricings.filter(isConsumption);
  const [amount, ...others] = new Set(hourly.map(({ price }) => price));
  if (amount !== undefined && others.length === 0) return amount;
  return unusable(`pricings must have one price for an hour of consumption; it has ${hourly.length}`);
}

/** Returns the amount. Zero ends the surrounding `rowOf`. */
export function priceAboveZero(amount: string): string {
  return amount === '0' ? unusable('pricings must have a price above 0 for an hour of consumption') : amount;
}

export function exclusion(name: string, machine: Machine) {
  const { tags, technical } = machine.blobs;
  if (technical.gpu != null && technical.gpu.number !== 0) return 'accelerated';
  // The same machine, at a price that includes a Windows licence.
  if (technical.os?.family === 'windows' || name.startsWith('win-')) return 'licensed';
  if (tags.includes('legacy')) return 'discontinued';
  // The catalogue of 2026-08 tags machines for sale with both `active` and `coming_soon`.
  if (tags.includes('active')) return undefined;
  return tags.includes('coming_soon') ? 'unavailable' : 'discontinued';
}

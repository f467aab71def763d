/** The regions that sell a volume, a plan of databases or traffic. */
import { z } from 'zod';
import { label } from '../../schema/fields.ts';
import { type RegionPrices, regionsIn } from '../../schema/region-prices.ts';
import type { UnreadItem } from '../../source.ts';

const Configured = z.object({
  configurations: z.array(z.object({ name: z.string(), values: z.array(label).nullish() })).nullish(),
});

/** An entry of the catalogue that is no machine. */
export interface Addon {
  readonly planCode: string;
  readonly row: unknown;
}

/** Where OVH sells what: the regions of a plan code by the rules of availability, and the regions with machines for sale. */
export interface Places {
  readonly regionsOf: (planCode: string) => readonly string[] | undefined;
  readonly selling: ReadonlySet<string>;
  readonly currency: string;
}

/** Returns the regions that an addon names; none if they are unreadable. */
export function configuredRegions(addon: unknown): readonly string[] {
  const configurations = Configured.safeParse(addon).data?.configurations ?? [];
  return configurations.filter(({ name }) => name === 'region').flatMap(({ values }) => values ?? []);
}

/** Returns the regions with machines for sale in these places. */
export function sellingIn(places: readonly string[], { selling }: Places): ReadonlySet<string> {
  return new Set(places.flatMap((place) => regionsIn(place, selling)));
}

/** Returns the regions with machines for sale in the places that the rules, else the addon, name. Without any, it is left out. */
export function regionsSelling(
  prices: RegionPrices,
  item: UnreadItem,
  { planCode, row }: Addon,
  places: Places,
): ReadonlySet<string> {
  const regions = sellingIn(places.regionsOf(planCode) ?? configuredRegions(row), places);
  if (regions.size === 0) prices.leaveOut(item, planCode, NOWHERE);
  return regions;
}

/** Why an addon is left out. */
export const NOWHERE = 'neither its addon nor the rules of availability name a region with machines for sale';

/** The regions that sell a volume, a plan of databases or traffic. */
import { z } from 'zod';
import { label } from '../../schema/fields.ts';
import { regionsIn } from '../../schema/region-prices.ts';

const Configured = z.object({
  configurations: z.array(z.object({ name: z.string(), values: z.array(label).nullish() })).nullish(),
});

/** Where OVH sells what: the regions of a plan code by the rules of availability, and the regions with machines for sale. */
export interface Places {
  readonly regionsOf: (planCode: string) => readonly string[] | undefined;
  readonly selling: ReadonlySet<string>;
}

/** Returns the regions that an addon names; none if they are unreadable. */
export function configuredRegions(addon: unknown): readonly string[] {
  const configurations = Configured.safeParse(addon).data?.configurations ?? [];
  return configurations.filter(({ name }) => name === 'region').flatMap(({ values }) => values ?? []);
}

/** Returns the regions with machines for sale in the places that the rules, else the addon, name. */
export function regionsSelling(
  { planCode, configured }: { readonly planCode: string; readonly configured: readonly string[] },
  { regionsOf, selling }: Places,
): ReadonlySet<string> {
  return sellingIn(regionsOf(planCode) ?? configured, selling);
}

/** Returns the regions with machines for sale in these places. */
export function sellingIn(places: readonly string[], selling: ReadonlySet<string>): ReadonlySet<string> {
  return new Set(places.flatMap((place) => regionsIn(place, selling)));
}

/** Why an addon is left out. */
export const NOWHERE = 'neither its addon nor the rules of availability name a region with machines for sale';

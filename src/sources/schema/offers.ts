import type { ExclusionReason } from '../../domain/exclusion.ts';
import type { Offer } from '../../domain/machine.ts';
import type { MachineFacts } from '../../domain/machine-facts.ts';
import { isPositive, type SourcePrice } from '../../domain/price.ts';
import type { CatalogueItem } from '../source.ts';

export type FoundFacts = { readonly [Fact in keyof MachineFacts]?: MachineFacts[Fact] | undefined };

/**
 * Returns the item of a machine in a region.
 * @param excluded the source's reason for exclusion; a price of zero is a reason too
 */
export function offerItem(
  { facts, ...machine }: Omit<Offer, 'excluded' | 'facts'> & { readonly facts?: FoundFacts },
  excluded?: ExclusionReason | null,
): CatalogueItem {
  const offer = facts === undefined ? machine : { ...machine, ...knownFacts(facts) };
  const reason = excluded ?? (isPositive(machine.price.amount) ? undefined : 'zero_price');
  return { kind: 'offer', offer: reason === undefined ? offer : { ...offer, excluded: reason } };
}

function knownFacts(facts: FoundFacts): Pick<Offer, 'facts'> {
  const known = Object.entries(facts).filter(([, fact]) => fact != null);
  return known.length === 0 ? {} : { facts: Object.fromEntries(known) };
}

/** Returns the price for an hour, else for a month; undefined without either. */
export function hourlyOrMonthly(
  hourly: string | null | undefined,
  monthly: string | null | undefined,
  currency: string,
): SourcePrice | undefined {
  if (hourly != null) return { amount: hourly, per: 'hour', currency };
  return monthly == null ? undefined : { amount: monthly, per: 'month', currency };
}

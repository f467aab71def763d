import type { ExclusionReason } from '../../domain/exclusion.ts';
import type { Offer } from '../../domain/machine.ts';
import type { MachineFacts } from '../../domain/machine-facts.ts';
import { isPositive, type SourcePrice } from '../../domain/price.ts';
import type { CatalogueItem } from '../source.ts';

/** Facts as an adapter found them: what it could not read is undefined. */
export type FoundFacts = { readonly [Fact in keyof MachineFacts]?: MachineFacts[Fact] | undefined };

/**
 * The item for a machine in a region.
 * @param excluded why it is not published, where the source says so; a price of zero is a reason by itself
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

/** The price for an hour, or where there is none for a month; undefined where there is neither. */
export function hourlyOrMonthly(
  hourly: string | null | undefined,
  monthly: string | null | undefined,
  currency: string,
): SourcePrice | undefined {
  if (hourly != null) return { amount: hourly, per: 'hour', currency };
  return monthly == null ? undefined : { amount: monthly, per: 'month', currency };
}

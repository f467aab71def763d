import type { ExclusionReason } from '../../domain/exclusion.ts';
import type { Offer } from '../../domain/machine.ts';
import { isPositive, type SourcePrice } from '../../domain/price.ts';
import type { CatalogueItem } from '../source.ts';

/**
 * The item for a machine in a region.
 * @param excluded why it is not published, where the source says so; a price of zero is a reason by itself
 */
export function offerItem(offer: Omit<Offer, 'excluded'>, excluded?: ExclusionReason | null): CatalogueItem {
  const reason = excluded ?? (isPositive(offer.price.amount) ? undefined : 'zero_price');
  return { kind: 'offer', offer: reason === undefined ? offer : { ...offer, excluded: reason } };
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

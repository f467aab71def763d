/** The list price of a cluster's machine when the cluster was created. It is an estimate: see docs/decisions/0103. */
import type { PriceTerm } from './term.ts';

/** Why it is not known. `before_history`: the history of the machine's price begins later. */
export const CREATION_REASONS = ['before_history', 'no_price', 'not_listed'] as const;

/** Which price an answer has: the current list price (that of the asked time), that of the creation, or one of the price book. */
export const PRICE_SOURCES = ['current', 'creation', 'book'] as const;
export type PriceSource = (typeof PRICE_SOURCES)[number];

export interface CreationPrice {
  /** Per minute, on demand; null if it is unknown. */
  readonly price: string | null;
  readonly monthlyCap: string | null;
  /** The time whose price it is. Times are RFC 3339 with microseconds. */
  readonly asOf: string;
  readonly reason: (typeof CREATION_REASONS)[number] | null;
  /** Since when the provider leaves existing machines at their price; null if its price changes apply to all. */
  readonly keptSince: string | null;
}

/**
 * Returns whether the provider still charges this price at a time (ms). Reservations and spot machines have separate prices. A price
 * from before the rule does not count: the provider has changed it since, and the next run of the source replaces it.
 */
export function isKept({ price, asOf, keptSince }: CreationPrice, term: PriceTerm, at: number): boolean {
  if (term !== 'on_demand' || price === null || keptSince === null) return false;
  const begin = Date.parse(asOf);
  return Date.parse(keptSince) <= begin && begin <= at;
}

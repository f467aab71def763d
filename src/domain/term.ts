/** Terms of price of a machine: the on-demand price has no entry here. */
import type { SourcePrice } from './price.ts';

/** The terms besides `on_demand`, in the order of every display. */
export const TERMS = ['spot', 'savings_plan_1y', 'savings_plan_3y', 'reserved_1y', 'reserved_3y'] as const;
export type Term = (typeof TERMS)[number];

/** The price of a term, as a source states it. */
export interface OfferedTerm {
  /** What recurs. It may be zero if everything is paid upfront. */
  readonly price: SourcePrice;
  /** What is paid once for the whole term, a plain decimal in the currency of `price`. Absent: nothing. */
  readonly upfront?: string;
}

/** The terms of one machine. An absent term is not sold, or its price is unknown. */
export type OfferedTerms = { readonly [T in Term]?: OfferedTerm };

/** A term as the database stores it. Amounts are plain decimals. */
export interface StoredTerm {
  /** Per minute in the published currency, with the upfront payment spread over the term. */
  readonly price: string;
  /** Total in the published currency; null if nothing is paid upfront. */
  readonly upfront: string | null;
  /** As the source states it. */
  readonly source: OfferedTerm;
}

/** The column `machines.terms`. `monthly_cap` is the most that a calendar month costs on demand, in the published currency. */
export interface StoredTerms {
  readonly terms: { readonly [T in Term]?: StoredTerm };
  readonly monthly_cap?: { readonly price: string; readonly source: { amount: string; currency: string } };
}

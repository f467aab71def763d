/** The price of a machine for an organization: the list price of a term, and what the price book makes of it. Pure. */
import {
  type BookForTerm,
  bookForTerm,
  type PriceBookEntry,
  type SelectedMachine,
} from '../../domain/prices/price-book.ts';
import type { PriceTerm } from '../../domain/prices/term.ts';
import { type NodePrice, nodePrice, nodePriceBy } from './cost.ts';
import type { PriceTime, StoredMachine } from './inputs.ts';

export const PRICE_SOURCES = ['list', 'own'] as const;

export interface PriceQuestion extends PriceTime {
  /** `own`: the organization's prices where it has any, list prices otherwise. */
  readonly prices: (typeof PRICE_SOURCES)[number];
}

/** What the organization pays now, on demand. */
export const NOW: PriceQuestion = { term: 'on_demand', prices: 'own', at: undefined };

/** Why a price is unknown, for the answer. */
export const REASONS = ['not_listed', 'no_price', 'term_not_sold', 'no_disk_price'] as const;
export type Reason = (typeof REASONS)[number];

/** A price of one node, or why there is none. */
export interface Price {
  /** What the organization pays. */
  readonly price: NodePrice | null;
  /** The list price of the same term; null if it is unknown. */
  readonly list: NodePrice | null;
  readonly source: PriceQuestion['prices'] | null;
  /** The entry of the price book that gave the price. */
  readonly entry: number | null;
  readonly reason: Reason | null;
}

/** Returns the book for a question, at its time. @param now milliseconds since the epoch */
export function bookFor(
  entries: readonly PriceBookEntry[],
  { term, prices, at }: PriceQuestion,
  now: number,
): BookForTerm {
  return bookForTerm(prices === 'own' ? entries : [], term, at === undefined ? now : Date.parse(at));
}

/** Returns the price of a stored machine. */
export function priceOf(machine: SelectedMachine & ListPrice, term: PriceTerm, book: BookForTerm): Price {
  return withBook(machine, listPriceOf(machine, term), term, book);
}

type ListPrice = Pick<StoredMachine, 'isListed' | 'price' | 'monthlyCap'>;

function listPriceOf({ isListed, price, monthlyCap }: ListPrice, term: PriceTerm): NodePrice | Reason {
  if (!isListed) return 'not_listed';
  if (price === null) return term === 'on_demand' ? 'no_price' : 'term_not_sold';
  return nodePrice(price, monthlyCap);
}

const unknownPrice = (reason: Reason): Price => ({
  price: null,
  list: null,
  source: null,
  entry: null,
  reason,
});

function withBook(
  machine: SelectedMachine,
  list: NodePrice | Reason,
  term: PriceTerm,
  book: BookForTerm,
): Price {
  // A fixed price adds no term that the provider does not sell.
  if (typeof list === 'string' && term !== 'on_demand') return unknownPrice(list);
  const entry = book.entryOf(machine);
  const known = typeof list === 'string' ? null : list;
  const price = nodePriceBy(known, entry);
  if (price !== null)
    return { price, list: known, source: entry ? 'own' : 'list', entry: entry?.id ?? null, reason: null };
  return unknownPrice(typeof list === 'string' ? list : 'no_price');
}

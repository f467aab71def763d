/**
 * The price of a machine for an organization: the list price of a term, or that of the creation of a cluster, and what the price book
 * makes of it. Pure.
 */
import { type CreationPrice, isKept, type PriceSource } from '../../domain/prices/creation-price.ts';
import {
  type BookForTerm,
  bookForTerm,
  type PriceBookEntry,
  type SelectedMachine,
} from '../../domain/prices/price-book.ts';
import type { PriceTerm } from '../../domain/prices/term.ts';
import { type NodePrice, nodePrice, nodePriceBy } from './cost.ts';
import type { PriceTime, StoredMachine } from './inputs.ts';

/**
 * The prices that a request asks for. `own`: what the organization pays, by its price book, else the price of a cluster's creation if its
 * provider keeps that, else the list price. `current`: the same without prices of creations. `list`: list prices alone.
 */
export const ASKED_PRICES = ['own', 'current', 'list'] as const;

export interface PriceQuestion extends PriceTime {
  readonly prices: (typeof ASKED_PRICES)[number];
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
  readonly source: PriceSource | null;
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
  return bookForTerm(prices === 'list' ? [] : entries, term, at === undefined ? now : Date.parse(at));
}

/** Returns the price of a cluster's creation, if its provider still charges it at the time of the question. */
export function keptPrice(
  creation: CreationPrice | null,
  { term, prices, at }: PriceQuestion,
  now: number,
): NodePrice | undefined {
  if (creation === null || prices !== 'own') return undefined;
  if (!isKept(creation, term, at === undefined ? now : Date.parse(at))) return undefined;
  return nodePrice(creation.price ?? '0', creation.monthlyCap);
}

/** Returns the price of a stored machine. @param kept the price of the creation of its cluster, if its provider keeps it */
export function priceOf(
  machine: SelectedMachine & ListPrice,
  term: PriceTerm,
  book: BookForTerm,
  kept?: NodePrice,
): Price {
  return withBook(machine, listPriceOf(machine, term), term, { book, kept });
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
  { book, kept }: { readonly book: BookForTerm; readonly kept: NodePrice | undefined },
): Price {
  // A fixed price adds no term that the provider does not sell.
  if (typeof list === 'string' && term !== 'on_demand') return unknownPrice(list);
  const entry = book.entryOf(machine);
  const known = typeof list === 'string' ? null : list;
  if (!entry && kept) return { price: kept, list: known, source: 'creation', entry: null, reason: null };
  const price = nodePriceBy(known, entry);
  if (price !== null)
    return { price, list: known, source: entry ? 'book' : 'current', entry: entry?.id ?? null, reason: null };
  return unknownPrice(typeof list === 'string' ? list : 'no_price');
}

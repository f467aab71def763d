/** The prices of clusters' machines: published ones from the index in memory, all others from PostgreSQL. Pure. */
import type { PricedMachine } from '../../db/prices/costs.ts';
import type { BookForTerm, SelectedMachine } from '../../domain/prices/price-book.ts';
import type { PriceTerm, StoredTerms } from '../../domain/prices/term.ts';
import {
  type FoundMachine,
  type NodePrice,
  nodePrice,
  nodePriceBy,
  selectedMachine,
} from '../../market/market.ts';
import type { StoredMachines } from './stored-machines.ts';

export const PRICE_SOURCES = ['list', 'own'] as const;

export interface PriceQuestion {
  readonly term: PriceTerm;
  /** `own`: the organization's prices where it has any, list prices otherwise. */
  readonly prices: (typeof PRICE_SOURCES)[number];
  /** RFC 3339; undefined for now. */
  readonly at: string | undefined;
}

/** Why a price is unknown, for the answer. */
export const REASONS = ['not_listed', 'no_price', 'term_not_sold', 'no_disk_price'] as const;
export type Reason = (typeof REASONS)[number];

/** A price of one machine, or why there is none. */
export interface Price {
  /** What the organization pays. */
  readonly price: NodePrice | null;
  /** The list price of the same term; null if it is unknown. */
  readonly list: NodePrice | null;
  readonly source: (typeof PRICE_SOURCES)[number] | null;
  /** The entry of the price book that gave the price. */
  readonly entry: number | null;
  readonly reason: Reason | null;
}

/** A machine of a cluster, and its price by one question. */
export interface Priced extends Price {
  readonly id: number;
  /** Null if no machine with this id can be seen. */
  readonly name: string | null;
  /** False if the published catalogue lacks the machine. */
  readonly isPublished: boolean;
}

export interface PriceInputs {
  /** The machines of the index by id. */
  readonly machines: ReadonlyMap<number, FoundMachine>;
  /** Their prices are used first. */
  readonly stored: StoredMachines;
  readonly book: BookForTerm;
  readonly question: PriceQuestion;
}

export function pricedMachine(id: number, { machines, stored, book, question }: PriceInputs): Priced {
  const found = machines.get(id);
  const row = stored.get(id);
  const isPublished = found !== undefined && !found.kind.isSoldOut;
  const { term } = question;
  if (row) return { id, name: row.name, isPublished, ...storedPrice(row, term, book) };
  if (found) return { id, name: found.name, isPublished, ...foundPrice(found, term, book) };
  return { id, name: null, isPublished, ...unknownPrice('not_listed') };
}

/** Returns the price of a machine of the index. */
export function foundPrice(machine: FoundMachine, term: PriceTerm, book: BookForTerm): Price {
  const { price, cap } = listOf(machine, term);
  const list = price === undefined ? missing(term) : nodePrice(price, cap);
  return withBook(selectedMachine(machine), list, term, book);
}

function listOf({ price, monthlyCap, terms }: FoundMachine, term: PriceTerm) {
  return term === 'on_demand' ? { price, cap: monthlyCap } : { price: terms[term]?.price, cap: undefined };
}

/** Returns the price of a stored machine. */
export function storedPrice(
  row: SelectedMachine & Pick<PricedMachine, 'isListed' | 'price' | 'terms'>,
  term: PriceTerm,
  book: BookForTerm,
): Price {
  return withBook(row, row.isListed ? (priceOf(row, term) ?? missing(term)) : 'not_listed', term, book);
}

function priceOf(
  { price, terms }: { readonly price: string | null; readonly terms: StoredTerms | null },
  term: PriceTerm,
): NodePrice | undefined {
  if (term !== 'on_demand') {
    const ofTerm = terms?.terms[term]?.price;
    return ofTerm === undefined ? undefined : nodePrice(ofTerm, null);
  }
  return price === null || Number(price) <= 0 ? undefined : nodePrice(price, terms?.monthly_cap?.price);
}

const missing = (term: PriceTerm): Reason => (term === 'on_demand' ? 'no_price' : 'term_not_sold');

export const unknownPrice = (reason: Reason): Price => ({
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

export function isSamePrice(a: Priced, b: Priced): boolean {
  return (
    a.price?.price === b.price?.price &&
    a.price?.monthlyCap === b.price?.monthlyCap &&
    a.list?.price === b.list?.price &&
    a.source === b.source &&
    a.entry === b.entry &&
    a.reason === b.reason &&
    a.name === b.name &&
    a.isPublished === b.isPublished
  );
}

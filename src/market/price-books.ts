/** The price books of organizations, prepared once for each term and index. */
import {
  type BookForTerm,
  bookForTerm,
  nextChange,
  type PriceBookEntry,
} from '../domain/prices/price-book.ts';
import type { PriceTerm } from '../domain/prices/term.ts';
import { type MaybePromise, whenThere } from '../snapshot/document/answer.ts';
import { entriesOf } from '../snapshot/document/price-book.ts';
import type { Documents } from '../snapshot/read/documents.ts';
import type { CatalogueIndex } from './catalogue-index.ts';
import { type OwnPrices, ownPrices } from './own-prices.ts';

export type Entries = readonly PriceBookEntry[];

export interface PriceBooks {
  /** Returns the entries of an organization; none if there is no organization. */
  entries(organizationId: number | undefined): MaybePromise<Entries>;
  /** Returns the book that applies now. It stays the same object until an entry begins or ends. */
  book(entries: Entries, term: PriceTerm): BookForTerm;
  /** Returns the own prices for the rows of an index; undefined if no entry applies now. */
  own(index: CatalogueIndex, entries: Entries, term: PriceTerm): OwnPrices | undefined;
}

interface KnownBook {
  readonly book: BookForTerm;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

export const NO_ENTRIES: Entries = [];

/** Keeps what it prepares with the entries and the rows that it was made of, and so never gives it to another book. */
export function priceBooks(documents: Pick<Documents, 'get'>, now = Date.now): PriceBooks {
  const books = new WeakMap<Entries, Map<PriceTerm, KnownBook>>();
  const prepared = new WeakMap<CatalogueIndex['rows'], WeakMap<BookForTerm, OwnPrices>>();

  function bookOf(entries: Entries, term: PriceTerm): BookForTerm {
    const ofEntries = books.get(entries) ?? new Map<PriceTerm, KnownBook>();
    books.set(entries, ofEntries);
    const at = now();
    const known = ofEntries.get(term);
    if (known && at < known.until) return known.book;
    const book = bookForTerm(entries, term, at);
    ofEntries.set(term, { book, until: nextChange(entries, at) ?? Number.POSITIVE_INFINITY });
    return book;
  }

  return {
    entries(organizationId) {
      if (organizationId === undefined) return NO_ENTRIES;
      return whenThere(documents.get({ kind: 'price-book', organizationId }), ({ document }) =>
        entriesOf(document),
      );
    },
    book: bookOf,
    own(index, entries, term) {
      if (entries.length === 0) return undefined;
      const book = bookOf(entries, term);
      const ofRows = prepared.get(index.rows) ?? new WeakMap<BookForTerm, OwnPrices>();
      prepared.set(index.rows, ofRows);
      const own = ofRows.get(book) ?? ownPrices(index, book);
      if (own) ofRows.set(book, own);
      return own;
    },
  };
}

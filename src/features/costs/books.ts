/** Price books, prepared for one term. */
import { type BookForTerm, bookForTerm, nextChange, type PriceBookEntry } from '../../domain/price-book.ts';
import type { PriceTerm } from '../../domain/term.ts';

export type Entries = readonly PriceBookEntry[];

interface KnownBook {
  readonly book: BookForTerm;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

/** The books that apply now. A book stays the same object until an entry begins or ends. */
export class CurrentBooks {
  readonly #books = new WeakMap<Entries, Map<PriceTerm, KnownBook>>();

  /** @param now milliseconds since the epoch */
  get(entries: Entries, term: PriceTerm, now: number): BookForTerm {
    const ofEntries = this.#books.get(entries) ?? new Map<PriceTerm, KnownBook>();
    this.#books.set(entries, ofEntries);
    const known = ofEntries.get(term);
    if (known && now < known.until) return known.book;
    const book = bookForTerm(entries, term, now);
    ofEntries.set(term, { book, until: nextChange(entries, now) ?? Number.POSITIVE_INFINITY });
    return book;
  }
}

/** The own prices that a search uses. They are prepared once for each index, book and term. */

import { nextChange, type PriceBookEntry } from '../../domain/price-book.ts';
import type { PriceTerm } from '../../domain/term.ts';
import type { CatalogueIndex } from '../../snapshot/catalogue/catalogue-index.ts';
import { type OwnPrices, ownPrices } from '../../snapshot/catalogue/own-prices.ts';
import { type MaybePromise, whenThere } from '../../snapshot/document/answer.ts';
import { entriesOf } from '../../snapshot/document/price-book.ts';
import type { Documents } from '../../snapshot/read/documents.ts';

type Entries = readonly PriceBookEntry[];

export interface Books {
  /** Returns the entries of an organization; none if there is no organization. */
  entries(organizationId: number | undefined): MaybePromise<Entries>;
  /** Returns undefined if no entry applies now. */
  own(index: CatalogueIndex, entries: Entries, term: PriceTerm): OwnPrices | undefined;
}

interface Prepared {
  readonly own: OwnPrices | undefined;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

const NONE: Entries = [];

/** Keeps prepared prices with the rows and the entries that they were made of, and so never gives them to another book. */
export function priceBooks(documents: Pick<Documents, 'get'>, now = Date.now): Books {
  const prepared = new WeakMap<CatalogueIndex['rows'], WeakMap<Entries, Map<PriceTerm, Prepared>>>();

  function preparedFor({ rows }: CatalogueIndex, entries: Entries): Map<PriceTerm, Prepared> {
    const ofRows = prepared.get(rows) ?? new WeakMap<Entries, Map<PriceTerm, Prepared>>();
    const ofBook = ofRows.get(entries) ?? new Map<PriceTerm, Prepared>();
    prepared.set(rows, ofRows.set(entries, ofBook));
    return ofBook;
  }

  return {
    entries(organizationId) {
      if (organizationId === undefined) return NONE;
      return whenThere(documents.get({ kind: 'price-book', organizationId }), ({ document }) =>
        entriesOf(document),
      );
    },
    own(index, entries, term) {
      if (entries.length === 0) return undefined;
      const ofBook = preparedFor(index, entries);
      const at = now();
      const known = ofBook.get(term);
      if (known && at < known.until) return known.own;
      const own = ownPrices(index, entries, term, at);
      ofBook.set(term, { own, until: nextChange(entries, at) ?? Infinity });
      return own;
    },
  };
}

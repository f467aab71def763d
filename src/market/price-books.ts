/**
 * The price books of organizations, and the views of the index that have their prices. A view is made at the first search by
 * a book, and brought up to date by a search after a publication. One view is made at a time, in turns.
 */
import { hash } from 'node:crypto';
import { withTimeout } from '../domain/clock.ts';
import { inSlices } from '../domain/event-loop.ts';
import {
  type BookForTerm,
  bookForTerm,
  nextChange,
  type PriceBookEntry,
} from '../domain/prices/price-book.ts';
import type { PriceTerm } from '../domain/prices/term.ts';
import { type MaybePromise, whenThere } from '../snapshot/document/answer.ts';
import { entriesOf } from '../snapshot/document/build.ts';
import type { ById } from '../snapshot/document/columns.ts';
import type { Documents } from '../snapshot/read/documents.ts';
import { byIdBytes, type CatalogueIndex, indexedMachine, selectedMachine } from './catalogue-index.ts';
import { capOf } from './cheapest.ts';
import { type NodePrice, nodePrice, nodePriceBy } from './costs/cost.ts';
import type { Sort } from './filters.ts';
import { ofTerm } from './machines.ts';
import { SearchUnavailable } from './read-regions.ts';
import { mergeView, NO_UNORDERED_ROWS, rowOf, rowsBytes, rowsOfRegions, withOrder } from './rows.ts';

type Entries = readonly PriceBookEntry[];
const NO_ENTRIES: Entries = [];

/** The machines at the prices that a question is about. */
export interface PricedIndex {
  /** In the order of these prices. */
  readonly view: CatalogueIndex;
  /** At list prices of the same term. */
  readonly list: CatalogueIndex;
  /** Undefined if no entry applies: `view` is `list`. */
  readonly book: BookForTerm | undefined;
}

/** Returns the entry that gives the price of a row of the view; undefined if the list price applies. */
export function entryOf({ view, book }: PricedIndex, row: number): PriceBookEntry | undefined {
  return book?.entryOf(selectedMachine(indexedMachine(view, row)));
}

/** Returns the list price of a row of the view, as the nearest double. */
export function listPriceOf({ view, list }: PricedIndex, row: number): number {
  return list.rows.prices[view === list ? row : listRowOf(list, view.rows.ids[row] as number)] as number;
}

/** Returns the exact price of a row of the view, with its monthly cap. */
export function exactPriceOf(priced: PricedIndex, row: number): NodePrice {
  const { view, list } = priced;
  const place = view.rows.regions[row] as number;
  const cap = capOf(list, place, view.rows.ids[row] as number);
  return nodePriceBy(nodePrice(listPriceOf(priced, row), cap), entryOf(priced, row));
}

export interface PriceBooksOptions {
  readonly documents: Pick<Documents, 'get'>;
  readonly now?: () => number;
  /** Returns the most bytes of all views. */
  readonly memoryLimit?: () => number;
  /** Receives the bytes of all views. */
  readonly onSize?: (bytes: number) => void;
}

interface KnownBook {
  readonly book: BookForTerm;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

interface KnownView {
  /** The list prices that it is made of. */
  readonly list: CatalogueIndex;
  readonly view: CatalogueIndex;
}

/** Milliseconds that a search waits for its view. */
const WAIT_MS = 1000;

export class PriceBooks {
  readonly #options: PriceBooksOptions;
  readonly #books = new WeakMap<Entries, Map<PriceTerm, KnownBook>>();
  readonly #keys = new WeakMap<BookForTerm, string>();
  /** By the key of the book, the least recently used one first. */
  readonly #views = new Map<string, KnownView>();
  #lastMade: Promise<unknown> = Promise.resolve();

  constructor(options: PriceBooksOptions) {
    this.#options = options;
  }

  /** Returns the entries of an organization; none if there is no organization. */
  entries(organizationId: number | undefined): MaybePromise<Entries> {
    if (organizationId === undefined) return NO_ENTRIES;
    const reading = this.#options.documents.get({ kind: 'price-book', organizationId });
    return whenThere(reading, ({ document }) => entriesOf(document));
  }

  /** Returns the book that applies now. It stays the same object until an entry begins or ends. */
  book(entries: Entries, term: PriceTerm): BookForTerm {
    const ofEntries = this.#books.get(entries) ?? new Map<PriceTerm, KnownBook>();
    this.#books.set(entries, ofEntries);
    const at = (this.#options.now ?? Date.now)();
    const known = ofEntries.get(term);
    if (known && at < known.until) return known.book;
    const book = bookForTerm(entries, term, at);
    ofEntries.set(term, { book, until: nextChange(entries, at) ?? Number.POSITIVE_INFINITY });
    return book;
  }

  /**
   * Returns the machines that have a term, at its prices by a book of the term. Rejects with `SearchUnavailable`.
   * @param by the order that a search needs
   */
  priced(
    index: CatalogueIndex,
    term: PriceTerm,
    book: BookForTerm,
    by: Sort['by'],
  ): MaybePromise<PricedIndex> {
    const list = term === 'on_demand' ? index : ofTerm(index, term);
    if (book.entries.length === 0) return { view: list, list, book: undefined };
    const key = this.#keyOf(term, book);
    const known = this.#views.get(key);
    if (known && isComplete(known, list, by)) {
      this.#keep(key, known);
      return { view: known.view, list, book };
    }
    return this.#wait(this.#inTurn(() => this.#make(key, list, book, by))).then((view) => ({
      view,
      list,
      book,
    }));
  }

  /** The bytes of all views. */
  get bytes(): number {
    return [...this.#views.values()].reduce((sum, { view }) => sum + viewBytes(view), 0);
  }

  /** Two organizations have no entry in common, so their keys differ. */
  #keyOf(term: PriceTerm, book: BookForTerm): string {
    const known = this.#keys.get(book);
    if (known !== undefined) return known;
    const key = hash('sha256', JSON.stringify([term, book.entries]), 'base64url');
    this.#keys.set(book, key);
    return key;
  }

  async #make(key: string, list: CatalogueIndex, book: BookForTerm, by: Sort['by']): Promise<CatalogueIndex> {
    const known = this.#views.get(key);
    if (known && isComplete(known, list, by)) return known.view;
    const most = this.#options.memoryLimit?.() ?? Number.POSITIVE_INFINITY;
    if (rowsBytes({ ...list.rows, orders: {} }) > most)
      throw new SearchUnavailable('Own prices cannot be searched here: they need more of MEMORY_LIMIT.', 60);
    let view = known?.list.rows === list.rows ? known.view : await inSlices(ownView(known?.view, list, book));
    if (by !== 'price' && !view.rows.orders[by]) {
      const rows = await inSlices(withOrder(view.rows, by, { ...view, kinds: view.dictionary.kinds }));
      view = { ...view, rows };
    }
    this.#keep(key, { list, view });
    while (this.#views.size > 1 && this.bytes > most)
      this.#views.delete(this.#views.keys().next().value as string);
    this.#options.onSize?.(this.bytes);
    return view;
  }

  #keep(key: string, view: KnownView): void {
    this.#views.delete(key);
    this.#views.set(key, view);
  }

  #inTurn<T>(make: () => Promise<T>): Promise<T> {
    const made = this.#lastMade.then(make);
    this.#lastMade = made.catch(() => undefined);
    return made;
  }

  async #wait<T>(made: Promise<T>): Promise<T> {
    if (await withTimeout(WAIT_MS, made)) return made;
    throw new SearchUnavailable('The own prices are not read yet; try again soon.');
  }
}

/** Returns the bytes that a view does not share with its list. */
const viewBytes = ({ rows, caps }: CatalogueIndex): number =>
  rowsBytes(rows) + caps.reduce((sum, ofRegion) => sum + (ofRegion ? byIdBytes(ofRegion) : 0), 0);

const isComplete = ({ list, view }: KnownView, of: CatalogueIndex, by: Sort['by']): boolean =>
  list.rows === of.rows && (by === 'price' || view.rows.orders[by] !== undefined);

/** Returns the view with the prices of a book. @param before the earlier view with the same prices */
export function* ownView(
  before: CatalogueIndex | undefined,
  list: CatalogueIndex,
  book: BookForTerm,
): Generator<void, CatalogueIndex> {
  const { rows: listed, regions, kindOf, dictionary } = list;
  // After a change of lineage the numbers of types and regions are others.
  const known = before?.dictionary === dictionary ? before : undefined;
  const isChanged = Uint8Array.from(regions, (region, place) => Number(known?.regions[place] !== region));
  const changed = yield* rowsOfRegions(listed, isChanged);
  const priceOf = priceByBook(list, book);
  const change = { isChanged, kindOf, kinds: dictionary.kinds };
  const rows = yield* mergeView(known?.rows ?? NO_UNORDERED_ROWS, listed, changed, change, priceOf);
  const caps: (ById | undefined)[] = [];
  for (const [place, ofList] of list.caps.entries()) {
    caps.push(isChanged[place] === 1 ? ofList && capsByBook(list, ofList, book) : known?.caps[place]);
    yield;
  }
  return { ...list, rows, caps };
}

/** Returns a function that remembers the last price of each entry: neighbours often have one list price. */
function priceByBook(list: CatalogueIndex, book: BookForTerm): (row: number) => number {
  const lasts = new Map<PriceBookEntry, { readonly list: number; readonly price: number }>();
  return (row) => {
    const price = list.rows.prices[row] as number;
    const entry = book.entryOf(selectedMachine(indexedMachine(list, row)));
    if (!entry) return price;
    const last = lasts.get(entry);
    if (last?.list === price) return last.price;
    const own = Number(nodePriceBy(nodePrice(price, null), entry).price);
    lasts.set(entry, { list: price, price: own });
    return own;
  };
}

/** Returns the caps of a region by a book: a fixed price has none. */
function capsByBook(list: CatalogueIndex, { ids, values }: ById, book: BookForTerm): ById {
  const found = [...ids].flatMap((id, i) => {
    const entry = book.entryOf(selectedMachine(indexedMachine(list, listRowOf(list, id))));
    const { monthlyCap } = nodePriceBy(nodePrice(0, values[i]), entry);
    return monthlyCap === null ? [] : { id, value: Number(monthlyCap) };
  });
  return {
    ids: Uint32Array.from(found, ({ id }) => id),
    values: Float64Array.from(found, ({ value }) => value),
  };
}

function listRowOf(list: CatalogueIndex, id: number): number {
  const row = rowOf(list.rows, id);
  if (row === undefined) throw new Error('unreachable: a view has only machines of its list');
  return row;
}

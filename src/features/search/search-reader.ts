import { hash } from 'node:crypto';
import type { PriceTerm } from '../../domain/prices/term.ts';
import { readCursor, writeCursor } from '../../http/protocol/page-cursor.ts';
import {
  type Billed,
  type CatalogueIndex,
  entryOf,
  type Filters,
  listPriceOf,
  type MachineField,
  machineOfRow,
  type Needs,
  type PriceBooks,
  type PricedIndex,
  recommended,
  regionsIn,
  regionsOf,
  type SearchState,
  type Sort,
  search,
} from '../../market/market.ts';
import { type Answer, type MaybePromise, whenThere } from '../../snapshot/document/answer.ts';
import { jsonBody } from '../../snapshot/document/body.ts';
import { questionOf, type RamUnit } from './question.ts';
import type { PricedMachine, Recommendation, RecommendDocument, SearchDocument } from './schema.ts';

export interface SearchQuestion {
  readonly filters: Filters;
  readonly ramUnit: RamUnit;
  readonly term: PriceTerm;
  readonly sort: Sort;
  readonly limit: number;
  readonly cursor: string | undefined;
  readonly fields: readonly MachineField[] | undefined;
  /** Whose own prices the answer has; undefined for list prices. */
  readonly organizationId: number | undefined;
}

export interface RecommendQuestion {
  readonly filters: Filters;
  readonly ramUnit: RamUnit;
  readonly term: PriceTerm;
  readonly needs: Needs;
  readonly organizationId: number | undefined;
}

/** The start of a version in a cursor: enough characters to distinguish successive versions. */
const VERSION_LENGTH = 8;
const VERSION_FORM = /^[\w-]{8}$/;

export type SearchReader = ReturnType<typeof searchReader>;

/** Searches all machines. Its methods may reject with `Unavailable`. */
export function searchReader(source: { get(): MaybePromise<SearchState> }, books: PriceBooks) {
  /** Reads the index at the prices of the term, and of an organization. @param by the order that the answer needs */
  const read = <T>(
    { organizationId, term }: Pick<SearchQuestion, 'organizationId' | 'term'>,
    by: Sort['by'],
    answer: (state: SearchState, priced: PricedIndex) => T,
  ): MaybePromise<T> =>
    whenThere(books.entries(organizationId), (entries) =>
      whenThere(source.get(), (state) =>
        whenThere(books.priced(state.index, term, books.book(entries, term), by), (priced) =>
          answer(state, priced),
        ),
      ),
    );
  return {
    /** Returns undefined for a cursor of another question. */
    search: (request: SearchQuestion): MaybePromise<Answer | undefined> =>
      read(request, request.sort.by, (state, priced) => {
        const { filters, ramUnit, term, sort, limit, cursor, fields } = request;
        const question = questionOf(filters, sort, term);
        const place = cursor === undefined ? undefined : readCursor(question, cursor, 3, VERSION_FORM);
        if (cursor !== undefined && !place) return undefined;
        const [key = 0, price = 0, id = 0] = place?.numbers ?? [];
        const after = place && { key, price, id };
        const { rows, next } = search(priced.view, filters, sort, limit, after);
        const version = versionOf(priced);
        const begun = version.slice(0, VERSION_LENGTH);
        const found: SearchDocument = {
          machines: rows.map((row) => machineDocument(priced, row, term, fields)),
          next: next ? writeCursor(question, [next.key, next.price, next.id], begun) : null,
          ram_unit: ramUnit,
          version,
          moved: place !== undefined && place.text !== begun,
        };
        return answer(state, placesOf(priced.view, rows, filters), found);
      }),

    recommend: (request: RecommendQuestion): MaybePromise<Answer> =>
      read(request, 'price', (state, priced) => {
        const { filters, ramUnit, term, needs } = request;
        const billed = recommended(priced, filters, needs);
        const found: RecommendDocument = {
          recommendations: billed.map((each) => ({
            machine: machineDocument(priced, each.row, term) as PricedMachine,
            ...billInNumbers(each, needs),
          })),
          ram_unit: ramUnit,
          version: versionOf(priced),
        };
        const rows = billed.map(({ row }) => row);
        return answer(state, placesOf(priced.view, rows, filters), found);
      }),
  };
}

/** Returns a machine with its price at the term. @param row of the view */
function machineDocument(
  priced: PricedIndex,
  row: number,
  term: PriceTerm,
  fields?: readonly MachineField[],
): Partial<PricedMachine> {
  const { view, book } = priced;
  const machine = { ...machineOfRow(view, row, fields), ...(term === 'on_demand' ? {} : { term }) };
  // Without a price it has no source of one.
  if (machine.price === undefined || !book) return machine;
  return entryOf(priced, row)
    ? { ...machine, price_source: 'own', list_price: listPriceOf(priced, row) }
    : { ...machine, price_source: 'list' };
}

/** Returns the version of the index, or one of the index with the entries that apply. */
function versionOf({ view: { version }, book }: PricedIndex): string {
  if (!book) return version;
  const entries = book.entries.map(({ id }) => id).join(' ');
  return hash('sha256', `${version} ${entries}`, 'base64url').slice(0, version.length);
}

function billInNumbers({ machine, bill }: Billed, needs: Needs): Omit<Recommendation, 'machine'> {
  const number = (amount: string | null) => (amount === null ? null : Number(amount));
  const { hours } = needs;
  const cap = machine.monthlyCap === null ? '' : `, at most ${machine.monthlyCap} a month`;
  const rest = [
    [needs.storage, 'GB of storage'],
    [needs.traffic, 'GB of traffic a month'],
    [needs.ipv4, 'IPv4 addresses'],
  ].flatMap(([need, what]) => (Number(need) === 0 ? [] : ` + ${need} ${what}`));
  return {
    hours: Number(hours),
    total: number(bill.total),
    known_total: Number(bill.known),
    complete: bill.isComplete,
    breakdown: {
      machine: number(bill.machine),
      storage: number(bill.storage),
      traffic: number(bill.traffic),
      ipv4: number(bill.ipv4),
    },
    computed: `${machine.price} a minute × 60 × ${hours} hours${cap}${rest.join('')}`,
  };
}

function answer(state: SearchState, places: readonly number[], document: unknown): Answer {
  const { index, tier } = state;
  return { body: jsonBody(document), tier, asOf: state.asOf(places), currency: index.regions[0]?.currency };
}

/** Returns the regions of the rows. An answer without rows depends on every region that it could have them of. */
function placesOf(index: CatalogueIndex, found: readonly number[], filters: Filters): number[] {
  if (found.length > 0) return [...new Set(found.map((row) => index.rows.regions[row] as number))];
  const ofProviders = regionsOf(index, filters.providers);
  const regional = [...ofProviders.intersection(new Set(regionsIn(index, filters)))];
  // Without such a region, the sources of the providers may add one.
  return regional.length > 0 ? regional : [...ofProviders];
}

import { hash } from 'node:crypto';
import type { PriceTerm } from '../../domain/prices/term.ts';
import { readCursor, writeCursor } from '../../http/protocol/page-cursor.ts';
import {
  type CatalogueIndex,
  type Filters,
  type MachineField,
  machineOfRow,
  type Needs,
  type OwnPrices,
  ofTerm,
  type PriceBooks,
  regionsIn,
  regionsOf,
  rowOf,
  type SearchState,
  type Sort,
  search,
  searchOwn,
} from '../../market/market.ts';
import { type Answer, type MaybePromise, whenThere } from '../../snapshot/document/answer.ts';
import { jsonBody } from '../../snapshot/document/body.ts';
import { questionOf, type RamUnit } from './question.ts';
import { type Billed, recommended } from './recommend.ts';
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
  /** Reads the index with the prices of the term, and the own prices of an organization if any entry applies now. */
  const read = <T>(
    { organizationId, term }: Pick<SearchQuestion, 'organizationId' | 'term'>,
    answer: (found: { state: SearchState; view: CatalogueIndex; own: OwnPrices | undefined }) => T,
  ): MaybePromise<T> =>
    whenThere(books.entries(organizationId), (entries) =>
      whenThere(source.get(), (state) => {
        const view = term === 'on_demand' ? state.index : ofTerm(state.index, term);
        return answer({ state, view, own: books.own(view, entries, term) });
      }),
    );
  return {
    /** Returns undefined for a cursor of another question. */
    search: (request: SearchQuestion): MaybePromise<Answer | undefined> =>
      read(request, ({ state, view, own }) => {
        const { filters, ramUnit, term, sort, limit, cursor, fields } = request;
        const { index } = state;
        const question = questionOf(filters, sort, term);
        const place = cursor === undefined ? undefined : readCursor(question, cursor, 3, VERSION_FORM);
        if (cursor !== undefined && !place) return undefined;
        const [key = 0, price = 0, id = 0] = place?.numbers ?? [];
        const after = place && { key, price, id };
        const { rows, next } = own
          ? searchOwn(view, own, filters, sort, limit, after)
          : search(view, filters, sort, limit, after);
        const version = versionOf(index, own);
        const begun = version.slice(0, VERSION_LENGTH);
        const found: SearchDocument = {
          machines: rows.map((row) => shown({ index, view, own, term }, row, fields)),
          next: next ? writeCursor(question, [next.key, next.price, next.id], begun) : null,
          ram_unit: ramUnit,
          version,
          moved: place !== undefined && place.text !== begun,
        };
        return answer(state, placesOf(view, rows, filters), found);
      }),

    recommend: (request: RecommendQuestion): MaybePromise<Answer> =>
      read(request, ({ state, view, own }) => {
        const { filters, ramUnit, term, needs } = request;
        const { index } = state;
        const billed = recommended(view, filters, { term, needs, own });
        const found: RecommendDocument = {
          recommendations: billed.map((each) => ({
            machine: shown({ index, view, own, term }, each.row) as PricedMachine,
            ...billInNumbers(each, needs),
          })),
          ram_unit: ramUnit,
          version: versionOf(index, own),
        };
        const rows = billed.map(({ row }) => row);
        return answer(state, placesOf(view, rows, filters), found);
      }),
  };
}

interface Prices {
  readonly index: CatalogueIndex;
  /** The rows with the prices of the term. */
  readonly view: CatalogueIndex;
  readonly own: OwnPrices | undefined;
  readonly term: PriceTerm;
}

/** Returns a machine with its price at the term. @param row of the view */
function shown(prices: Prices, row: number, fields?: readonly MachineField[]): Partial<PricedMachine> {
  const { index, view, own, term } = prices;
  const list = view.rows.prices[row] as number;
  const isOnDemand = term === 'on_demand';
  const onDemand = isOnDemand ? row : rowOf(index.rows, view.rows.ids[row] as number);
  if (onDemand === undefined) throw new Error('unreachable: every machine of a term is in the index');
  const machine = { ...machineOfRow(index, onDemand, fields), ...(isOnDemand ? {} : { term }) };
  // Without a price it has no source of one.
  if (machine.price === undefined) return machine;
  const priced = { ...machine, price: list };
  if (!own) return priced;
  const price = own.priceOf(row);
  return price === undefined
    ? { ...priced, price_source: 'list' }
    : { ...priced, price, price_source: 'own', list_price: list };
}

/** Returns the version of the index, or one of the index with the entries that apply. */
function versionOf({ version }: CatalogueIndex, own: OwnPrices | undefined): string {
  return own ? hash('sha256', `${version} ${own.key}`, 'base64url').slice(0, version.length) : version;
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

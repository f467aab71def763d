import { hash } from 'node:crypto';
import type { PriceTerm } from '../../domain/prices/term.ts';
import { readCursor, writeCursor } from '../../http/protocol/page-cursor.ts';
import {
  type Billed,
  entryOf,
  type Filters,
  findMachine,
  listPriceOf,
  type MachineField,
  machineOfRow,
  type Needs,
  type PricedIndex,
  placesBehind,
  type ReadableMarket,
  readPriced,
  recommended,
  type SearchState,
  type Sort,
  search,
} from '../../market/market.ts';
import { type Answer, type MaybePromise, whenThere } from '../../snapshot/document/answer.ts';
import { jsonBody, longBody } from '../../snapshot/document/body.ts';
import type {
  FirstAvailableDocument,
  PricedMachine,
  RamUnit,
  Recommendation,
  RecommendDocument,
  SearchDocument,
} from './schema.ts';

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

/** More machines are shown in slices: each takes two microseconds. */
const MACHINES_AT_ONCE = 100;

export type SearchAnswers = ReturnType<typeof searchAnswers>;

/** Answers about the machines of all regions. Its methods may reject with `Unavailable`. */
export function searchAnswers(market: ReadableMarket) {
  return {
    /** Returns undefined for a cursor of another question. */
    search: (request: SearchQuestion): MaybePromise<Answer | undefined> =>
      whenThere(readPriced(market, request, request.sort.by), ({ state, priced }) => {
        const { filters, ramUnit, term, sort, limit, cursor, fields } = request;
        const question = questionOf(filters, sort, term);
        const place = cursor === undefined ? undefined : readCursor(question, cursor, 3, VERSION_FORM);
        if (cursor !== undefined && !place) return undefined;
        const [key = 0, price = 0, id = 0] = place?.numbers ?? [];
        const after = place && { key, price, id };
        const { rows, next } = search(priced.view, filters, sort, limit, after);
        const version = versionOf(priced);
        const begun = version.slice(0, VERSION_LENGTH);
        const found: Omit<SearchDocument, 'machines'> & { readonly machines: readonly number[] } = {
          machines: rows,
          next: next ? writeCursor(question, [next.key, next.price, next.id], begun) : null,
          ram_unit: ramUnit,
          version,
          moved: place !== undefined && place.text !== begun,
        };
        const shown = (row: number) => machineDocument(priced, row, term, fields);
        const body =
          rows.length > MACHINES_AT_ONCE
            ? longBody(found, 'machines', shown)
            : jsonBody({ ...found, machines: rows.map(shown) });
        const places = placesBehind(priced.view, rows, filters);
        return whenThere(body, (made) => answer(state, places, made));
      }),

    /** @param ids in the order of preference @param organizationId whose own prices the answer has */
    firstAvailable: (ids: readonly number[], organizationId: number | undefined): MaybePromise<Answer> =>
      whenThere(readPriced(market, { organizationId, term: 'on_demand' }, 'price'), ({ state, priced }) => {
        const passed: FirstAvailableDocument['passed'] = [];
        const places = new Set<number>();
        let machine: PricedMachine | null = null;
        for (const id of ids) {
          const found = findMachine(priced.view, id);
          // Any source could list an unknown machine.
          for (const place of found ? [found.place] : state.index.regions.keys()) places.add(place);
          if (found && !found.kind.isSoldOut) {
            machine = machineDocument(priced, found.row, 'on_demand') as PricedMachine;
            break;
          }
          passed.push({ id, reason: found ? 'sold_out' : 'not_listed' });
        }
        const document: FirstAvailableDocument = { machine, passed };
        return answer(state, [...places], jsonBody(document));
      }),

    recommend: (request: RecommendQuestion): MaybePromise<Answer> =>
      whenThere(readPriced(market, request, 'price'), ({ state, priced }) => {
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
        return answer(state, placesBehind(priced.view, rows, filters), jsonBody(found));
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
  const machine = {
    ...machineOfRow(view, row, fields),
    ...(term === 'on_demand' ? {} : { term }),
  };
  // Without a price it has no source of one.
  if (machine.price === undefined || !book) return machine;
  return entryOf(priced, row)
    ? { ...machine, price_source: 'book', list_price: listPriceOf(priced, row) }
    : { ...machine, price_source: 'current' };
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

function answer(state: SearchState, places: readonly number[], body: Answer['body']): Answer {
  const { index, tier } = state;
  return { body, tier, asOf: state.asOf(places), currency: index.regions[0]?.currency };
}

/** Returns the identity of a question for its cursors. Equal filters have equal identities in any order. */
export function questionOf(filters: Filters, sort: Sort, term: PriceTerm) {
  const set = (ids: readonly number[] | undefined) => ids && [...new Set(ids)].sort((a, b) => a - b);
  const words = (given: readonly string[] | undefined) => given && [...new Set(given)].sort();
  const { providers, regions, countries, continents, name } = filters;
  const plain = {
    ...filters,
    providers: set(providers),
    regions: set(regions),
    countries: words(countries),
    continents: words(continents),
    name: name?.toLowerCase(),
  };
  const entries = Object.entries(plain).filter(([, value]) => value !== undefined);
  return [entries.sort(([a], [b]) => (a < b ? -1 : 1)), sort.by, sort.descending, term];
}

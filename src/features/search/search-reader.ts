import { hash } from 'node:crypto';
import { decimal, product } from '../../domain/price.ts';
import type { CatalogueIndex } from '../../snapshot/catalogue/catalogue-index.ts';
import type { Filters, Sort } from '../../snapshot/catalogue/filters.ts';
import type { OwnPrices } from '../../snapshot/catalogue/own-prices.ts';
import { cheapestOwn, searchOwn } from '../../snapshot/catalogue/own-search.ts';
import { search } from '../../snapshot/catalogue/search.ts';
import type { SearchState } from '../../snapshot/catalogue/searchable.ts';
import { type MachineField, machineOfRow } from '../../snapshot/catalogue/shown.ts';
import { type Answer, type MaybePromise, whenThere } from '../../snapshot/document/answer.ts';
import { Body, hashOf } from '../../snapshot/document/body.ts';
import type { Books } from './own.ts';
import { isSameVersion, questionHash, type RamUnit, readCursor, writeCursor } from './question.ts';
import { cheapestOfEach } from './recommend.ts';
import type { PricedMachine, RecommendDocument, SearchDocument } from './schema.ts';

export interface SearchQuestion {
  readonly filters: Filters;
  readonly ramUnit: RamUnit;
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
  readonly hours: string;
  readonly organizationId: number | undefined;
}

export type SearchReader = ReturnType<typeof searchReader>;

/** Searches all machines. Its methods may reject with `Unavailable`. */
export function searchReader(source: { get(): MaybePromise<SearchState> }, books: Books) {
  /** Reads the index, and the own prices of an organization if any entry applies now. */
  const read = <T>(
    organizationId: number | undefined,
    answer: (state: SearchState, own: OwnPrices | undefined) => T,
  ): MaybePromise<T> =>
    whenThere(books.entries(organizationId), (entries) =>
      whenThere(source.get(), (state) => answer(state, books.own(state.index, entries, 'on_demand'))),
    );
  return {
    /** Returns undefined for a cursor of another question. */
    search: (request: SearchQuestion): MaybePromise<Answer | undefined> =>
      read(request.organizationId, (state, own) => {
        const { filters, ramUnit, sort, limit, cursor, fields } = request;
        const { index } = state;
        const question = questionHash(filters, sort);
        const begun = cursor === undefined ? undefined : readCursor(question, cursor);
        if (cursor !== undefined && !begun) return undefined;
        const { rows, next } = own
          ? searchOwn(index, own, filters, sort, limit, begun?.after)
          : search(index, filters, sort, limit, begun?.after);
        const version = versionOf(index, own);
        const found: SearchDocument = {
          machines: rows.map((row) => shownMachine(index, row, own, fields)),
          next: next ? writeCursor(question, { after: next, version }) : null,
          ram_unit: ramUnit,
          version,
          moved: begun !== undefined && !isSameVersion(begun, version),
        };
        return answer(state, filters, found);
      }),

    recommend: ({ filters, ramUnit, hours, organizationId }: RecommendQuestion): MaybePromise<Answer> =>
      read(organizationId, (state, own) => {
        const { index } = state;
        const rows = own ? cheapestOwn(index, own, filters) : cheapestOfEach(index, filters);
        const found: RecommendDocument = {
          recommendations: rows.map((row) => {
            const machine = shownMachine(index, row, own) as PricedMachine;
            const price = decimal(machine.price) ?? '0';
            return {
              machine,
              hours: Number(hours),
              total: Number(Number(product(product(price, '60'), hours)).toPrecision(12)),
              computed: `${price} a minute × 60 × ${hours} hours`,
            };
          }),
          ram_unit: ramUnit,
          version: versionOf(index, own),
        };
        return answer(state, filters, found);
      }),
  };
}

/** Adds where the price comes from, if the answer has own prices and the request wants prices. */
function shownMachine(
  index: CatalogueIndex,
  row: number,
  own: OwnPrices | undefined,
  fields?: readonly MachineField[],
): Partial<PricedMachine> {
  const machine = machineOfRow(index, row, fields);
  if (!own || machine.price === undefined) return machine;
  const price = own.priceOf(row);
  if (price === undefined) return { ...machine, price_source: 'list' };
  return { ...machine, price, price_source: 'own', list_price: machine.price };
}

/** Returns the version of the index, or one of the index with the entries that apply. */
function versionOf({ version }: CatalogueIndex, own: OwnPrices | undefined): string {
  return own ? hash('sha256', `${version} ${own.key}`, 'base64url').slice(0, version.length) : version;
}

function answer(state: SearchState, filters: Filters, document: unknown): Answer {
  const identity = Buffer.from(JSON.stringify(document));
  const body = new Body(identity, hashOf(identity), undefined);
  const { index, tier } = state;
  const asOf = state.asOf(placesOf(index, filters));
  return { body, tier, asOf, currency: index.regions[0]?.currency };
}

function placesOf({ regions, regionOf }: CatalogueIndex, filters: Filters): number[] {
  const regional = filters.regions?.flatMap((id) => regionOf.get(id) ?? []) ?? [...regions.keys()];
  const { providers } = filters;
  if (!providers) return regional;
  return regional.filter((place) => providers.includes(regions[place]?.provider.id ?? 0));
}

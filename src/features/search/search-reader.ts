import type { MachineFactsDocument } from '../../domain/machine.ts';
import { decimal, product } from '../../domain/price.ts';
import type { CatalogueIndex } from '../../snapshot/catalogue/catalogue-index.ts';
import type { Filters, Sort } from '../../snapshot/catalogue/filters.ts';
import { search } from '../../snapshot/catalogue/search.ts';
import type { SearchState } from '../../snapshot/catalogue/searchable.ts';
import { type MachineField, machineOfRow } from '../../snapshot/catalogue/shown.ts';
import { type Answer, type MaybePromise, whenThere } from '../../snapshot/document/answer.ts';
import { Body, hashOf } from '../../snapshot/document/body.ts';
import { isSameVersion, questionHash, type RamUnit, readCursor, writeCursor } from './question.ts';
import { cheapestOfEach } from './recommend.ts';
import type { RecommendDocument, SearchDocument } from './schema.ts';

export interface SearchQuestion {
  readonly filters: Filters;
  readonly ramUnit: RamUnit;
  readonly sort: Sort;
  readonly limit: number;
  readonly cursor: string | undefined;
  readonly fields: readonly MachineField[] | undefined;
}

export interface RecommendQuestion {
  readonly filters: Filters;
  readonly ramUnit: RamUnit;
  readonly hours: string;
}

export type SearchReader = ReturnType<typeof searchReader>;

/** Searches all machines. Its methods may reject with `Unavailable`. */
export function searchReader(source: { get(): MaybePromise<SearchState> }) {
  return {
    /** Returns undefined for a cursor of another question. */
    search: (request: SearchQuestion): MaybePromise<Answer | undefined> =>
      whenThere(source.get(), (state) => {
        const { filters, ramUnit, sort, limit, cursor, fields } = request;
        const { index } = state;
        const question = questionHash(filters, sort);
        const begun = cursor === undefined ? undefined : readCursor(question, cursor);
        if (cursor !== undefined && !begun) return undefined;
        const { rows, next } = search(index, filters, sort, limit, begun?.after);
        const { version } = index;
        const found: SearchDocument = {
          machines: rows.map((row) => machineOfRow(index, row, fields)),
          next: next ? writeCursor(question, { after: next, version }) : null,
          ram_unit: ramUnit,
          version,
          moved: begun !== undefined && !isSameVersion(begun, version),
        };
        return answer(state, filters, found);
      }),

    recommend: ({ filters, ramUnit, hours }: RecommendQuestion): MaybePromise<Answer> =>
      whenThere(source.get(), (state) => {
        const { index } = state;
        const found: RecommendDocument = {
          recommendations: cheapestOfEach(index, filters).map((row) => {
            const machine = machineOfRow(index, row, undefined) as MachineFactsDocument;
            const price = decimal(machine.price) ?? '0';
            return {
              machine,
              hours: Number(hours),
              total: Number(Number(product(product(price, '60'), hours)).toPrecision(12)),
              computed: `${price} a minute × 60 × ${hours} hours`,
            };
          }),
          ram_unit: ramUnit,
          version: index.version,
        };
        return answer(state, filters, found);
      }),
  };
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

/** Answers of searches, as JSON. */

import type { MachineFactsDocument } from '../../domain/machine.ts';
import { decimal, product } from '../../domain/price.ts';
import { type Answer, type MaybePromise, whenThere } from '../../snapshot/document/answer.ts';
import { Body, hashOf } from '../../snapshot/document/body.ts';
import type { CatalogueIndex } from './catalogue-index.ts';
import {
  type Filters,
  isSameVersion,
  questionHash,
  type RamUnit,
  readCursor,
  type Sort,
  writeCursor,
} from './question.ts';
import { cheapestOfEach } from './recommend.ts';
import { search } from './search.ts';
import type { Searched } from './searchable.ts';
import { type MachineField, machineOfRow } from './shown.ts';

export interface SearchQuestion {
  readonly filters: Filters;
  readonly ramUnit: RamUnit;
  readonly sort: Sort;
  readonly limit: number;
  readonly cursor: string | undefined;
  /** Undefined for all. */
  readonly fields: readonly MachineField[] | undefined;
}

export interface RecommendQuestion {
  readonly filters: Filters;
  readonly ramUnit: RamUnit;
  /** A decimal. */
  readonly hours: string;
}

export interface SearchDocument {
  readonly machines: readonly Partial<MachineFactsDocument>[];
  readonly next: string | null;
  /** How the question counted memory. */
  readonly ram_unit: RamUnit;
  readonly version: string;
  readonly moved: boolean;
}

export interface RecommendDocument {
  readonly recommendations: readonly {
    readonly machine: MachineFactsDocument;
    readonly hours: number;
    /** To 12 significant digits: the price per minute is a rounded one already. */
    readonly total: number;
    readonly computed: string;
  }[];
  readonly ram_unit: RamUnit;
  readonly version: string;
}

/** What the API may ask of all machines together. Each method may reject with `Unavailable`. */
export interface SearchReader {
  /** Undefined where the cursor is none of this question. */
  search(question: SearchQuestion): MaybePromise<Answer | undefined>;
  recommend(question: RecommendQuestion): MaybePromise<Answer>;
}

export function searchReader(source: { get(): MaybePromise<Searched> }): SearchReader {
  return {
    search: ({ filters, ramUnit, sort, limit, cursor, fields }) =>
      whenThere(source.get(), (searched) => {
        const { index } = searched;
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
        return answer(searched, filters, found);
      }),

    recommend: ({ filters, ramUnit, hours }) =>
      whenThere(source.get(), (searched) => {
        const { index } = searched;
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
        return answer(searched, filters, found);
      }),
  };
}

function answer(searched: Searched, filters: Filters, document: unknown): Answer {
  const identity = Buffer.from(JSON.stringify(document));
  const body = new Body(identity, hashOf(identity), undefined);
  const { index, tier } = searched;
  const asOf = searched.asOf(placesOf(index, filters));
  return { body, tier, asOf, currency: index.regions[0]?.currency };
}

/** The regions that were searched. */
function placesOf({ regions, regionOf }: CatalogueIndex, filters: Filters): number[] {
  const asked = filters.regions?.flatMap((id) => regionOf.get(id) ?? []) ?? [...regions.keys()];
  const { providers } = filters;
  if (!providers) return asked;
  return asked.filter((place) => providers.includes(regions[place]?.provider.id ?? 0));
}

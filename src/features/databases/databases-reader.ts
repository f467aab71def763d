/** Answers from the plans of all regions in memory. */
import type { PublishedPlan } from '../../domain/database-plan.ts';
import { readCursor, writeCursor } from '../../http/protocol/page-cursor.ts';
import {
  type CatalogueIndex,
  type IndexedRegion,
  machineAmount,
  nodePrice,
  regionsIn,
  regionsOf,
  type SearchState,
  shownMonth,
} from '../../market/market.ts';
import { type Answer, type MaybePromise, whenThere } from '../../snapshot/document/answer.ts';
import { jsonBody } from '../../snapshot/document/body.ts';
import type { Documents } from '../../snapshot/read/documents.ts';
import { planPrices } from './queries.ts';
import type { DatabaseDocument, DatabasesDocument, DatabaseWithHistory, PlansQuestion } from './schema.ts';

export interface DatabasesOptions {
  readonly documents: Pick<Documents, 'postgres'>;
  readonly catalogue: { get(): MaybePromise<SearchState> };
}

export type DatabasesReader = ReturnType<typeof databasesReader>;

interface Row {
  readonly plan: PublishedPlan;
  /** In `regions` of the index. */
  readonly place: number;
  readonly price: number;
}

/** Its methods may reject with `Unavailable`. */
export function databasesReader({ documents, catalogue }: DatabasesOptions) {
  return {
    /** Returns undefined for a cursor of another question. */
    list: ({ limit, cursor, ...question }: PlansQuestion): MaybePromise<Answer | undefined> =>
      whenThere(catalogue.get(), (state) => {
        const after = cursor === undefined ? undefined : readCursor(question, cursor, 2)?.numbers;
        if (cursor !== undefined && !after) return undefined;
        const { index } = state;
        const places = placesOf(index, question);
        const page = pageOf(index, question, new Set(places), limit + 1, after);
        const rows = page.slice(0, limit);
        const last = page.length > limit ? rows.at(-1) : undefined;
        const document: DatabasesDocument = {
          databases: rows.map((row) => shown(index, row)),
          next: last ? writeCursor(question, [last.price, last.plan.id]) : null,
        };
        const ofRows = [...new Set(rows.map(({ place }) => place))];
        const readFrom = [ofRows, places].find(({ length }) => length > 0);
        // Without such a region, the sources of the providers may add one.
        return answer(state, readFrom ?? [...regionsOf(index, question.provider)], document);
      }),

    /** Returns undefined for an unknown id. */
    one: (id: number, withHistory: boolean, organizationId: number): MaybePromise<Answer | undefined> =>
      whenThere(catalogue.get(), (state) => {
        const row = rowsOf(state.index).find(({ plan }) => plan.id === id);
        if (!row) return undefined;
        const document: DatabaseWithHistory = shown(state.index, row);
        if (!withHistory) return answer(state, [row.place], document);
        const reading = documents.postgres((sql) => planPrices(sql, id), { organizationId });
        return reading.then((prices) => {
          const history = prices.map(({ price, ...times }) => {
            return { price: price === null ? null : Number(price), ...times };
          });
          return { ...answer(state, [row.place], { ...document, history }), tier: 'postgres' };
        });
      }),
  };
}

function answer(state: SearchState, places: readonly number[], document: unknown): Answer {
  const { index, tier } = state;
  return {
    body: jsonBody(document),
    tier,
    asOf: state.asOf(places),
    currency: index.regions[0]?.currency,
  };
}

/** All plans, the cheapest first. They are sorted once for each index. */
const sorted = new WeakMap<CatalogueIndex['regions'], readonly Row[]>();

function rowsOf({ regions }: CatalogueIndex): readonly Row[] {
  const known = sorted.get(regions);
  if (known) return known;
  const rows = regions.flatMap(({ databases = [] }, place) =>
    databases.map((plan) => ({ plan, place, price: Number(plan.price) })),
  );
  rows.sort((a, b) => a.price - b.price || a.plan.id - b.plan.id);
  sorted.set(regions, rows);
  return rows;
}

type PlanFilters = Omit<PlansQuestion, 'limit' | 'cursor'>;

/** @param after price and id of the last plan of the page before */
function pageOf(
  index: CatalogueIndex,
  { engine, min_cpu, min_ram, sort }: PlanFilters,
  places: ReadonlySet<number>,
  limit: number,
  after: readonly number[] | undefined,
): Row[] {
  const isDescending = sort === '-price';
  const all = rowsOf(index);
  const page: Row[] = [];
  for (let i = 0; i < all.length && page.length < limit; i++) {
    const row = all[isDescending ? all.length - 1 - i : i] as Row;
    const { plan, place } = row;
    if (after && !isBehind(row, after, isDescending)) continue;
    if (!places.has(place) || (engine && !engine.includes(plan.engine))) continue;
    if (min_cpu !== undefined && !(plan.cpu !== null && plan.cpu >= min_cpu)) continue;
    if (min_ram !== undefined && !(plan.ram !== null && plan.ram >= Number(min_ram))) continue;
    page.push(row);
  }
  return page;
}

function isBehind(
  { price, plan }: Row,
  [lastPrice = 0, lastId = 0]: readonly number[],
  isDescending: boolean,
): boolean {
  const order = price - lastPrice || plan.id - lastId;
  return isDescending ? order < 0 : order > 0;
}

/** Returns the regions that an answer is about, also those without a plan. */
function placesOf(index: CatalogueIndex, { region, provider, country, continent }: PlanFilters): number[] {
  const places = regionsIn(index, { regions: region, countries: country, continents: continent });
  const ofProviders = regionsOf(index, provider);
  return places.filter((place) => ofProviders.has(place));
}

function shown({ regions }: CatalogueIndex, { plan, place, price }: Row): DatabaseDocument {
  const { region, provider } = regions[place] as IndexedRegion;
  const { ramUnit: ram_unit, price: exact, ...rest } = plan;
  return { ...rest, ram_unit, price, price_per_month: perMonth(exact), provider, region };
}

/** Returns the price of a month, as for a machine without a cap. */
function perMonth(price: string): number {
  return shownMonth(machineAmount(nodePrice(price, null), 1).perMonth);
}

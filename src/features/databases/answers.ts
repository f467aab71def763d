/** Answers about plans of managed databases, from the index of all regions. */
import { type Database, databaseOn } from '../../db/connection/client.ts';
import { desc, eq, type SQL } from '../../db/connection/drizzle.ts';
import { rfc3339 } from '../../db/connection/statements.ts';
import { databasePlanPrices } from '../../db/schema.ts';
import { readCursor, writeCursor } from '../../http/protocol/page-cursor.ts';
import {
  type CatalogueIndex,
  findPlan,
  findPlans,
  type IndexedRegion,
  machineAmount,
  nodePrice,
  type PlanRow,
  type SearchState,
  shownMonth,
} from '../../market/market.ts';
import { type Answer, type MaybePromise, whenThere } from '../../snapshot/document/answer.ts';
import { jsonBody } from '../../snapshot/document/body.ts';
import type { Documents } from '../../snapshot/read/documents.ts';
import type { DatabaseDocument, DatabasesDocument, DatabaseWithHistory, PlansQuestion } from './schema.ts';

export interface DatabaseAnswersOptions {
  readonly documents: Pick<Documents, 'postgres'>;
  readonly catalogue: { get(): MaybePromise<SearchState> };
}

export type DatabaseAnswers = ReturnType<typeof databaseAnswers>;

/** Its methods may reject with `Unavailable`. */
export function databaseAnswers({ documents, catalogue }: DatabaseAnswersOptions) {
  return {
    /** Returns undefined for a cursor of another question. */
    list: ({ limit, cursor, ...question }: PlansQuestion): MaybePromise<Answer | undefined> =>
      whenThere(catalogue.get(), (state) => {
        const after = cursor === undefined ? undefined : readCursor(question, cursor, 2)?.numbers;
        if (cursor !== undefined && !after) return undefined;
        const { region, provider, country, continent, engine, min_cpu, min_ram, sort } = question;
        const filters = {
          ...{ regions: region, providers: provider, countries: country, continents: continent },
          engines: engine,
          minCpu: min_cpu,
          minRam: min_ram === undefined ? undefined : Number(min_ram),
        };
        const page = { isDescending: sort === '-price', limit, after };
        const { rows, hasMore, places } = findPlans(state.index, filters, page);
        const last = hasMore ? rows.at(-1) : undefined;
        const document: DatabasesDocument = {
          databases: rows.map((row) => planDocument(state.index, row)),
          next: last ? writeCursor(question, [last.price, last.plan.id]) : null,
        };
        return answer(state, places, document);
      }),

    /** Returns undefined for an unknown id. */
    one: (id: number, withHistory: boolean, organizationId: number): MaybePromise<Answer | undefined> =>
      whenThere(catalogue.get(), (state) => {
        const row = findPlan(state.index, id);
        if (!row) return undefined;
        const document: DatabaseWithHistory = planDocument(state.index, row);
        if (!withHistory) return answer(state, [row.place], document);
        const reading = documents.postgres((client) => planPrices(databaseOn(client), id), {
          organizationId,
        });
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

function planDocument({ regions }: CatalogueIndex, { plan, place, price }: PlanRow): DatabaseDocument {
  const { region, provider } = regions[place] as IndexedRegion;
  const { ramUnit: ram_unit, price: exact, ...rest } = plan;
  return { ...rest, ram_unit, price, price_per_month: perMonth(exact), provider, region };
}

/** Returns the price of a month, as for a machine without a cap. */
function perMonth(price: string): number {
  return shownMonth(machineAmount(nodePrice(price, null), 1).perMonth);
}

interface PlanPrice {
  readonly price: string | null;
  /** RFC 3339 with microseconds; `to` is null for the current one. */
  readonly from: string;
  readonly to: string | null;
}

/** Rows of a history that one answer may have. */
const ROWS_AT_MOST = 1000;

/** Returns the newest prices of a plan, the newest first. */
function planPrices(db: Database, planId: number): Promise<readonly PlanPrice[]> {
  const { price, validFrom, validTo } = databasePlanPrices;
  return db
    .select({
      price,
      from: rfc3339(validFrom, 'us') as SQL<string>,
      to: rfc3339(validTo, 'us'),
    })
    .from(databasePlanPrices)
    .where(eq(databasePlanPrices.planId, planId))
    .orderBy(desc(validFrom))
    .limit(ROWS_AT_MOST);
}

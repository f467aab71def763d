/** The market of a reader, and what features use of it. No other file of this folder is imported from outside. */

import type { PriceTerm } from '../domain/prices/term.ts';
import { type MaybePromise, whenThere } from '../snapshot/document/answer.ts';
import type { MemoryBudget } from '../snapshot/read/budget.ts';
import type { Sort } from './filters.ts';
import { PriceBooks, type PricedIndex } from './price-books.ts';
import { Searchable, type SearchableOptions, type SearchState } from './searchable.ts';

export {
  type CatalogueIndex,
  type IndexedRegion,
  selectedMachine,
} from './catalogue-index.ts';
export type { Needs } from './costs/bill.ts';
export { type Cheaper, cheaperMachines, MATCHES, type Ranked, type WantedSaving } from './costs/cheaper.ts';
export {
  type Amount,
  type ClusterCost,
  clusterCost,
  machineAmount,
  monthUnits,
  type NodePrice,
  nodePrice,
  nodePriceBy,
  PRICED_UNIT,
  shownAmount,
  shownMonth,
  shownTotal,
} from './costs/cost.ts';
export {
  type Marks,
  type PriceHistory,
  readMarks,
  readPriceHistory,
  type StoredCluster,
  type StoredMachine,
} from './costs/inputs.ts';
export {
  type CostOfCluster,
  type OneClusterInputs,
  type OrganizationCosts,
  type OrganizationInputs,
  organizationCosts,
  type PricedMachine,
  readAgain,
  readOneCluster,
  readOrganization,
  type SummedCluster,
  type Total,
} from './costs/organization.ts';
export {
  ASKED_PRICES,
  bookFor,
  keptPrice,
  NOW,
  type Price,
  type PriceQuestion,
  priceOf,
  REASONS,
} from './costs/prices.ts';
export {
  candidatesOfIndex,
  cheaperInRegion,
  comparedMachine,
  type PricedCandidate,
  type RegionCandidate,
  readCostsAndSavings,
} from './costs/savings.ts';
export { findPlan, findPlans, type PlanRow } from './database-plans.ts';
export { GIGABYTE } from './dictionary.ts';
export { type Filters, SORT_FIELDS, type Sort } from './filters.ts';
export {
  type FoundMachine,
  findMachine,
  MACHINE_FIELDS,
  type MachineField,
  machineOfRow,
} from './machines.ts';
export { firstWhere } from './order.ts';
export {
  entryOf,
  exactPriceOf,
  listPriceOf,
  PriceBooks,
  type PricedIndex,
} from './price-books.ts';
export { SearchUnavailable } from './read-regions.ts';
export { type Billed, recommended } from './recommend.ts';
export { rowsOfRegions } from './rows.ts';
export { search } from './search.ts';
export { Searchable, type SearchCounts, type SearchState } from './searchable.ts';
export { placesBehind } from './select.ts';

/** The machines, plans and prices that a reader answers searches from. The first search reads them. */
export interface Market {
  readonly catalogue: Searchable;
  readonly books: PriceBooks;
}

export interface MarketOptions extends Omit<SearchableOptions, 'memoryLimit' | 'onSize'> {
  readonly memory: Pick<MemoryBudget, 'documents' | 'search'>;
}

/** The most of the memory for documents that views of own prices take, next to the index. */
const VIEWS_OF_DOCUMENTS = 3 / 4;

export function openMarket({ memory, ...options }: MarketOptions): Market {
  const bytes = { index: 0, views: 0 };
  const onSize = (part: keyof typeof bytes) => (size: number) => {
    bytes[part] = size;
    options.documents.reserve(bytes.index + bytes.views);
  };
  return {
    catalogue: new Searchable({ ...options, memoryLimit: memory.search, onSize: onSize('index') }),
    books: new PriceBooks({
      documents: options.documents,
      memoryLimit: () => (memory.documents - bytes.index) * VIEWS_OF_DOCUMENTS,
      onSize: onSize('views'),
    }),
  };
}

/** What answers read of a market. */
export interface ReadableMarket {
  readonly catalogue: Pick<Searchable, 'get'>;
  readonly books: PriceBooks;
}

export interface PricedState {
  readonly state: SearchState;
  readonly priced: PricedIndex;
}

/**
 * Reads the index at the prices of a term, and of an organization's book. Rejects with `Unavailable`.
 * @param by the order that the answer needs
 */
export function readPriced(
  { catalogue, books }: ReadableMarket,
  { organizationId, term }: { readonly organizationId: number | undefined; readonly term: PriceTerm },
  by: Sort['by'],
): MaybePromise<PricedState> {
  return whenThere(books.entries(organizationId), (entries) =>
    whenThere(catalogue.get(), (state) =>
      whenThere(books.priced(state.index, term, books.book(entries, term), by), (priced) => ({
        state,
        priced,
      })),
    ),
  );
}

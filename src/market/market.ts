/** What features and the composition of readers use of the market. */
export {
  type CatalogueIndex,
  type IndexedRegion,
  indexedMachine,
  selectedMachine,
} from './catalogue-index.ts';
export { cheapestRows, type Grouping, listPriceOf } from './cheapest.ts';
export { type Bill, type BilledMachine, billOf, type Needs } from './costs/bill.ts';
export { type CostedCluster, costClusters, type KnownMachine } from './costs/cheaper-machines.ts';
export {
  type Amount,
  type ClusterCost,
  clusterCost,
  machineAmount,
  monthUnits,
  NOTHING,
  type NodePrice,
  nodePrice,
  nodePriceBy,
  PRICED_UNIT,
  shownAmount,
  shownMonth,
  shownTotal,
  sum,
} from './costs/cost.ts';
export {
  machinesNear,
  type OrganizationCluster,
  organizationClusters,
  type PastPrice,
  pastPrices,
} from './costs/organization-costs.ts';
export { GIGABYTE } from './dictionary.ts';
export { type Filters, SORT_FIELDS, type Sort } from './filters.ts';
export { type FoundMachine, findMachine, machineAt, ofTerm, rowOf } from './find-machine.ts';
export { firstWhere } from './order.ts';
export type { OwnPrices } from './own-prices.ts';
export { searchOwn } from './own-search.ts';
export { type Entries, NO_ENTRIES, type PriceBooks, priceBooks } from './price-books.ts';
export { SearchUnavailable } from './read-regions.ts';
export type { Rows } from './rows.ts';
export { search } from './search.ts';
export { Searchable, type SearchCounts, type SearchState } from './searchable.ts';
export { regionsIn, regionsOf } from './select.ts';
export { MACHINE_FIELDS, type MachineField, machineOfRow } from './shown.ts';

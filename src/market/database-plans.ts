/** Plans of managed databases: found in the index, and sorted once for each index. */
import type { PublishedPlan } from '../domain/database-plan.ts';
import type { CatalogueIndex } from './catalogue-index.ts';
import type { Filters } from './filters.ts';
import { regionsIn, regionsOf } from './select.ts';

export interface PlanRow {
  readonly plan: PublishedPlan;
  /** In `regions` of the index. */
  readonly place: number;
  readonly price: number;
}

export interface PlanFilters extends Pick<Filters, 'providers' | 'regions' | 'countries' | 'continents'> {
  readonly engines: readonly string[] | undefined;
  /** Of one node. A plan that does not state it does not match. */
  readonly minCpu: number | undefined;
  readonly minRam: number | undefined;
}

export interface PlanPage {
  readonly isDescending: boolean;
  readonly limit: number;
  /** Price and id of the last plan of the page before. */
  readonly after: readonly number[] | undefined;
}

export interface FoundPlans {
  readonly rows: readonly PlanRow[];
  /** True if another plan fits. */
  readonly hasMore: boolean;
  /** The regions whose data the page depends on. */
  readonly places: readonly number[];
}

/** Returns plans in the order of price and id. */
export function findPlans(index: CatalogueIndex, filters: PlanFilters, page: PlanPage): FoundPlans {
  const { engines, minCpu, minRam } = filters;
  const { isDescending, limit, after } = page;
  const ofProviders = regionsOf(index, filters.providers);
  const places = regionsIn(index, filters).filter((place) => ofProviders.has(place));
  const isPlace = new Set(places);
  const all = sortedPlans(index);
  const rows: PlanRow[] = [];
  for (let i = 0; i < all.length && rows.length <= limit; i++) {
    const row = all[isDescending ? all.length - 1 - i : i] as PlanRow;
    const { plan, place } = row;
    if (after && !isBehind(row, after, isDescending)) continue;
    if (!isPlace.has(place) || (engines && !engines.includes(plan.engine))) continue;
    if (minCpu !== undefined && !(plan.cpu !== null && plan.cpu >= minCpu)) continue;
    if (minRam !== undefined && !(plan.ram !== null && plan.ram >= minRam)) continue;
    rows.push(row);
  }
  const found = rows.slice(0, limit);
  const ofRows = [...new Set(found.map(({ place }) => place))];
  // Without such a region, the sources of the providers may add one.
  const behind = [ofRows, places].find(({ length }) => length > 0) ?? [...ofProviders];
  return { rows: found, hasMore: rows.length > limit, places: behind };
}

export function findPlan(index: CatalogueIndex, id: number): PlanRow | undefined {
  return sortedPlans(index).find(({ plan }) => plan.id === id);
}

const sorted = new WeakMap<CatalogueIndex['regions'], readonly PlanRow[]>();

/** Returns all plans, the cheapest first. */
function sortedPlans({ regions }: CatalogueIndex): readonly PlanRow[] {
  const known = sorted.get(regions);
  if (known) return known;
  const rows = regions.flatMap(({ databases = [] }, place) =>
    databases.map((plan) => ({ plan, place, price: Number(plan.price) })),
  );
  rows.sort((a, b) => a.price - b.price || a.plan.id - b.plan.id);
  sorted.set(regions, rows);
  return rows;
}

function isBehind(
  { price, plan }: PlanRow,
  [lastPrice = 0, lastId = 0]: readonly number[],
  isDescending: boolean,
): boolean {
  const order = price - lastPrice || plan.id - lastId;
  return isDescending ? order < 0 : order > 0;
}

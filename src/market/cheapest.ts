/** The machines that cost least for some hours. Monthly caps change the order of prices, so the scan tests every row that fits. */

import { MINUTES_PER_MONTH } from '../domain/prices/price.ts';
import { amountOf } from '../snapshot/document/columns.ts';
import type { CatalogueIndex } from './catalogue-index.ts';
import type { Filters } from './filters.ts';
import { firstWhere } from './order.ts';
import { select } from './select.ts';

export interface Grouping {
  /** Groups are numbered from 0 to before `count`. Rows of one group differ by the cost of the machine alone. */
  readonly count: number;
  groupOf(row: number): number;
  /** The wanted rows of each group. */
  readonly most: number;
}

const MINUTES_PER_HOUR = 60;
/** A cost in doubles is nearer than this to the exact one. */
const RELATIVE_ERROR = 1e-9;

/** Returns rows with the cheapest ones of each group among them: costs that are nearly equal are for the caller to compare. */
export function cheapestRows(
  index: CatalogueIndex,
  filters: Filters,
  hours: number,
  { count, groupOf, most }: Grouping,
): number[] {
  const { types: typeOf, regions: regionOf } = index.rows;
  const { first, end, types, regions } = select(index, filters);
  const costOf = nearCost(index, hours);
  const isTwin = twins(index);
  const groups = Array.from({ length: count }, () => new Cheapest(most, isTwin));
  for (let row = first; row < end; row++) {
    if (regions[regionOf[row] as number] !== 1 || types[typeOf[row] as number] !== 1) continue;
    groups[groupOf(row)]?.add(row, costOf(row));
  }
  return groups.flatMap((group) => group.rows());
}

/** Returns the most that a month of a machine costs; undefined if that is not limited. */
export function capOf({ caps }: CatalogueIndex, place: number, id: number): number | undefined {
  const ofRegion = caps[place];
  return ofRegion && amountOf(ofRegion, id);
}

/** Returns a function that calculates the cost of a row in doubles. */
function nearCost(index: CatalogueIndex, hours: number): (row: number) => number {
  const { prices, regions, ids } = index.rows;
  const minutes = hours * MINUTES_PER_HOUR;
  const months = Math.floor(minutes / MINUTES_PER_MONTH);
  const rest = minutes - months * MINUTES_PER_MONTH;
  return (row) => {
    const price = prices[row] as number;
    const cap = capOf(index, regions[row] as number, ids[row] as number);
    return cap === undefined
      ? price * minutes
      : months * Math.min(cap, price * MINUTES_PER_MONTH) + Math.min(cap, price * rest);
  };
}

/** Returns a function that is true for two rows whose exact costs are equal because all that they are calculated from is. */
function twins(index: CatalogueIndex) {
  const { prices, regions, ids } = index.rows;
  const cap = (row: number) => capOf(index, regions[row] as number, ids[row] as number);
  return (a: number, b: number): boolean => prices[a] === prices[b] && cap(a) === cap(b);
}

/** The cheapest rows of a group, and those that cost about as much as the last of them. */
class Cheapest {
  readonly #most: number;
  readonly #isTwin: (a: number, b: number) => boolean;
  /** The lowest costs, ascending. */
  readonly #lowest: number[] = [];
  readonly #found: { readonly row: number; readonly cost: number }[] = [];
  #bound = Number.POSITIVE_INFINITY;

  constructor(most: number, isTwin: (a: number, b: number) => boolean) {
    this.#most = most;
    this.#isTwin = isTwin;
  }

  add(row: number, cost: number): void {
    if (cost > this.#bound) return;
    this.#found.push({ row, cost });
    const lowest = this.#lowest;
    lowest.splice(
      firstWhere(0, lowest.length, (place) => (lowest[place] as number) > cost),
      0,
      cost,
    );
    if (lowest.length > this.#most) lowest.pop();
    if (lowest.length === this.#most) this.#bound = (lowest[this.#most - 1] as number) * (1 + RELATIVE_ERROR);
  }

  /** Returns the rows in their order. Of twins it has the first ones. */
  rows(): number[] {
    const near = this.#found.filter(({ cost }) => cost <= this.#bound);
    const kept: number[] = [];
    const twinsOf = new Map<number, number[]>();
    for (const { row, cost } of near) {
      const alike = twinsOf.get(cost) ?? [];
      twinsOf.set(cost, alike);
      if (alike.filter((other) => this.#isTwin(row, other)).length >= this.#most) continue;
      alike.push(row);
      kept.push(row);
    }
    return kept;
  }
}

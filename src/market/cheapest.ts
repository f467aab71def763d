/** The machines that cost least for some hours. Monthly caps change the order of prices, so the scan tests every row that fits. */

import { MINUTES_PER_MONTH } from '../domain/prices/price.ts';
import type { PriceTerm } from '../domain/prices/term.ts';
import { amountOf, type ById } from '../snapshot/document/column-terms.ts';
import type { CatalogueIndex } from './catalogue-index.ts';
import { type NodePrice, nodePrice, nodePriceBy } from './costs/cost.ts';
import type { Filters } from './filters.ts';
import { firstWhere } from './order.ts';
import type { OwnPrices } from './own-prices.ts';
import { select } from './select.ts';

export interface Costing {
  /** The term of the index's prices. */
  readonly term: PriceTerm;
  readonly hours: number;
  /** Undefined: list prices. */
  readonly own: OwnPrices | undefined;
}

export interface Grouping {
  /** Groups are numbered from 0 to before `count`. Rows of one group differ by the cost of the machine alone. */
  readonly count: number;
  groupOf(row: number): number;
  /** The wanted rows of each group. */
  readonly most: number;
}

const MINUTES_PER_HOUR = 60;
/** A cost in doubles is nearer than this to the exact one, and than this for each minute: own prices have 15 places. */
const RELATIVE_ERROR = 1e-9;
const ERROR_PER_MINUTE = 1e-15;

/** Returns rows with the cheapest ones of each group among them: costs that are nearly equal are for the caller to compare. */
export function cheapestRows(
  index: CatalogueIndex,
  filters: Filters,
  costing: Costing,
  { count, groupOf, most }: Grouping,
): number[] {
  const { types: typeOf, regions: regionOf } = index.rows;
  const { first, end, types, regions } = select(index, filters);
  const costOf = nearCost(index, costing);
  const isTwin = twins(index, costing);
  const error = costing.hours * MINUTES_PER_HOUR * ERROR_PER_MINUTE;
  const groups = Array.from({ length: count }, () => new Cheapest(most, error, isTwin));
  for (let row = first; row < end; row++) {
    if (regions[regionOf[row] as number] !== 1 || types[typeOf[row] as number] !== 1) continue;
    groups[groupOf(row)]?.add(row, costOf(row));
  }
  return groups.flatMap((group) => group.rows());
}

/** Returns the list price of a row of the index, with its monthly cap on demand. */
export function listPriceOf(index: CatalogueIndex, row: number, term: PriceTerm): NodePrice {
  return nodePrice(index.rows.prices[row] as number, capsOf(index, term)(row));
}

function capsOf({ rows, regions }: CatalogueIndex, term: PriceTerm): (row: number) => number | undefined {
  const ofRegions = regions.map(({ terms }): ById | undefined =>
    term === 'on_demand' && terms && terms.caps.ids.length > 0 ? terms.caps : undefined,
  );
  return (row) => {
    const caps = ofRegions[rows.regions[row] as number];
    return caps && amountOf(caps, rows.ids[row] as number);
  };
}

/** Returns a function that calculates the cost of a row in doubles. */
function nearCost(index: CatalogueIndex, { term, hours, own }: Costing): (row: number) => number {
  const { prices } = index.rows;
  const capOf = capsOf(index, term);
  const minutes = hours * MINUTES_PER_HOUR;
  const months = Math.floor(minutes / MINUTES_PER_MONTH);
  const rest = minutes - months * MINUTES_PER_MONTH;
  const costOf = (price: number, cap: number | undefined) =>
    cap === undefined
      ? price * minutes
      : months * Math.min(cap, price * MINUTES_PER_MONTH) + Math.min(cap, price * rest);
  return (row) => {
    if (!own?.singled.has(row)) return costOf(prices[row] as number, capOf(row)) * (own?.share(row) ?? 1);
    const { price, monthlyCap } = nodePriceBy(listPriceOf(index, row, term), own.entryOf(row));
    return costOf(Number(price), monthlyCap === null ? undefined : Number(monthlyCap));
  };
}

/** Returns a function that is true for two rows whose exact costs are equal because all that they are calculated from is. */
function twins({ rows, ...index }: CatalogueIndex, { term, own }: Costing) {
  const capOf = capsOf({ rows, ...index }, term);
  return (a: number, b: number): boolean =>
    rows.prices[a] === rows.prices[b] &&
    capOf(a) === capOf(b) &&
    (!own || (!own.singled.has(a) && !own.singled.has(b) && own.share(a) === own.share(b)));
}

/** The cheapest rows of a group, and those that cost about as much as the last of them. */
class Cheapest {
  readonly #most: number;
  readonly #error: number;
  readonly #isTwin: (a: number, b: number) => boolean;
  /** The lowest costs, ascending. */
  readonly #lowest: number[] = [];
  readonly #found: { readonly row: number; readonly cost: number }[] = [];
  #bound = Number.POSITIVE_INFINITY;

  constructor(most: number, error: number, isTwin: (a: number, b: number) => boolean) {
    this.#most = most;
    this.#error = error;
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
    if (lowest.length === this.#most)
      this.#bound = (lowest[this.#most - 1] as number) * (1 + RELATIVE_ERROR) + 2 * this.#error;
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

/** Searches by own prices. They have no stored order, so the scan tests rows and keeps the best ones. */
import type { CatalogueIndex } from './catalogue-index.ts';
import type { Filters, Position, Sort } from './filters.ts';
import { firstWhere, keyOf } from './order.ts';
import type { OwnPrices } from './own-prices.ts';
import type { SearchResult } from './search.ts';
import { type Selection, select } from './select.ts';

/** A row with its key in the order, its own price and its id. */
interface PricedRow extends Position {
  readonly row: number;
}

/** The exact price is near its double: it is rounded to 15 places. The scan computes it only for rows that may be among the best. */
const RELATIVE_ERROR = 1e-12;
const ABSOLUTE_ERROR = 1e-15;
const below = (price: number): number => price * (1 - RELATIVE_ERROR) - ABSOLUTE_ERROR;
const above = (price: number): number => price * (1 + RELATIVE_ERROR) + ABSOLUTE_ERROR;

export function searchOwn(
  index: CatalogueIndex,
  own: OwnPrices,
  { maxPrice = Infinity, ...filters }: Filters,
  { by, descending }: Sort,
  limit: number,
  after?: Position,
): Omit<SearchResult, 'tested'> {
  const { rows } = index;
  const { prices, ids } = rows;
  const isFit = fitting(index, select(index, filters));
  const dear = firstDear(index, own, maxPrice);
  const isPriced = by !== 'cpu' && by !== 'ram';
  const size = sizeOf(index, by);
  const exact = exactPrice(index, own);
  const sign = descending ? -1 : 1;
  const best = new Best(limit + 1, (a, b) => sign * (a.key - b.key) || a.price - b.price || a.id - b.id);
  const take = (row: number) => {
    const price = exact(row);
    if (price > maxPrice) return;
    const key = isPriced ? price / size(row) : size(row);
    const found = { row, key, price, id: ids[row] as number };
    if (!after || best.compare(found, after) > 0) best.add(found);
  };
  /** Returns true if the row, at about this price, is before the page or behind the worst of a full page. */
  const isOut = (row: number, price: number): boolean => {
    const [low, high] = [below(price), above(price)];
    const { worst } = best;
    if (low > maxPrice) return true;
    if (isPriced) {
      const [lowKey, highKey] = [low / size(row), high / size(row)];
      if (descending) return lowKey > (after?.key ?? Infinity) || highKey < (worst?.key ?? -Infinity);
      return highKey < (after?.key ?? -Infinity) || lowKey > (worst?.key ?? Infinity);
    }
    const key = size(row);
    const isBefore = after && (sign * (key - after.key) || high - after.price) < 0;
    return isBefore || (worst !== undefined && (sign * (key - worst.key) || low - worst.price) > 0);
  };
  /** Returns true if no row from this one on can be among the best, in the order of list prices. */
  const isOver = (row: number): boolean => {
    const { worst } = best;
    if (!worst) return false;
    // Rows of one size are in the order of list prices.
    if (!isPriced)
      return (sign * (size(row) - worst.key) || below((prices[row] as number) * own.least) - worst.price) > 0;
    const key = (prices[row] as number) / size(row);
    return descending ? above(key) < worst.key : below(key * own.least) > worst.key;
  };
  for (const row of own.singled) if (isFit(row)) take(row);
  const order = by === 'price' ? undefined : rows.orders[by];
  const rowAt = (place: number) => (order ? (order[place] as number) : place);
  /** Returns true if the scan is over. */
  const scan = (from: number, to: number, step: 1 | -1): boolean => {
    for (let place = from; place !== to; place += step) {
      const row = rowAt(place);
      if (isOver(row)) return true;
      if (row >= dear || !isFit(row) || own.singled.has(row)) continue;
      if (!isOut(row, (prices[row] as number) * own.share(row))) take(row);
    }
    return false;
  };
  const end = order ? rows.count : dear;
  if (!descending) scan(0, end, 1);
  else if (isPriced) scan(end - 1, -1, -1);
  else {
    // From the largest size down, but the rows of one size from the cheapest.
    for (let to = end; to > 0; ) {
      const largest = size(rowAt(to - 1));
      const from = firstWhere(0, to, (place) => size(rowAt(place)) >= largest);
      if (scan(from, to, 1)) break;
      to = from;
    }
  }
  const found = best.all.slice(0, limit);
  return { rows: found.map(({ row }) => row), next: best.all.length > limit ? found.at(-1) : undefined };
}

/** Returns a row. It and all later rows cost more than the limit, apart from singled ones. */
function firstDear({ rows }: CatalogueIndex, own: OwnPrices, maxPrice: number): number {
  return firstWhere(0, rows.count, (row) => below((rows.prices[row] as number) * own.least) > maxPrice);
}

function fitting({ rows }: CatalogueIndex, { first, end, types, regions }: Selection) {
  const { types: typeOf, regions: regionOf } = rows;
  return (row: number): boolean =>
    row >= first && row < end && regions[regionOf[row] as number] === 1 && types[typeOf[row] as number] === 1;
}

function sizeOf({ rows, kindOf, dictionary }: CatalogueIndex, by: Sort['by']): (row: number) => number {
  if (by === 'price') return () => 1;
  const isCpu = by === 'cpu' || by === 'price_per_cpu';
  return keyOf(isCpu ? 'cpu' : 'ram', { ...rows, kindOf, kinds: dictionary.kinds });
}

/** Returns a function that remembers its last result: neighbours often have one list price and one share. */
function exactPrice({ rows: { prices } }: CatalogueIndex, own: OwnPrices): (row: number) => number {
  const last = { list: Number.NaN, share: Number.NaN, price: Number.NaN };
  return (row) => {
    const list = prices[row] as number;
    if (own.singled.has(row)) return own.priceOf(row) ?? list;
    const share = own.share(row);
    if (share === 1) return list;
    if (list !== last.list || share !== last.share)
      Object.assign(last, { list, share, price: own.priceOf(row) ?? list });
    return last.price;
  };
}

/** The best rows, the best one first. */
class Best {
  readonly all: PricedRow[] = [];
  readonly compare: (a: Position, b: Position) => number;
  readonly #most: number;

  constructor(most: number, compare: (a: Position, b: Position) => number) {
    this.#most = most;
    this.compare = compare;
  }

  /** The worst row if there is no room for a further one. */
  get worst(): PricedRow | undefined {
    return this.all[this.#most - 1];
  }

  add(found: PricedRow): void {
    if (this.worst && this.compare(found, this.worst) > 0) return;
    const isBehind = (place: number) => this.compare(this.all[place] as PricedRow, found) >= 0;
    this.all.splice(firstWhere(0, this.all.length, isBehind), 0, found);
    if (this.all.length > this.#most) this.all.pop();
  }
}

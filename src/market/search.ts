/** Scans the order of the sort key until the page is full. See docs/decisions/0082. */
import type { CatalogueIndex } from './catalogue-index.ts';
import type { Filters, Position, Sort } from './filters.ts';
import { firstWhere, keyOf } from './order.ts';
import type { Rows } from './rows.ts';
import { type Selection, select } from './select.ts';

export interface SearchResult {
  readonly rows: readonly number[];
  /** The position of the last row; undefined if no further row fits. */
  readonly next: Position | undefined;
  readonly tested: number;
}

export function search(
  index: CatalogueIndex,
  filters: Filters,
  sort: Sort,
  limit: number,
  after?: Position,
): SearchResult {
  const places = placesOf(index, select(index, filters), sort.by);
  const { from, to, rowAt, key, nextFit } = places;
  const rows: number[] = [];
  let tested = 0;
  /** Takes the rows that fit. Returns true if the page is full and another row fits. */
  const take = (start: number, end: number): boolean => {
    let place = nextFit(start, end, 1);
    for (; place < end && rows.length < limit; place = nextFit(place + 1, end, 1)) rows.push(rowAt(place));
    tested += place - start;
    return place < end;
  };
  /** Takes from the highest key down, but the rows of one key from the first to the last. */
  const takeFalling = (): boolean => {
    if (run && take(run.next, run.end)) return true;
    for (let end = run?.start ?? to; ; ) {
      const last = nextFit(end - 1, from - 1, -1);
      tested += end - 1 - last;
      if (last < from) return false;
      end = runStart(places, last);
      if (take(end, last + 1)) return true;
    }
  };
  const run = after && runOf(index.rows, places, after);
  const hasMore = sort.descending ? takeFalling() : take(run?.next ?? from, to);
  const last = rows.at(-1);
  if (!hasMore || last === undefined) return { rows, next: undefined, tested };
  const next = {
    key: key(last),
    price: index.rows.prices[last] as number,
    id: index.rows.ids[last] as number,
  };
  return { rows, next, tested };
}

/** The places of an order from `from` to before `to`. They have all rows that fit. */
interface Places {
  readonly from: number;
  readonly to: number;
  rowAt(place: number): number;
  key(row: number): number;
  /** Returns the first place from `start` to before `stop` whose row fits, in steps of 1 or -1; `stop` for none. */
  nextFit(start: number, stop: number, step: 1 | -1): number;
}

function placesOf(
  { rows, kindOf, dictionary }: CatalogueIndex,
  selection: Selection,
  by: Sort['by'],
): Places {
  const { first, end, kinds } = selection;
  const key = keyOf(by, { ...rows, kindOf, kinds: dictionary.kinds });
  const order = by === 'price' ? undefined : rows.orders[by];
  if (by !== 'price' && !order) throw new Error(`unreachable: the rows have no order by ${by}`);
  const rowAt = (place: number) => (order ? (order[place] as number) : place);
  const nextFit = (start: number, stop: number, step: 1 | -1) =>
    nextFitting(rows, selection, order, start, stop, step);
  if (!order) return { from: first, to: Math.max(first, end), rowAt, key, nextFit };
  // The key of a kind rises with the price, so its first and last rows have its lowest and highest key.
  const lowest = kinds.reduce((least, kind) => Math.min(least, key(kind.first)), Infinity);
  const highest = kinds.reduce((most, kind) => Math.max(most, key(kind.last)), -Infinity);
  const from = firstWhere(0, rows.count, (place) => key(rowAt(place)) >= lowest);
  const to = firstWhere(from, rows.count, (place) => key(rowAt(place)) > highest);
  return { from, to, rowAt, key, nextFit };
}

/** The scan. It may test every row, so it uses only numbers and arrays. */
function nextFitting(
  { types: typeOf, regions: regionOf }: Rows,
  { first, end, types, regions }: Selection,
  order: Uint32Array | undefined,
  start: number,
  stop: number,
  step: 1 | -1,
): number {
  for (let place = start; place !== stop; place += step) {
    const row = order ? (order[place] as number) : place;
    if (row < first || row >= end) continue;
    // The region first: its lookup is cheaper and more selective.
    if (regions[regionOf[row] as number] === 1 && types[typeOf[row] as number] === 1) return place;
  }
  return stop;
}

function runOf({ prices, ids, count }: Rows, { from, to, rowAt, key }: Places, after: Position) {
  const isAfter = (row: number) =>
    (prices[row] as number) > after.price || (prices[row] === after.price && (ids[row] as number) > after.id);
  const rowAfter = firstWhere(0, count, isAfter);
  const start = firstWhere(from, to, (place) => key(rowAt(place)) >= after.key);
  const end = firstWhere(start, to, (place) => key(rowAt(place)) > after.key);
  return { start, end, next: firstWhere(start, end, (place) => rowAt(place) >= rowAfter) };
}

function runStart({ from, rowAt, key }: Places, place: number): number {
  const runKey = key(rowAt(place));
  let step = 1;
  while (place - step >= from && key(rowAt(place - step)) === runKey) step *= 2;
  return firstWhere(Math.max(from, place - step), place, (at) => key(rowAt(at)) === runKey);
}

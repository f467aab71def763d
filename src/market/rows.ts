/**
 * Machines as rows, in the order of price and id, with one sorted order for each other sort key. Pure. Long work is a
 * generator that yields every few thousand rows, so that the event loop runs other work in between.
 */
import type { ProviderKind } from './dictionary.ts';
import { firstWhere, keyOf } from './order.ts';

/** Rows in columns. `regions` has places in the index's list of regions. */
export interface Columns {
  readonly prices: Float64Array;
  readonly ids: Uint32Array;
  readonly types: Uint32Array;
  readonly regions: Uint32Array;
}

/** The first and last row of each type or region. The first is `NO_ROW` for none. */
export interface Spans {
  readonly first: Uint32Array;
  readonly last: Uint32Array;
}

/** The sort keys other than price. Rows themselves are in the order of price. */
export const SORTED_BY = ['price_per_cpu', 'price_per_ram', 'cpu', 'ram'] as const;
export type SortedBy = (typeof SORTED_BY)[number];

export interface Rows extends Columns {
  readonly count: number;
  /** Rows lack the orders that nothing has needed. Those of the index have all of them. */
  readonly orders: { readonly [By in SortedBy]?: Uint32Array };
  readonly ofType: Spans;
  readonly ofRegion: Spans;
  /** By a machine's id: its row plus one, or 0 for none. Ids are dense, so this takes about four bytes a machine. */
  readonly byId: Uint32Array;
}

/** Returns the bytes of rows: their columns, their place by id, and that in each order. */
export function rowsBytes({ count, orders, byId }: Pick<Rows, 'count' | 'orders' | 'byId'>): number {
  return count * (8 + 4 + 4 + 4 + 4 * Object.keys(orders).length) + byId.byteLength;
}

export const NO_ROW = 0xffff_ffff;

/** Rows of a step: some tenths of a millisecond. */
const ROWS_PER_STEP = 4096;
/** Numbers of a copy in one step. */
const COPIED_PER_STEP = 65_536;
/** Rows whose prices are calculated, or whose places are searched, in one step: each takes a microsecond. */
const PRICES_PER_STEP = 256;

/** Returns columns without values. The system may have to clear the memory of each, which takes a millisecond for a million rows. */
export function* emptyColumns(count: number): Generator<void, Columns> {
  const prices = new Float64Array(count);
  yield;
  const ids = new Uint32Array(count);
  yield;
  const types = new Uint32Array(count);
  yield;
  const regions = new Uint32Array(count);
  yield;
  return { prices, ids, types, regions };
}

const spans = (count: number): Spans => ({
  first: new Uint32Array(count).fill(NO_ROW),
  last: new Uint32Array(count),
});

const NO_ORDER = new Uint32Array(0);
export const NO_ROWS: Rows = {
  prices: new Float64Array(0),
  ids: NO_ORDER,
  types: NO_ORDER,
  regions: NO_ORDER,
  count: 0,
  orders: { price_per_cpu: NO_ORDER, price_per_ram: NO_ORDER, cpu: NO_ORDER, ram: NO_ORDER },
  ofType: spans(0),
  ofRegion: spans(0),
  byId: new Uint32Array(0),
};
export const NO_UNORDERED_ROWS: Rows = { ...NO_ROWS, orders: {} };

/** Returns the rows with spans for this many types and regions. New ones have no rows. */
export function withSpans(rows: Rows, types: number, regions: number): Rows {
  const grown = (before: Spans, count: number): Spans => {
    if (before.first.length === count) return before;
    const after = spans(count);
    after.first.set(before.first);
    after.last.set(before.last);
    return after;
  };
  return { ...rows, ofType: grown(rows.ofType, types), ofRegion: grown(rows.ofRegion, regions) };
}

/** Returns the row of a machine. */
export function rowOf({ byId }: Pick<Rows, 'byId'>, id: number): number | undefined {
  const row = byId[id] ?? 0;
  return row === 0 ? undefined : row - 1;
}

export interface Change {
  /** The rows of the changed regions: one region after the other, each in the order of price and id. */
  readonly incoming: Columns;
  readonly isChanged: Uint8Array;
  readonly kindOf: Uint32Array;
  readonly kinds: readonly ProviderKind[];
}

/** Replaces the rows of the changed regions. The rows get the orders that they had before. */
export function* mergeRows(
  before: Rows,
  { incoming, isChanged, kindOf, kinds }: Change,
): Generator<void, Rows> {
  const sorted = yield* numbers(incoming.ids.length);
  yield* sortRuns(sorted, (i, j) => isBefore(incoming, j, incoming, i));
  let left = 0;
  for (let row = 0; row < before.count; row++) {
    if (isChanged[before.regions[row] as number] !== 1) left += 1;
    if (row % ROWS_PER_STEP === 0) yield;
  }
  const count = left + sorted.length;
  const columns = yield* emptyColumns(count);
  const [ofType, ofRegion] = [spans(kindOf.length), spans(isChanged.length)];
  // The row after the change plus one, or 0 for a removed one: an array without zeros would have to be filled at once.
  const moved = new Uint32Array(before.count);
  yield;
  const added = new Uint32Array(sorted.length);
  const byId = new Uint32Array(Math.max(before.byId.length, (yield* highest(incoming.ids)) + 1));
  yield;
  let [old, next] = [0, 0];
  for (let row = 0; row < count; row++) {
    while (old < before.count && isChanged[before.regions[old] as number] === 1) old += 1;
    const coming = sorted[next] as number;
    const isOld = old < before.count && (next === sorted.length || isBefore(before, old, incoming, coming));
    if (isOld) {
      copyRow(before, old, columns, row);
      moved[old++] = row + 1;
    } else {
      copyRow(incoming, coming, columns, row);
      added[next++] = row;
    }
    byId[columns.ids[row] as number] = row + 1;
    extend(ofType, columns.types[row] as number, row);
    extend(ofRegion, columns.regions[row] as number, row);
    if (row % ROWS_PER_STEP === 0) yield;
  }
  const orders: { [By in SortedBy]?: Uint32Array } = {};
  for (const by of SORTED_BY) {
    const order = before.orders[by];
    if (order) orders[by] = yield* mergeOrder(order, moved, added, keyOf(by, { ...columns, kindOf, kinds }));
  }
  return { ...columns, count, orders, ofType, ofRegion, byId };
}

/** Returns the rows with another order. */
export function* withOrder(
  rows: Rows,
  by: SortedBy,
  { kindOf, kinds }: Pick<Change, 'kindOf' | 'kinds'>,
): Generator<void, Rows> {
  const all = yield* numbers(rows.count);
  const order = yield* mergeOrder(NO_ORDER, NO_ORDER, all, keyOf(by, { ...rows, kindOf, kinds }));
  return { ...rows, orders: { ...rows.orders, [by]: order } };
}

/** Returns the rows of the marked regions, in their order. */
export function* rowsOfRegions({ count, regions }: Rows, isMarked: Uint8Array): Generator<void, Uint32Array> {
  const found = new Uint32Array(count);
  yield;
  let marked = 0;
  for (let row = 0; row < count; row++) {
    if (isMarked[regions[row] as number] === 1) found[marked++] = row;
    if (row % ROWS_PER_STEP === 0) yield;
  }
  return found.subarray(0, marked);
}

/**
 * Returns a view of rows: the same machines in the order of another price.
 * @param before the view before the change
 * @param rows `changed` has those of the changed regions
 * @param priceOf returns the price of such a row; undefined if the view lacks the machine
 */
export function* mergeView(
  before: Rows,
  rows: Rows,
  changed: Uint32Array,
  change: Omit<Change, 'incoming'>,
  priceOf: (row: number) => number | undefined,
): Generator<void, Rows> {
  const incoming = yield* emptyColumns(changed.length);
  let count = 0;
  for (let i = 0; i < changed.length; i++) {
    const row = changed[i] as number;
    const price = priceOf(row);
    if (i % PRICES_PER_STEP === 0) yield;
    if (price === undefined) continue;
    copyRow(rows, row, incoming, count);
    incoming.prices[count++] = price;
  }
  const { prices, ids, types, regions } = incoming;
  return yield* mergeRows(before, {
    ...change,
    incoming: {
      prices: prices.subarray(0, count),
      ids: ids.subarray(0, count),
      types: types.subarray(0, count),
      regions: regions.subarray(0, count),
    },
  });
}

/** Returns the numbers from 0 to before `count`. */
function* numbers(count: number): Generator<void, Uint32Array> {
  const found = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    found[i] = i;
    if (i % COPIED_PER_STEP === 0) yield;
  }
  return found;
}

/** Returns the highest of the ids; -1 for none. */
function* highest(ids: Uint32Array): Generator<void, number> {
  let most = -1;
  for (let i = 0; i < ids.length; i++) {
    most = Math.max(most, ids[i] as number);
    if (i % ROWS_PER_STEP === 0) yield;
  }
  return most;
}

function isBefore(a: Columns, i: number, b: Columns, j: number): boolean {
  const [one, other] = [a.prices[i] as number, b.prices[j] as number];
  return one < other || (one === other && (a.ids[i] as number) < (b.ids[j] as number));
}

function copyRow(from: Columns, i: number, to: Columns, row: number): void {
  to.prices[row] = from.prices[i] as number;
  to.ids[row] = from.ids[i] as number;
  to.types[row] = from.types[i] as number;
  to.regions[row] = from.regions[i] as number;
}

function extend({ first, last }: Spans, of: number, row: number): void {
  if (first[of] === NO_ROW) first[of] = row;
  last[of] = row;
}

function* mergeOrder(
  before: Uint32Array,
  moved: Uint32Array,
  added: Uint32Array,
  key: (row: number) => number,
): Generator<void, Uint32Array> {
  const remaining = new Uint32Array(before.length);
  yield;
  let count = 0;
  for (let i = 0; i < before.length; i++) {
    const row = moved[before[i] as number] as number;
    if (row !== 0) remaining[count++] = row - 1;
    if (i % ROWS_PER_STEP === 0) yield;
  }
  const keys = new Float64Array(added.length);
  for (let i = 0; i < added.length; i++) {
    keys[i] = key(added[i] as number);
    if (i % ROWS_PER_STEP === 0) yield;
  }
  const coming = yield* numbers(added.length);
  yield* sortRuns(coming, (i, j) => {
    const [one, other] = [keys[i] as number, keys[j] as number];
    return one > other || (one === other && i > j);
  });
  const order = new Uint32Array(count + added.length);
  yield;
  let [old, at] = [0, 0];
  for (let i = 0; i < coming.length; i++) {
    const place = coming[i] as number;
    const row = added[place] as number;
    const rowKey = keys[place] as number;
    const end = firstWhere(old, count, (other) => {
      const otherRow = remaining[other] as number;
      const otherKey = key(otherRow);
      return otherKey > rowKey || (otherKey === rowKey && otherRow > row);
    });
    for (; old < end; old++) {
      order[at++] = remaining[old] as number;
      if (at % ROWS_PER_STEP === 0) yield;
    }
    order[at++] = row;
    if (i % PRICES_PER_STEP === 0) yield;
  }
  yield* copy(remaining, order, at, old, count);
  return order;
}

/** Sorts by merging sorted runs in pairs until one is left. */
function* sortRuns(order: Uint32Array, isAfter: (i: number, j: number) => boolean): Generator<void, void> {
  const scratch = new Uint32Array(order.length);
  let ends: number[] = [];
  for (let i = 1; i <= order.length; i++) {
    if (i === order.length || isAfter(order[i - 1] as number, order[i] as number)) ends.push(i);
    if (i % ROWS_PER_STEP === 0) yield;
  }
  while (ends.length > 1) {
    const merged: number[] = [];
    let from = 0;
    for (let run = 0; run < ends.length; run += 2) {
      const middle = ends[run] as number;
      const to = ends[run + 1] ?? middle;
      let [left, right] = [from, middle];
      for (let at = from; at < to; at++) {
        const takesRight =
          left === middle || (right < to && isAfter(order[left] as number, order[right] as number));
        scratch[at] = order[takesRight ? right++ : left++] as number;
        if (at % ROWS_PER_STEP === 0) yield;
      }
      merged.push(to);
      from = to;
    }
    yield* copy(scratch, order, 0, 0, order.length);
    ends = merged;
  }
}

/** Copies the numbers from `start` to before `end`. */
function* copy(
  from: Uint32Array,
  to: Uint32Array,
  at: number,
  start: number,
  end: number,
): Generator<void, void> {
  for (let next = start; next < end; next += COPIED_PER_STEP) {
    to.set(from.subarray(next, Math.min(end, next + COPIED_PER_STEP)), at + next - start);
    yield;
  }
}

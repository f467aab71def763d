/**
 * Machines as rows, in the order of their group, price and id, and how rows of some regions are put in the place of
 * others. Pure. What takes long is a generator that yields every few thousand rows, so that others get a turn.
 */

/** Rows in columns. `regions` has places in the index's list of regions. */
export interface Columns {
  readonly prices: Float64Array;
  readonly ids: Uint32Array;
  readonly types: Uint32Array;
  readonly regions: Uint32Array;
}

/** Row numbers by something, each in the order of the rows; those of the i-th start at `starts[i]`. */
export interface Postings {
  readonly rows: Uint32Array;
  readonly starts: Uint32Array;
}

export interface Rows extends Columns {
  readonly count: number;
  /** The rows of group g are those from `groupStarts[g]` to before `groupStarts[g + 1]`. */
  readonly groupStarts: Uint32Array;
  readonly byType: Postings;
  readonly byRegion: Postings;
}

/** Bytes of a row: its columns, and its place in two postings. */
export const BYTES_PER_ROW = 8 + 4 + 4 + 4 + 4 + 4;

/** Rows between two turns: some tenths of a millisecond. */
const ROWS_PER_TURN = 8192;

export function emptyColumns(count: number): Columns {
  return {
    prices: new Float64Array(count),
    ids: new Uint32Array(count),
    types: new Uint32Array(count),
    regions: new Uint32Array(count),
  };
}

const NO_POSTINGS: Postings = { rows: new Uint32Array(0), starts: new Uint32Array(1) };
export const NO_ROWS: Rows = {
  ...emptyColumns(0),
  count: 0,
  groupStarts: new Uint32Array(1),
  byType: NO_POSTINGS,
  byRegion: NO_POSTINGS,
};

export interface Change {
  /** The rows of the regions that changed, one region after the other, each in the order of price and id. */
  readonly incoming: Columns;
  /** By region: 1 where what was there goes. */
  readonly isChanged: Uint8Array;
  /** By type: its group. */
  readonly groupOf: Uint32Array;
  readonly groups: number;
  readonly types: number;
  readonly regions: number;
}

/** The rows of before, with those of the changed regions in the place of what these had. */
export function* mergeRows(before: Rows, change: Change): Generator<void, Rows> {
  const { incoming, isChanged, groupOf, groups } = change;
  const { order, starts } = yield* sortedByGroup(incoming, groupOf, groups);
  let left = 0;
  for (const [i, region] of before.regions.entries()) {
    if (isChanged[region] !== 1) left += 1;
    if (i % ROWS_PER_TURN === 0) yield;
  }
  const count = left + order.length;
  const merged = emptyColumns(count);
  const groupStarts = new Uint32Array(groups + 1);
  let at = 0;
  const take = (from: Columns, i: number) => {
    merged.prices[at] = from.prices[i] as number;
    merged.ids[at] = from.ids[i] as number;
    merged.types[at] = from.types[i] as number;
    merged.regions[at] = from.regions[i] as number;
    at += 1;
  };
  for (let group = 0; group < groups; group++) {
    groupStarts[group] = at;
    let old = before.groupStarts[group] ?? before.count;
    const oldEnd = before.groupStarts[group + 1] ?? before.count;
    let next = starts[group] as number;
    const nextEnd = starts[group + 1] as number;
    while (old < oldEnd || next < nextEnd) {
      if (old < oldEnd && isChanged[before.regions[old] as number] === 1) {
        old += 1;
        continue;
      }
      const added = order[next] as number;
      const isOld = old < oldEnd && (next === nextEnd || isBefore(before, old, incoming, added));
      if (isOld) take(before, old++);
      else {
        take(incoming, added);
        next += 1;
      }
      if (at % ROWS_PER_TURN === 0) yield;
    }
  }
  groupStarts[groups] = at;
  const byType = yield* postings(merged.types, change.types);
  const byRegion = yield* postings(merged.regions, change.regions);
  return { ...merged, count, groupStarts, byType, byRegion };
}

function isBefore(a: Columns, i: number, b: Columns, j: number): boolean {
  const [one, other] = [a.prices[i] as number, b.prices[j] as number];
  return one < other || (one === other && (a.ids[i] as number) < (b.ids[j] as number));
}

/** Row numbers in the order of group, price and id, and where each group starts. */
function* sortedByGroup(
  columns: Columns,
  groupOf: Uint32Array,
  groups: number,
): Generator<void, { order: Uint32Array; starts: Uint32Array }> {
  const found = yield* postings(columns.types, groups, groupOf);
  const { rows: order } = found;
  const scratch = new Uint32Array(order.length);
  for (let group = 0; group < groups; group++) {
    const [start, end] = [found.starts[group] as number, found.starts[group + 1] as number];
    yield* sortRuns(columns, order, scratch, start, end);
    if (group % 64 === 0) yield;
  }
  return { order, starts: found.starts };
}

/** Merges the runs that are in order already, two and two, until one is left. Each region is a run at the most. */
function* sortRuns(
  columns: Columns,
  order: Uint32Array,
  scratch: Uint32Array,
  start: number,
  end: number,
): Generator<void, void> {
  const isAfter = (i: number, j: number) => isBefore(columns, j, columns, i);
  let ends: number[] = [];
  for (let i = start + 1; i <= end; i++)
    if (i === end || isAfter(order[i - 1] as number, order[i] as number)) ends.push(i);
  while (ends.length > 1) {
    const merged: number[] = [];
    let from = start;
    for (let run = 0; run < ends.length; run += 2) {
      const middle = ends[run] as number;
      const to = ends[run + 1] ?? middle;
      let [left, right] = [from, middle];
      for (let at = from; at < to; at++) {
        const takesRight =
          left === middle || (right < to && isAfter(order[left] as number, order[right] as number));
        scratch[at] = order[takesRight ? right++ : left++] as number;
        if (at % ROWS_PER_TURN === 0) yield;
      }
      merged.push(to);
      from = to;
    }
    order.set(scratch.subarray(start, end), start);
    ends = merged;
  }
}

/**
 * Rows by a column, by counting.
 * @param kinds how many values there are
 * @param through maps the column's values to those that are counted; the values themselves unless given
 */
function* postings(column: Uint32Array, kinds: number, through?: Uint32Array): Generator<void, Postings> {
  const starts = new Uint32Array(kinds + 1);
  const countedAs = (row: number): number => {
    const value = column[row] as number;
    return through ? (through[value] as number) : value;
  };
  for (let row = 0; row < column.length; row++) {
    const value = countedAs(row) + 1;
    starts[value] = (starts[value] as number) + 1;
    if (row % ROWS_PER_TURN === 0) yield;
  }
  for (let i = 1; i <= kinds; i++) starts[i] = (starts[i] as number) + (starts[i - 1] as number);
  const next = starts.slice();
  const rows = new Uint32Array(column.length);
  for (let row = 0; row < column.length; row++) {
    const value = countedAs(row);
    const place = next[value] as number;
    rows[place] = row;
    next[value] = place + 1;
    if (row % ROWS_PER_TURN === 0) yield;
  }
  return { rows, starts };
}

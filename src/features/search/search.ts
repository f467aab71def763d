/**
 * Answers a search from the index. The first machines of each group that fits are merged; where most of their rows are of
 * other regions or names, the rows of these regions or names are looked at instead. See docs/decisions/0050.
 */
import type { CatalogueIndex } from './catalogue-index.ts';
import { firstWhere, GroupCursor, groupFits, type Order, orderOf } from './order.ts';
import type { Filters, Position, Sort } from './question.ts';

export interface SearchResult {
  /** Row numbers, in the order asked for. */
  readonly rows: readonly number[];
  /** The place behind the last of them; undefined where nothing follows. */
  readonly next: Position | undefined;
  /** Rows that were looked at. */
  readonly looked: number;
}

/** Rows of so few are looked at one by one, sooner than that groups are merged. */
const FEW_ROWS = 4096;
/** Rows that a merge may pass over because their region or name is another one; then those that fit are looked for. */
const PASSED_AT_MOST = 16_384;

/** @param limit most machines of the answer, 1 or more */
export function search(
  index: CatalogueIndex,
  filters: Filters,
  sort: Sort,
  limit: number,
  after?: Position,
): SearchResult {
  const asked = select(index, filters);
  const order = orderOf(sort);
  const { candidates } = asked;
  const isFew = candidates !== undefined && candidates.count <= FEW_ROWS;
  const merged = isFew ? 0 : merge(index, asked, order, limit, after);
  const page = typeof merged === 'object' ? merged : look(index, asked, order, limit, after);
  const inVain = typeof merged === 'object' ? 0 : merged;
  return { rows: page.rows, looked: page.looked + inVain, next: positionOf(index, order, page) };
}

/** Rows in order, and whether more follow. */
interface Page {
  readonly rows: readonly number[];
  readonly hasMore: boolean;
  readonly looked: number;
}

function positionOf(index: CatalogueIndex, order: Order, { rows, hasMore }: Page): Position | undefined {
  const last = rows.at(-1);
  if (!hasMore || last === undefined) return undefined;
  const { prices, ids, types } = index.rows;
  const group = index.dictionary.groups[index.groupOf[types[last] as number] as number];
  if (!group) throw new Error('unreachable: every type has a group');
  const price = prices[last] as number;
  const divisor = order.divisor(group);
  const key = divisor === undefined ? order.constant(group) : price / divisor;
  return { key, price, id: ids[last] as number };
}

/** What of the index may fit. */
export interface Selection {
  /** Groups that fit, each with its rows that are not too dear. */
  readonly groups: readonly { readonly group: number; readonly first: number; readonly end: number }[];
  /** Whether a row of such a group fits; undefined where every one does. */
  readonly fits: ((row: number) => boolean) | undefined;
  /** Rows among which are all that fit, where those are named by region or type; the fewer of the two. */
  readonly candidates: Candidates | undefined;
}

interface Candidates {
  readonly count: number;
  rows(): Iterable<Uint32Array>;
}

export function select(index: CatalogueIndex, filters: Filters): Selection {
  const { rows, dictionary, groupOf } = index;
  const { maxPrice, name, minDisk } = filters;
  const isInRegion = filters.regions && regionsOf(index, filters.regions);
  const isGroup = groupFits(filters, providersOf(index, filters, isInRegion));
  const groups: { group: number; first: number; end: number }[] = [];
  const endOf = new Uint32Array(index.groups);
  for (let group = 0; group < index.groups; group++) {
    const first = rows.groupStarts[group] as number;
    let end = rows.groupStarts[group + 1] as number;
    const of = dictionary.groups[group];
    if (first === end || !of || !isGroup(of)) continue;
    if (maxPrice !== undefined)
      end = firstWhere(first, end, (row) => (rows.prices[row] as number) > maxPrice);
    if (first === end) continue;
    groups.push({ group, first, end });
    endOf[group] = end;
  }
  const isOfType = name === undefined && minDisk === undefined ? undefined : typesOf(index, filters);
  if (!isInRegion && !isOfType) return { groups, fits: undefined, candidates: undefined };
  const fits = (row: number): boolean => {
    if (isInRegion && isInRegion.is[rows.regions[row] as number] !== 1) return false;
    const type = rows.types[row] as number;
    if (isOfType && isOfType.is[type] !== 1) return false;
    return row < (endOf[groupOf[type] as number] as number);
  };
  const named = isOfType && candidatesOf(rows.byType, isOfType.places);
  const placed = isInRegion && candidatesOf(rows.byRegion, isInRegion.places);
  const candidates = named && (!placed || named.count <= placed.count) ? named : placed;
  return { groups, fits, candidates };
}

interface Chosen {
  /** By place: 1 where it is chosen. */
  readonly is: Uint8Array;
  readonly places: readonly number[];
}

function regionsOf({ regions, regionOf }: CatalogueIndex, ids: readonly number[]): Chosen {
  const is = new Uint8Array(regions.length);
  const places = [...new Set(ids)].flatMap((id) => regionOf.get(id) ?? []);
  for (const place of places) is[place] = 1;
  return { is, places };
}

/** The providers whose machines may fit; undefined for all. */
function providersOf(
  { regions }: CatalogueIndex,
  { providers }: Filters,
  isInRegion: Chosen | undefined,
): ReadonlySet<number> | undefined {
  const asked = providers && new Set(providers);
  if (!isInRegion) return asked;
  const there = new Set(isInRegion.places.flatMap((place) => regions[place]?.provider.id ?? []));
  return asked ? asked.intersection(there) : there;
}

function typesOf(index: CatalogueIndex, { name, minDisk }: Filters): Chosen {
  const is = new Uint8Array(index.types);
  const places: number[] = [];
  for (const type of name === undefined ? is.keys() : typesNamed(index, name)) {
    const disk = index.dictionary.types[type]?.kind.localDisk ?? 0;
    if (minDisk !== undefined && disk < minDisk) continue;
    is[type] = 1;
    places.push(type);
  }
  return { is, places };
}

/** The types whose name holds the text. */
function* typesNamed({ names, types }: CatalogueIndex, name: string): Generator<number> {
  const { text, starts } = names;
  const part = name.toLowerCase();
  let type = -1;
  for (let at = text.indexOf(part); at !== -1; ) {
    while (type + 1 < types && (starts[type + 1] as number) <= at) type += 1;
    yield type;
    // One name may hold it more than once.
    at = type + 1 < types ? text.indexOf(part, starts[type + 1]) : -1;
  }
}

function candidatesOf(
  { rows, starts }: CatalogueIndex['rows']['byType'],
  places: readonly number[],
): Candidates {
  const range = (place: number) => [starts[place] as number, starts[place + 1] as number] as const;
  return {
    count: places.reduce((sum, place) => sum + (starts[place + 1] as number) - (starts[place] as number), 0),
    rows: () => Iterator.from(places).map((place) => rows.subarray(...range(place))),
  };
}

/** The first rows of all groups together, or how many were looked at in vain. */
function merge(
  index: CatalogueIndex,
  { groups, fits }: Selection,
  order: Order,
  limit: number,
  after: Position | undefined,
): Page | number {
  const { ids, prices } = index.rows;
  let looked = 0;
  let passed = 0;
  /** Goes on to the next row that fits. */
  const advance = (cursor: GroupCursor, isThere: boolean): boolean => {
    let found = isThere;
    while (found && fits && !fits(cursor.row)) {
      passed += 1;
      if (passed > PASSED_AT_MOST) return false;
      found = cursor.next();
    }
    return found;
  };
  const heap: GroupCursor[] = [];
  for (const { group, first, end } of groups) {
    const of = index.dictionary.groups[group];
    if (!of) continue;
    const cursor = new GroupCursor(index, order, of, first, end);
    if (advance(cursor, cursor.start(ids, after))) heap.push(cursor);
    if (passed > PASSED_AT_MOST) return passed;
  }
  const isBefore = (a: GroupCursor, b: GroupCursor): boolean => {
    if (a.key !== b.key) return a.key < b.key;
    const [one, other] = [prices[a.row] as number, prices[b.row] as number];
    return one < other || (one === other && (ids[a.row] as number) < (ids[b.row] as number));
  };
  const siftDown = (from: number) => {
    const cursor = heap[from] as GroupCursor;
    let place = from;
    for (let child = 2 * place + 1; child < heap.length; child = 2 * place + 1) {
      if (child + 1 < heap.length && isBefore(heap[child + 1] as GroupCursor, heap[child] as GroupCursor))
        child += 1;
      if (!isBefore(heap[child] as GroupCursor, cursor)) break;
      heap[place] = heap[child] as GroupCursor;
      place = child;
    }
    heap[place] = cursor;
  };
  for (let i = (heap.length >> 1) - 1; i >= 0; i--) siftDown(i);
  const rows: number[] = [];
  while (passed <= PASSED_AT_MOST) {
    const cursor = heap[0];
    if (!cursor || rows.length === limit)
      return { rows, hasMore: cursor !== undefined, looked: looked + passed };
    rows.push(cursor.row);
    looked += 1;
    if (!advance(cursor, cursor.next())) {
      const last = heap.pop() as GroupCursor;
      if (last === cursor) continue;
      heap[0] = last;
    }
    siftDown(0);
  }
  return looked + passed;
}

/** The first of the rows that fit, of which each is looked at. */
function look(
  index: CatalogueIndex,
  { groups, fits, candidates }: Selection,
  order: Order,
  limit: number,
  after: Position | undefined,
): Page {
  const { ids, prices, types } = index.rows;
  const { sign } = order;
  const divisors = new Float64Array(index.groups);
  const constants = new Float64Array(index.groups);
  for (const { group } of groups) {
    const of = index.dictionary.groups[group];
    if (!of) continue;
    const divisor = order.divisor(of);
    divisors[group] = divisor ?? 0;
    if (divisor === undefined) constants[group] = sign * order.constant(of);
  }
  const keyOf = (row: number): number => {
    const group = index.groupOf[types[row] as number] as number;
    const divisor = divisors[group] as number;
    return divisor === 0 ? (constants[group] as number) : (sign * (prices[row] as number)) / divisor;
  };
  const best = new Best(limit + 1, (a, b) => {
    const [one, other] = [keyOf(a), keyOf(b)];
    if (one !== other) return one - other;
    return (prices[a] as number) - (prices[b] as number) || (ids[a] as number) - (ids[b] as number);
  });
  const isBehind = (row: number): boolean => {
    if (!after) return true;
    const [key, signed] = [keyOf(row), sign * after.key];
    if (key !== signed) return key > signed;
    const price = prices[row] as number;
    return price > after.price || (price === after.price && (ids[row] as number) > after.id);
  };
  let looked = 0;
  for (const rows of candidates?.rows() ?? []) {
    looked += rows.length;
    for (const row of rows) if ((!fits || fits(row)) && isBehind(row)) best.add(row);
  }
  const rows = best.sorted();
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit, looked };
}

/** Keeps the first few of all rows that it is given: a heap whose root is the last of them. */
class Best {
  readonly #most: number;
  readonly #compare: (a: number, b: number) => number;
  readonly #heap: number[] = [];

  constructor(most: number, compare: (a: number, b: number) => number) {
    this.#most = most;
    this.#compare = compare;
  }

  add(row: number): void {
    const heap = this.#heap;
    if (heap.length < this.#most) {
      heap.push(row);
      if (heap.length === this.#most) heap.sort((a, b) => this.#compare(b, a));
      return;
    }
    if (this.#compare(row, heap[0] as number) >= 0) return;
    let place = 0;
    for (let child = 1; child < heap.length; child = 2 * place + 1) {
      const right = child + 1;
      if (right < heap.length && this.#compare(heap[right] as number, heap[child] as number) > 0)
        child = right;
      if (this.#compare(heap[child] as number, row) <= 0) break;
      heap[place] = heap[child] as number;
      place = child;
    }
    heap[place] = row;
  }

  sorted(): number[] {
    return this.#heap.toSorted(this.#compare);
  }
}

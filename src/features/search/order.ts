/**
 * The rows of a group in the order that a search asks for. Within a group every order is that of the price, rising or
 * falling: cpu and memory are the same for all of its rows. So a place in it is found by halving.
 */
import type { CatalogueIndex } from './catalogue-index.ts';
import type { Group } from './dictionary.ts';
import type { Filters, Position, Sort } from './question.ts';

/** How rows are compared: by `sign` × key, then price, then id, all rising. */
export interface Order {
  /** 1, or -1 where the key falls. */
  readonly sign: 1 | -1;
  /** What a price is divided by, for the key; undefined where the key is the same for all rows of a group. */
  divisor(group: Group): number | undefined;
  /** The key of all rows of the group. */
  constant(group: Group): number;
}

export function orderOf({ by, descending }: Sort): Order {
  const divisors = {
    price: () => 1,
    price_per_cpu: ({ cpu }: Group) => cpu,
    price_per_ram: ({ ramBytes }: Group) => ramBytes,
    cpu: () => undefined,
    ram: () => undefined,
  };
  return {
    sign: descending ? -1 : 1,
    divisor: divisors[by],
    constant: by === 'cpu' ? ({ cpu }) => cpu : ({ ramBytes }) => ramBytes,
  };
}

/** The first of `from`, …, `to` - 1 at which `isAtOrBehind` holds, which holds for all that follow; `to` for none. */
export function firstWhere(from: number, to: number, isAtOrBehind: (row: number) => boolean): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isAtOrBehind(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Whether a group has what is asked for, as far as all of its rows are alike. */
export function groupFits(filters: Filters, providers: ReadonlySet<number> | undefined) {
  const { minCpu = 0, maxCpu = Infinity, minRam = 0, maxRam = Infinity } = filters;
  const { minRamPerCpu = 0, maxRamPerCpu = Infinity, architecture, cpuKind, withSoldOut } = filters;
  return (group: Group): boolean => {
    const { cpu } = group;
    const ram = (filters.isRamAsSold ? group.ram : group.ramBytes) * 1000;
    return (
      (withSoldOut || !group.isSoldOut) &&
      cpu >= minCpu &&
      cpu <= maxCpu &&
      ram >= minRam &&
      ram <= maxRam &&
      ram >= minRamPerCpu * cpu &&
      ram <= maxRamPerCpu * cpu &&
      (architecture === undefined || group.architecture === architecture) &&
      (cpuKind === undefined || group.cpuKind === cpuKind) &&
      (providers?.has(group.providerId) ?? true)
    );
  };
}

/** Goes through some rows of one group in order. */
export class GroupCursor {
  /** Of the row that it is at; `sign` × what the order's key is. */
  key = 0;
  row = -1;
  readonly #prices: Float64Array;
  readonly #first: number;
  readonly #end: number;
  readonly #sign: 1 | -1;
  readonly #divisor: number | undefined;
  /** Rows of the same key, which are gone through from the first on, also where keys fall. */
  #runStart: number;
  #runEnd: number;

  /** The rows from `first` to before `end`. It is at none of them yet. */
  constructor(index: CatalogueIndex, order: Order, group: Group, first: number, end: number) {
    this.#prices = index.rows.prices;
    this.#first = first;
    this.#end = end;
    this.#sign = order.sign;
    this.#divisor = order.divisor(group);
    const falls = this.#divisor !== undefined && order.sign === -1;
    this.#runStart = falls ? end : first;
    this.#runEnd = falls ? end : first;
    if (this.#divisor === undefined) this.key = order.sign * order.constant(group);
  }

  /** Goes to the first row behind a position. @returns false when there is none */
  start(ids: Uint32Array, after: Position | undefined): boolean {
    if (!after) return this.next();
    const [prices, sign, divisor] = [this.#prices, this.#sign, this.#divisor];
    const isBehind = (row: number) =>
      (prices[row] as number) > after.price ||
      (prices[row] === after.price && (ids[row] as number) > after.id);
    const signed = sign * after.key;
    if (divisor === undefined) {
      if (this.key < signed) return false;
      this.row = this.key > signed ? this.#first : firstWhere(this.#first, this.#end, isBehind);
      return this.row < this.#end;
    }
    const keyOf = (row: number) => (prices[row] as number) / divisor;
    const runStart = firstWhere(this.#first, this.#end, (row) => keyOf(row) >= after.key);
    const runEnd = firstWhere(runStart, this.#end, (row) => keyOf(row) > after.key);
    const row = firstWhere(runStart, runEnd, isBehind);
    if (sign === 1) {
      this.row = row - 1;
      return this.#nextRising();
    }
    [this.#runStart, this.#runEnd] = [runStart, runEnd];
    this.row = row - 1;
    return this.#nextFalling();
  }

  /** Goes to the next row. @returns false when there is none */
  next(): boolean {
    if (this.row === -1) this.row = this.#runStart - 1;
    if (this.#divisor === undefined) {
      this.row += 1;
      return this.row < this.#end;
    }
    return this.#sign === 1 ? this.#nextRising() : this.#nextFalling();
  }

  #nextRising(): boolean {
    this.row += 1;
    if (this.row >= this.#end) return false;
    this.key = (this.#prices[this.row] as number) / (this.#divisor as number);
    return true;
  }

  #nextFalling(): boolean {
    const divisor = this.#divisor as number;
    const keyOf = (row: number) => (this.#prices[row] as number) / divisor;
    this.row += 1;
    if (this.row >= this.#runEnd) {
      if (this.#runStart === this.#first) return false;
      this.#runEnd = this.#runStart;
      const key = keyOf(this.#runEnd - 1);
      this.#runStart = firstWhere(this.#first, this.#runEnd, (row) => keyOf(row) >= key);
      this.row = this.#runStart;
    }
    this.key = -keyOf(this.row);
    return true;
  }
}

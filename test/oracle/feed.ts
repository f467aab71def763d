/** The states of an upstream, in order. */

export interface State<T> {
  readonly rows: ReadonlyMap<string, T>;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** True if a worker read it, so that it may be published. */
  wasServed: boolean;
}

export class Feed<T> {
  readonly states: State<T>[];

  constructor(rows: ReadonlyMap<string, T>) {
    this.states = [{ rows, since: Date.now(), wasServed: false }];
  }

  get newest(): number {
    return this.states.length - 1;
  }

  get rows(): ReadonlyMap<string, T> {
    return this.at(this.newest).rows;
  }

  at(index: number): State<T> {
    const state = this.states[index];
    if (!state) throw new RangeError(`there is no state ${index}`);
    return state;
  }

  /** Adds a state with another row; undefined removes the row. */
  set(key: string, row: T | undefined): void {
    const rows = new Map(this.rows);
    if (row === undefined) rows.delete(key);
    else rows.set(key, row);
    this.states.push({ rows, since: Date.now(), wasServed: false });
  }

  /** Serves the newest state. Returns its index. */
  serve(): number {
    this.at(this.newest).wasServed = true;
    return this.newest;
  }

  /** Returns the state at an instant, in milliseconds since the epoch. Of two in one millisecond, the earlier. */
  inForceAt(instant: number): number {
    return Math.max(
      0,
      this.states.findLastIndex(({ since }) => since < instant),
    );
  }

  /** Returns the last served state up to `index` that has the row; -1 for none. */
  lastWith(key: string, index: number): number {
    return this.states.slice(0, index + 1).findLastIndex(({ rows, wasServed }) => wasServed && rows.has(key));
  }
}

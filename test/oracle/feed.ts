/** What an upstream says, state after state. */

export interface State<T> {
  readonly rows: ReadonlyMap<string, T>;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Somebody has read it: it may have become true. */
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

  /** From now on the upstream says this of one row; undefined takes the row away. */
  set(key: string, row: T | undefined): void {
    const rows = new Map(this.rows);
    if (row === undefined) rows.delete(key);
    else rows.set(key, row);
    this.states.push({ rows, since: Date.now(), wasServed: false });
  }

  /** Hands out the newest state. */
  serve(): number {
    this.at(this.newest).wasServed = true;
    return this.newest;
  }

  /** The state that was in force at an instant, in milliseconds since the epoch. Of two within one, the earlier. */
  inForceAt(instant: number): number {
    return Math.max(
      0,
      this.states.findLastIndex(({ since }) => since < instant),
    );
  }

  /** The last state up to `index` that somebody has read and that has the row; -1 for none. */
  lastWith(key: string, index: number): number {
    return this.states.slice(0, index + 1).findLastIndex(({ rows, wasServed }) => wasServed && rows.has(key));
  }
}

/** Detects whether a database is still in its lineage's history, or went back to an earlier state. */

export interface HistoryState {
  readonly lineage: string;
  /** `database_identity()` at the start of the lineage; null until the first publication. */
  readonly began: string | null;
  /** `database_identity()` now; null on a standby. */
  readonly identity: string | null;
  /** Bytes of WAL that are safely written; null if the server does not report them, and on a standby. */
  readonly written: number | null;
}

/** The farthest known state of a lineage's database. */
export interface HistoryMark {
  readonly lineage: string;
  readonly identity: string;
  readonly written: number;
}

/**
 * - `another database`: e.g. a restored dump, a copy, a recovery to a point in time or a promoted standby;
 * - `earlier state`: the same database with less WAL than before, e.g. from a backup of its files.
 */
export type Loss = 'another database' | 'earlier state';

export interface CheckedHistory extends HistoryState {
  /** Why the lineage is not valid any more; undefined while it is. */
  readonly loss: Loss | undefined;
  /** A standby that has not received the next lineage yet: ignore its state. */
  readonly isLate: boolean;
}

/** Returns the mark of a lineage that other processes stored, e.g. in the cache. It never rejects. */
export type SharedMark = (lineage: string) => Promise<HistoryMark | undefined>;

export class KnownHistory {
  #mark: HistoryMark | undefined;
  #lineage: string | undefined;
  /**
   * Lineages that another one followed, and lineages that were seen in an earlier state. The latter stay lost: other rows soon
   * write as much WAL as was lost.
   */
  readonly #ended = new Set<string>();

  get mark(): HistoryMark | undefined {
    return this.#mark;
  }

  /** Checks the state. It takes the known mark first: PostgreSQL has at least that much, unless it went back. */
  async check(read: () => Promise<HistoryState>, sharedMark: SharedMark): Promise<CheckedHistory> {
    let known = this.#mark && farther(this.#mark, await sharedMark(this.#mark.lineage));
    let state = await read();
    if (known?.lineage !== state.lineage) {
      known = await sharedMark(state.lineage);
      // This mark may be newer than the state.
      if (known && lossOf(known, state) === 'earlier state') state = await read();
    }
    const hasEnded = this.#ended.has(state.lineage);
    const isLate = hasEnded && state.identity === null;
    const loss = hasEnded && !isLate ? 'earlier state' : lossOf(known, state);
    if (loss === 'earlier state') this.#ended.add(state.lineage);
    if (loss === undefined && !isLate) this.#advance(state, known);
    return { ...state, loss, isLate };
  }

  #advance(state: HistoryState, known: HistoryMark | undefined): void {
    if (this.#lineage !== undefined && this.#lineage !== state.lineage) this.#ended.add(this.#lineage);
    this.#lineage = state.lineage;
    // Of two concurrent checks, the one that began first may end last.
    this.#mark = farther(farther(markOf(state), known), this.#mark);
  }
}

/** @param known a mark of any lineage, from before the state was read */
function lossOf(known: HistoryMark | undefined, state: HistoryState): Loss | undefined {
  const { lineage, began, identity, written } = state;
  if (identity === null) return undefined;
  if (began !== null && !isSameDatabase(began, identity)) return 'another database';
  if (!known || known.lineage !== lineage || !isSameDatabase(known.identity, identity)) return undefined;
  return written !== null && written < known.written ? 'earlier state' : undefined;
}

/** Compares identities by the parts that both have; `-` is a part that a server does not reveal. */
export function isSameDatabase(a: string, b: string): boolean {
  const others = b.split(' ');
  return a.split(' ').every((part, i) => part === others[i] || part === '-' || others[i] === '-');
}

function markOf({ lineage, identity, written }: HistoryState): HistoryMark | undefined {
  return identity === null || written === null ? undefined : { lineage, identity, written };
}

function farther(a: HistoryMark | undefined, b: HistoryMark | undefined): HistoryMark | undefined {
  if (!a || !b || a.lineage !== b.lineage) return a ?? b;
  return b.written > a.written ? b : a;
}

export function markText({ written, identity }: HistoryMark): string {
  return `${written} ${identity}`;
}

export function readMark(lineage: string, text: string | null | undefined): HistoryMark | undefined {
  const [, written, identity] = /^(\d{1,15}) (\S+(?: \S+)*)$/.exec(text ?? '') ?? [];
  return written && identity ? { lineage, identity, written: Number(written) } : undefined;
}

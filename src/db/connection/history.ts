/** Whether a database is still in the history that it was in, or has gone back to an earlier state. */

/** What PostgreSQL says of it at one instant. */
export interface HistoryLook {
  /** The lineage's id. */
  readonly lineage: string;
  /** The identity of the database in which the lineage began; null until something is published under it. */
  readonly began: string | null;
  /** The identity of the database that was asked, see `database_identity()`; null of a standby. */
  readonly identity: string | null;
  /** Bytes of log that are safely written; null where the server does not say, and of a standby. */
  readonly written: number | null;
}

/** How far a lineage's database was known to be. */
export interface HistoryMark {
  readonly lineage: string;
  readonly identity: string;
  /** Bytes of log, as `HistoryLook` has them. */
  readonly written: number;
}

/**
 * - `another database`: not the one in which the lineage began: a dump that was restored, a copy, a recovery to a point in
 *   time, a standby that was promoted;
 * - `earlier state`: the same, with less log than it had: its files were put back.
 */
export type Loss = 'another database' | 'earlier state';

export interface SeenHistory extends HistoryLook {
  /** Why the lineage does not hold any more; undefined while it does. */
  readonly loss: Loss | undefined;
  /** A standby that does not know yet of the lineage that followed: what it says is no news. */
  readonly isLate: boolean;
}

/**
 * Where somebody else has seen the lineage's database, if that is known: e.g. another process, in the cache. It never fails.
 */
export type ToldMark = (lineage: string) => Promise<HistoryMark | undefined>;

/** What one process knows of the history. A look at it costs one statement. */
export class KnownHistory {
  #mark: HistoryMark | undefined;
  #lineage: string | undefined;
  /**
   * Lineages that another one has followed, and one that was seen in an earlier state: the log that it lacks is soon
   * made up for, by other rows.
   */
  readonly #ended = new Set<string>();

  /** The farthest that the current lineage's database was seen. */
  get mark(): HistoryMark | undefined {
    return this.#mark;
  }

  /**
   * One look. What is known is taken before PostgreSQL is asked: it has all of that, and
   * more, unless it has gone back.
   * @throws what `read` fails with
   */
  async look(read: () => Promise<HistoryLook>, told: ToldMark): Promise<SeenHistory> {
    let known = this.#mark && farther(this.#mark, await told(this.#mark.lineage));
    let look = await read();
    if (known?.lineage !== look.lineage) {
      known = await told(look.lineage);
      // It was told after the look, and may be of after the look.
      if (known && lossOf(known, look) === 'earlier state') look = await read();
    }
    const hasEnded = this.#ended.has(look.lineage);
    const isLate = hasEnded && look.identity === null;
    const loss = hasEnded && !isLate ? 'earlier state' : lossOf(known, look);
    if (loss === 'earlier state') this.#ended.add(look.lineage);
    if (loss === undefined && !isLate) this.#goesOn(look, known);
    return { ...look, loss, isLate };
  }

  #goesOn(look: HistoryLook, known: HistoryMark | undefined): void {
    if (this.#lineage !== undefined && this.#lineage !== look.lineage) this.#ended.add(this.#lineage);
    this.#lineage = look.lineage;
    // Of two looks at once the one that began first may end last.
    this.#mark = farther(farther(markOf(look), known), this.#mark);
  }
}

/** @param known of any lineage, from before the look */
function lossOf(known: HistoryMark | undefined, look: HistoryLook): Loss | undefined {
  const { lineage, began, identity, written } = look;
  if (identity === null) return undefined;
  if (began !== null && !isSameDatabase(began, identity)) return 'another database';
  if (!known || known.lineage !== lineage || !isSameDatabase(known.identity, identity)) return undefined;
  return written !== null && written < known.written ? 'earlier state' : undefined;
}

/** By the parts that both sides tell: `-` stands for one that a server keeps to itself. */
export function isSameDatabase(a: string, b: string): boolean {
  const others = b.split(' ');
  return a.split(' ').every((part, i) => part === others[i] || part === '-' || others[i] === '-');
}

function markOf({ lineage, identity, written }: HistoryLook): HistoryMark | undefined {
  return identity === null || written === null ? undefined : { lineage, identity, written };
}

function farther(a: HistoryMark | undefined, b: HistoryMark | undefined): HistoryMark | undefined {
  if (!a || !b || a.lineage !== b.lineage) return a ?? b;
  return b.written > a.written ? b : a;
}

/** As it is kept in the cache. */
export function markText({ written, identity }: HistoryMark): string {
  return `${written} ${identity}`;
}

/** Undefined for what is no mark. */
export function readMark(lineage: string, text: string | null | undefined): HistoryMark | undefined {
  const [, written, identity] = /^(\d{1,15}) (\S+(?: \S+)*)$/.exec(text ?? '') ?? [];
  return written && identity ? { lineage, identity, written: Number(written) } : undefined;
}

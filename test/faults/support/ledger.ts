/**
 * The history of all writes. Each subject (a machine, a cluster) has one rising number. A write stores it in the database, and
 * answers contain it, so an answer shows its state.
 */
export type Verdict = 'true' | 'never true' | 'went back' | 'lost';

interface Written {
  /** When the write began, in milliseconds of `performance.now()`. */
  readonly begun: number;
  /** When the commit was confirmed; undefined if its outcome is unknown. */
  committed: number | undefined;
  /** When the database lost it. */
  lostAt: number | undefined;
  /** True if the database lacks it after its recovery. */
  neverCommitted: boolean;
  /** Answers that showed it before the commit was confirmed. */
  shownEarly: number;
}

/** Answers that showed a write before its commit was confirmed, by its later outcome. */
export interface ShownEarly {
  readonly committed: number;
  readonly neverCommitted: number;
  /** The database was not read yet. */
  readonly unknown: number;
}

const isLasting = ({ committed, lostAt }: Written): boolean =>
  committed !== undefined && lostAt === undefined;

/** For this time (ms) after the database went back, readers may serve lost data. */
const NOTICED_WITHIN_MS = 2000;

export class Ledger {
  readonly #written = new Map<string, Written[]>();
  /** Reader and subject → the newest number of its answers, and when that answer arrived. */
  readonly #given = new Map<string, { number: number; at: number }>();

  /** Begins a write. Returns its number. */
  begin(subject: string): number {
    const all = this.#written.get(subject) ?? [];
    this.#written.set(subject, all);
    all.push({
      begun: performance.now(),
      committed: undefined,
      lostAt: undefined,
      neverCommitted: false,
      shownEarly: 0,
    });
    return all.length - 1;
  }

  committed(subject: string, number: number): void {
    const write = this.#written.get(subject)?.[number];
    if (write) write.committed = performance.now();
  }

  /** Notes that the database never had the number. */
  neverCommitted(subject: string, number: number): void {
    const write = this.#written.get(subject)?.[number];
    if (write && write.lostAt === undefined) write.neverCommitted = true;
  }

  get shownEarly(): ShownEarly {
    const sums = { committed: 0, neverCommitted: 0, unknown: 0 };
    for (const { shownEarly, neverCommitted, committed, lostAt } of [...this.#written.values()].flat()) {
      const isKnown = committed !== undefined || lostAt !== undefined;
      sums[neverCommitted ? 'neverCommitted' : isKnown ? 'committed' : 'unknown'] += shownEarly;
    }
    return sums;
  }

  /** Returns the newest committed number; -1 for none. */
  newest(subject: string): number {
    return this.#written.get(subject)?.findLastIndex(({ committed }) => committed !== undefined) ?? -1;
  }

  /** Returns the newest committed number that the database did not lose; -1 for none. */
  newestLasting(subject: string): number {
    return this.#written.get(subject)?.findLastIndex(isLasting) ?? -1;
  }

  get subjects(): Iterable<string> {
    return this.#written.keys();
  }

  /** Notes that the database went back to this number, and lost all later ones. */
  wentBack(subject: string, number: number): void {
    const now = performance.now();
    for (const write of this.#written.get(subject)?.slice(number + 1) ?? []) write.lostAt ??= now;
  }

  /** @param requestedAt when the request began */
  judge(reader: string, subject: string, number: number, requestedAt: number): Verdict {
    const write = this.#written.get(subject)?.[number];
    if (!write || write.neverCommitted) return 'never true';
    if (write.committed === undefined) write.shownEarly += 1;
    if (this.lostMs(subject, number, requestedAt) > NOTICED_WITHIN_MS) return 'lost';
    const key = `${reader} ${subject}`;
    const before = this.#given.get(key);
    if (before && before.at < requestedAt && before.number > number && !this.#isLost(subject, before.number))
      return 'went back';
    if (!before || before.number <= number) this.#given.set(key, { number, at: performance.now() });
    return 'true';
  }

  /** Returns the milliseconds from the loss of the number to the request; 0 if it is not lost. */
  lostMs(subject: string, number: number, requestedAt: number): number {
    const lostAt = this.#written.get(subject)?.[number]?.lostAt;
    return lostAt === undefined ? 0 : Math.max(0, requestedAt - lostAt);
  }

  /** Returns the age of an answer: milliseconds since the commit of the next number. */
  age(subject: string, number: number, requestedAt: number): number {
    const next = this.#written.get(subject)?.slice(number + 1) ?? [];
    const since = next.find(isLasting)?.committed;
    return since === undefined ? 0 : Math.max(0, requestedAt - since);
  }

  /** Returns true if the number was committed after this instant. */
  isSince(subject: string, number: number, instant: number): boolean {
    return (this.#written.get(subject)?.[number]?.begun ?? 0) >= instant;
  }

  #isLost(subject: string, number: number): boolean {
    return this.#written.get(subject)?.[number]?.lostAt !== undefined;
  }
}

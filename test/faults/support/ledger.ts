/**
 * What was ever true. Each subject (a machine, a cluster) has one number that only rises: it is written into the database
 * and comes back in answers, so that an answer tells which state it is of.
 */
export type Verdict = 'true' | 'never true' | 'went back' | 'lost';

interface Written {
  /** When the write began, in milliseconds of `performance.now()`. */
  readonly begun: number;
  /** When it was known to be committed; undefined for one whose outcome nobody has seen. */
  committed: number | undefined;
  /** When the database had lost it. */
  lostAt: number | undefined;
  /** The database was asked after its recovery, and does not have it. */
  neverCommitted: boolean;
  /** Answers that showed it before it was known to be committed. */
  shownEarly: number;
}

/** Answers that showed what nobody had seen committed by then, and what the database said of it later. */
export interface ShownEarly {
  readonly committed: number;
  readonly neverCommitted: number;
  /** Nobody has asked the database yet. */
  readonly unknown: number;
}

const isKept = ({ committed, lostAt }: Written): boolean => committed !== undefined && lostAt === undefined;

/** For so long (ms) after the database came back in an earlier state, readers may give what it has lost. */
const NOTICED_WITHIN_MS = 1000;

export class Ledger {
  readonly #written = new Map<string, Written[]>();
  /** Reader and subject → the newest number that it has given, and when that answer had arrived. */
  readonly #given = new Map<string, { number: number; at: number }>();

  /** The number that a write is about to give the subject. */
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

  /** The database does not have it: it is not one that it had and has lost. */
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

  /** The newest number that is known to be committed; -1 for none. */
  newest(subject: string): number {
    return this.#written.get(subject)?.findLastIndex(({ committed }) => committed !== undefined) ?? -1;
  }

  /** The newest number that is known to be committed, and that the database has not lost; -1 for none. */
  newestKept(subject: string): number {
    return this.#written.get(subject)?.findLastIndex(isKept) ?? -1;
  }

  get subjects(): Iterable<string> {
    return this.#written.keys();
  }

  /** The database has gone back: of the subject it holds this number, and none that came after it. */
  wentBack(subject: string, number: number): void {
    const now = performance.now();
    for (const write of this.#written.get(subject)?.slice(number + 1) ?? []) write.lostAt ??= now;
  }

  /** @param asked when the request began */
  judge(reader: string, subject: string, number: number, asked: number): Verdict {
    const write = this.#written.get(subject)?.[number];
    if (!write || write.neverCommitted) return 'never true';
    if (write.committed === undefined) write.shownEarly += 1;
    if (this.lostMs(subject, number, asked) > NOTICED_WITHIN_MS) return 'lost';
    const key = `${reader} ${subject}`;
    const before = this.#given.get(key);
    if (before && before.at < asked && before.number > number && !this.#isLost(subject, before.number))
      return 'went back';
    if (!before || before.number <= number) this.#given.set(key, { number, at: performance.now() });
    return 'true';
  }

  /** Milliseconds for which the database had lost the number when the answer was asked for; 0 for one that it has. */
  lostMs(subject: string, number: number, asked: number): number {
    const lostAt = this.#written.get(subject)?.[number]?.lostAt;
    return lostAt === undefined ? 0 : Math.max(0, asked - lostAt);
  }

  /** Milliseconds by which an answer was behind: since when a newer number was known to be committed. */
  age(subject: string, number: number, asked: number): number {
    const next = this.#written.get(subject)?.slice(number + 1) ?? [];
    const since = next.find(isKept)?.committed;
    return since === undefined ? 0 : Math.max(0, asked - since);
  }

  /** Whether the number was committed after this instant. */
  isSince(subject: string, number: number, instant: number): boolean {
    return (this.#written.get(subject)?.[number]?.begun ?? 0) >= instant;
  }

  #isLost(subject: string, number: number): boolean {
    return this.#written.get(subject)?.[number]?.lostAt !== undefined;
  }
}

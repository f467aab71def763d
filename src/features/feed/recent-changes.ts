import { Batch } from './batch.ts';
import type { Cursor } from './cursor.ts';
import { type Change, type FeedScope, isFor } from './feed-reads.ts';

/** Changes of the catalogue that memory keeps, and times that clusters were touched. */
export const KEPT = 2000;

/** Clusters of these organizations have changed, at this position or before. */
interface Touched {
  readonly upTo: number;
  readonly organizations: ReadonlySet<number>;
}

const NOTHING = new Batch([]);

/** The end of the feed as far as memory has it, for those who begin a little before it. */
export class RecentChanges {
  /** Everything behind this position is here. */
  #since: number;
  #at: Cursor;
  #currency: string | undefined;
  #changes: Change[] = [];
  #touched: Touched[] = [];
  /** The newest batch for clients that return, by `withSoldOut`: many of them return to the same position. */
  readonly #missed = new Map<boolean, Batch>();

  /** @param from nothing behind it is here yet */
  constructor(from: Cursor, currency: string | undefined) {
    this.#since = from.position;
    this.#at = from;
    this.#currency = currency;
  }

  /** The end of what is here. */
  get at(): Cursor {
    return this.#at;
  }

  get currency(): string | undefined {
    return this.#currency;
  }

  /** Whether what lies behind a cursor is known to be kept. */
  reaches({ feed, position }: Cursor): boolean {
    return feed.lineage === this.#at.feed.lineage && position >= this.#since;
  }

  /** What lies behind a cursor; undefined where not all of it is here. Of clusters nothing is, but whose they were. */
  behind(cursor: Cursor, scope: FeedScope): Batch | undefined {
    const { machines, organizationId, withSoldOut = false } = scope;
    const { position } = cursor;
    if (!this.reaches(cursor)) return undefined;
    if (organizationId !== undefined)
      for (const { upTo, organizations } of this.#touched)
        if (upTo > position && organizations.has(organizationId)) return undefined;
    const missed = machines
      ? this.#changes.filter((change) => change.position > position && isFor(change, scope))
      : [];
    const [first] = missed;
    if (!first) return NOTHING;
    const known = this.#missed.get(withSoldOut);
    if (known?.changes[0] === first) return known;
    const batch = new Batch(missed);
    this.#missed.set(withSoldOut, batch);
    return batch;
  }

  /** @param organizations of whose clusters there are changes */
  add(
    changes: readonly Change[],
    organizations: ReadonlySet<number>,
    next: Cursor,
    currency: string | undefined,
  ): void {
    this.#at = next;
    this.#currency = currency;
    this.#missed.clear();
    this.#changes.push(...changes);
    if (organizations.size > 0) this.#touched.push({ upTo: next.position, organizations });
    const gone = this.#changes.splice(0, Math.max(0, this.#changes.length - KEPT));
    const forgotten = this.#touched.splice(0, Math.max(0, this.#touched.length - KEPT));
    this.#since = Math.max(this.#since, gone.at(-1)?.position ?? 0, forgotten.at(-1)?.upTo ?? 0);
  }
}

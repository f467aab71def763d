import type { Cursor } from './cursor.ts';
import { type Change, type FeedScope, isFor } from './feed-reads.ts';

/** Changes of the catalogue, and groups of changed organizations, that memory holds. */
export const MOST_RECENT = 2000;

/** Changes that many clients get at once. */
export class Batch {
  readonly changes: readonly Change[];
  #encoded: Buffer | undefined;

  constructor(changes: readonly Change[]) {
    this.changes = changes;
  }

  /** Returns the bytes to send, encoded once for all clients. @param encode always the same function */
  encoded(encode: (changes: readonly Change[]) => Buffer): Buffer {
    this.#encoded ??= encode(this.changes);
    return this.#encoded;
  }
}

const NOTHING = new Batch([]);

/** The end of the feed in memory, for clients that start a little before the end. */
export class RecentChanges {
  #since: number;
  #at: Cursor;
  #currency: string | undefined;
  #changes: Change[] = [];
  /** Organizations whose clusters changed at `upTo` or before. Cluster changes themselves are not in memory. */
  #touched: { readonly upTo: number; readonly organizations: ReadonlySet<number> }[] = [];
  /** The newest batch for clients that return, by `withSoldOut`: many of them return to the same position. */
  readonly #missed = new Map<boolean, Batch>();

  constructor(from: Cursor, currency: string | undefined) {
    this.#since = from.position;
    this.#at = from;
    this.#currency = currency;
  }

  get at(): Cursor {
    return this.#at;
  }

  get currency(): string | undefined {
    return this.#currency;
  }

  reaches({ feed, position }: Cursor): boolean {
    return feed.lineage === this.#at.feed.lineage && position >= this.#since;
  }

  /** Returns the changes behind a cursor; undefined if memory lacks some of them. */
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
    const removed = this.#changes.splice(0, Math.max(0, this.#changes.length - MOST_RECENT));
    const dropped = this.#touched.splice(0, Math.max(0, this.#touched.length - MOST_RECENT));
    this.#since = Math.max(this.#since, removed.at(-1)?.position ?? 0, dropped.at(-1)?.upTo ?? 0);
  }
}

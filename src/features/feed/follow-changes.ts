/** The end of the feed in memory, shared by all streams of a reader. */
import type { Logger } from 'pino';
import { steadyNow } from '../../domain/clock.ts';
import { Slice } from '../../domain/event-loop.ts';
import { Semaphore } from '../../snapshot/read/postgres-reads.ts';
import {
  type Beginning,
  type Change,
  type Cursor,
  CursorGone,
  FeedReads,
  type FeedScope,
  isFor,
  type RunRead,
} from './read-changes.ts';

/** Changes of the catalogue, and groups of changed organizations, that memory holds. */
const MOST_RECENT = 2000;

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
class RecentChanges {
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
    const { machines, organizationId, withSoldOut = false, machineIds } = scope;
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
    if (machineIds) return new Batch(missed);
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

/** A stream that waits for changes. Its methods must not throw. */
export interface Follower {
  readonly scope: FeedScope;
  /** Of the last change that it has. The tail sets it. */
  position: number;
  deliver(batch: Batch, next: Cursor): void;
  /** The database was replaced, or the next changes are deleted. */
  end(): void;
  /** Called about once a second. */
  tick(now: number): void;
}

const PAGE = 500;
/** Milliseconds between two reads while the feed has followers. Entries of the cache cause earlier reads. */
const POLL_MS = 1000;
/** Followers are in groups. Within a second `tick` reaches one group after the other. */
const GROUPS = 50;
/** Milliseconds of delivering in a slice. Node writes to the connections afterwards, which takes several times as long. */
const DELIVERING_MS = 0.2;

interface FeedTailOptions {
  readonly run: RunRead;
  readonly atOnce: number;
  readonly logger: Logger;
  readonly isLinked?: () => boolean;
  readonly now?: () => number;
}

/**
 * The end of the feed, shared by all followers. New changes of the catalogue are read once for all followers, and cluster
 * changes once for each organization that has followers. Without followers there are no reads.
 */
export class FeedTail implements Disposable {
  readonly reads: FeedReads;
  readonly #followers: Set<Follower>[] = Array.from({ length: GROUPS }, () => new Set());
  readonly #logger: Logger;
  readonly #now: () => number;
  #recent: RecentChanges | undefined;
  #newest = 0;
  #advancing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ticks = 0;
  #count = 0;
  /** Streams closed as too slow, refused at the limit, and refused at the share of a token or organization. */
  readonly counts = { cut: 0, refused: 0, limited: 0 };

  constructor({ run, atOnce, logger, isLinked = () => false, now = steadyNow }: FeedTailOptions) {
    const room = new Semaphore({ atOnce, waitingAtMost: atOnce * 128, deadlineMs: 3000 });
    this.reads = new FeedReads(
      (read, options) => room.run(() => run(read, options), options?.organizationId),
      () => (isLinked() ? this.#newest : 0),
    );
    this.#logger = logger;
    this.#now = now;
  }

  get size(): number {
    return this.#count;
  }

  /** Reads new changes, if the feed has grown to this position. */
  advanceTo(position: number): void {
    if (position <= this.#newest) return;
    this.#newest = position;
    if (this.#count > 0) void this.#advance();
  }

  reset(): void {
    this.#newest = 0;
    if (this.#recent) this.#lose();
  }

  /** Reads nothing if memory has the changes behind the cursor. @throws CursorGone · Unavailable */
  async beginning(scope: FeedScope, cursor: string | undefined): Promise<Omit<Beginning, 'head'>> {
    if (cursor === undefined) return this.reads.beginning();
    const after = await this.reads.find(cursor);
    if (this.#recent?.reaches(after)) return { start: after, currency: this.#recent.currency };
    const { currency } = await this.reads.page(scope, after, 1, { upTo: after.position });
    return { start: after, currency };
  }

  /**
   * Delivers all changes behind `after`, then each new one. Changes that memory lacks are read page by page.
   * @param ready awaited before each page; false ends it
   * @throws CursorGone · Unavailable if they cannot be read: the follower is not added then
   */
  async follow(follower: Follower, after: Cursor, ready: () => Promise<boolean>): Promise<void> {
    follower.position = after.position;
    for (let from = after; ; ) {
      // This is the first follower, or the last one left during the read.
      if (!this.#recent) await this.#begin();
      if (this.#join(follower, from) || !(await ready())) return;
      // A server without these changes would return empty pages for ever.
      const reaches = this.#recent?.at.position ?? from.position;
      const page = await this.reads.page(follower.scope, from, PAGE, { reaches });
      from = page.next;
      follower.position = from.position;
      if (page.changes.length > 0) follower.deliver(new Batch(page.changes), from);
    }
  }

  leave(follower: Follower): void {
    for (const group of this.#followers) if (group.delete(follower)) this.#count -= 1;
    if (this.#count === 0) this.#stop();
  }

  /** Starts a little before the end of the feed, as new clients do, or at the end after many changes. */
  async #begin(): Promise<void> {
    const { start, head, currency } = await this.reads.beginning();
    if (this.#recent) return;
    this.#recent = new RecentChanges(head.position - start.position > MOST_RECENT ? head : start, currency);
    void this.#advance();
  }

  /** Adds the follower if memory has all changes that it lacks, and delivers them. */
  #join(follower: Follower, from: Cursor): boolean {
    const missed = this.#recent?.behind(from, follower.scope);
    if (!this.#recent || !missed) return false;
    const { at } = this.#recent;
    follower.position = Math.max(from.position, at.position);
    this.#followers.reduce((least, group) => (group.size < least.size ? group : least)).add(follower);
    this.#count += 1;
    this.#timer ??= setInterval(() => this.#tick(), POLL_MS / GROUPS).unref();
    if (missed.changes.length > 0) follower.deliver(missed, { ...at, position: follower.position });
    return true;
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#recent = undefined;
  }

  #lose(): void {
    const all = this.#followers.flatMap((group) => [...group]);
    for (const group of this.#followers) group.clear();
    this.#count = 0;
    this.#stop();
    for (const follower of all) follower.end();
  }

  #tick(): void {
    const group = this.#followers[this.#ticks % GROUPS];
    this.#ticks += 1;
    const now = this.#now();
    for (const follower of group ?? []) follower.tick(now);
    if (this.#ticks % GROUPS === 0) void this.#advance();
  }

  /** Reads and delivers new changes. It never fails. */
  #advance(): Promise<void> {
    this.#advancing ??= this.#readAll()
      .catch((error: unknown) =>
        this.#logger.debug(
          { err: error },
          'the feed cannot be read; the next attempt follows within a second',
        ),
      )
      .finally(() => {
        this.#advancing = undefined;
      });
    return this.#advancing;
  }

  async #readAll(): Promise<void> {
    for (;;) {
      const recent = this.#recent;
      if (!recent) return;
      const { at } = recent;
      let more: boolean;
      try {
        more = await this.#step(recent);
      } catch (error) {
        if (!(error instanceof CursorGone)) throw error;
        if (this.#recent === recent) this.#lose();
        return;
      }
      if (!more && this.#newest <= recent.at.position) return;
      // A replica may lack the change that the entry named. The timer reads again.
      if (!more && recent.at === at) return;
    }
  }

  async #step(recent: RecentChanges): Promise<boolean> {
    const { at } = recent;
    const catalogue = await this.reads.catalogue(at, PAGE);
    const { changes, next, more, currency } = catalogue;
    if (next.position === at.position) return false;
    const organizations = new Set(catalogue.organizations);
    const clusters = new Map<number, readonly Change[]>();
    // Followers may join during a read, so the check is repeated. None joins between the last check and the delivery.
    for (;;) {
      const lacking = this.#served(organizations).filter((id) => !clusters.has(id));
      if (lacking.length === 0) break;
      await Promise.all(
        lacking.map(async (id) => {
          clusters.set(id, await this.#clusterChanges(id, at, next.position));
        }),
      );
    }
    if (this.#recent !== recent) return false;
    recent.add(changes, organizations, next, currency);
    await this.#deliver(changes, clusters, next);
    return more;
  }

  #served(organizations: ReadonlySet<number>): number[] {
    if (organizations.size === 0) return [];
    const served = new Set<number>();
    for (const group of this.#followers)
      for (const { scope } of group) if (scope.organizationId !== undefined) served.add(scope.organizationId);
    return [...served].filter((id) => organizations.has(id));
  }

  async #clusterChanges(organizationId: number, at: Cursor, upTo: number): Promise<readonly Change[]> {
    const changes: Change[] = [];
    let from = at;
    for (let more = true; more; ) {
      const page = await this.reads.page({ machines: false, organizationId }, from, PAGE, {
        upTo,
        reaches: upTo,
      });
      changes.push(...page.changes);
      ({ next: from, more } = page);
    }
    return changes;
  }

  async #deliver(
    catalogue: readonly Change[],
    clusters: ReadonlyMap<number, readonly Change[]>,
    next: Cursor,
  ): Promise<void> {
    const batches = new Map<string, Batch>();
    const batchFor = (scope: FeedScope): Batch => {
      const { machines, organizationId, withSoldOut = false, machineIds } = scope;
      const own = organizationId === undefined ? undefined : clusters.get(organizationId);
      const key = `${machines} ${withSoldOut} ${own ? organizationId : ''}`;
      const known = machineIds ? undefined : batches.get(key);
      if (known) return known;
      const changes = [
        ...(machines ? catalogue.filter((change) => isFor(change, scope)) : []),
        ...(own ?? []),
      ];
      const batch = new Batch(changes.sort((a, b) => a.position - b.position));
      // Few followers name the same machines.
      if (!machineIds) batches.set(key, batch);
      return batch;
    };
    const slice = new Slice(DELIVERING_MS);
    for (const follower of this.#followers.flatMap((group) => [...group])) {
      const { scope, position } = follower;
      if (position >= next.position) continue;
      const batch = batchFor(scope);
      follower.position = next.position;
      const [first] = batch.changes;
      // A follower that joined after it read pages may have some of these changes.
      const missing =
        first && first.position <= position
          ? new Batch(batch.changes.filter((change) => change.position > position))
          : batch;
      if (missing.changes.length > 0) follower.deliver(missing, next);
      if (slice.isOver) await slice.next();
    }
  }

  [Symbol.dispose](): void {
    this.#lose();
  }
}

import type { Logger } from 'pino';
import { Semaphore } from '../../snapshot/read/postgres/semaphore.ts';
import { Batch } from './batch.ts';
import type { Cursor } from './cursor.ts';
import {
  type Beginning,
  type Change,
  CursorGone,
  FeedReads,
  type FeedScope,
  isFor,
  type RunRead,
} from './feed-reads.ts';
import { KEPT, RecentChanges } from './recent-changes.ts';

/** Somebody who waits for changes. Nothing that is called here may throw. */
export interface Follower {
  readonly scope: FeedScope;
  /** Of the last change that it has. The tail moves it on. */
  position: number;
  deliver(batch: Batch, next: Cursor): void;
  /** The feed is another one, or what comes next is not kept any more. */
  lost(): void;
  /** Called about once a second. */
  tick(now: number): void;
}

/** Changes that are read at once. */
const PAGE = 500;
/** How often Postgres is asked where the feed is while somebody follows: messages of the cache come sooner. */
const POLL_MS = 1000;
/** Followers are looked after in so many groups, one after the other within a second. */
const GROUPS = 10;
/** Followers that are served between two turns of the event loop. */
const SERVED_AT_ONCE = 250;

export interface FeedTailOptions {
  readonly run: RunRead;
  /** Reads from Postgres at once. */
  readonly atOnce: number;
  readonly logger: Logger;
  /** True while the position of each change arrives as a message. False unless given. */
  readonly isLinked?: () => boolean;
  readonly now?: () => number;
}

/**
 * The end of the feed, which all who follow it share: what is new is read once for all of them, and once for each
 * organization that somebody here serves. While nobody follows nothing is read.
 */
export class FeedTail implements Disposable {
  readonly reads: FeedReads;
  readonly #followers: Set<Follower>[] = Array.from({ length: GROUPS }, () => new Set());
  readonly #logger: Logger;
  readonly #now: () => number;
  /** Everything up to its end has been delivered; undefined while nobody follows. */
  #recent: RecentChanges | undefined;
  #heard = 0;
  #advancing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ticks = 0;
  #count = 0;
  /** Streams closed as too slow, refused at the limit, and refused at the share of a token or organization. */
  readonly counts = { cut: 0, refused: 0, limited: 0 };

  constructor({ run, atOnce, logger, isLinked = () => false, now = Date.now }: FeedTailOptions) {
    const room = new Semaphore({ atOnce, waitingAtMost: atOnce * 128, deadlineMs: 3000 });
    this.reads = new FeedReads(
      (read, check) => room.run(() => run(read, check)),
      () => (isLinked() ? this.#heard : 0),
    );
    this.#logger = logger;
    this.#now = now;
  }

  /** How many follow. */
  get size(): number {
    return this.#count;
  }

  /** The feed has come to this position. */
  heard(position: number): void {
    if (position <= this.#heard) return;
    this.#heard = position;
    if (this.#count > 0) void this.#advance();
  }

  /** Whatever was known is of another database. */
  reset(): void {
    this.#heard = 0;
    if (this.#recent) this.#lose();
  }

  /** The one with the fewest followers. */
  #group(): Set<Follower> {
    return this.#followers.reduce((least, group) => (group.size < least.size ? group : least));
  }

  /**
   * Where to begin behind a cursor, or without one, and in which currency prices are there. Who comes back asks no server
   * where memory has what they lack.
   * @throws CursorGone · Unavailable
   */
  async beginning(scope: FeedScope, cursor: string | undefined): Promise<Omit<Beginning, 'head'>> {
    if (cursor === undefined) return this.reads.beginning();
    const after = await this.reads.find(cursor);
    if (this.#recent?.reaches(after)) return { start: after, currency: this.#recent.currency };
    const { currency } = await this.reads.page(scope, after, 1, { upTo: after.position });
    return { start: after, currency };
  }

  /**
   * Delivers everything behind `after` that there is, then what comes. What the follower lacks is read page by page;
   * `ready` is waited for before each.
   * @throws CursorGone · Unavailable where what it lacks cannot be read: it does not follow then
   */
  async follow(follower: Follower, after: Cursor, ready: () => Promise<boolean>): Promise<void> {
    follower.position = after.position;
    for (let from = after; ; ) {
      // Whoever is the first, also where the last one has left meanwhile.
      if (!this.#recent) await this.#begin();
      if (this.#join(follower, from) || !(await ready())) return;
      // A server without these changes would give an empty page again and again.
      const reaches = this.#recent?.at.position ?? from.position;
      const page = await this.reads.page(follower.scope, from, PAGE, { reaches });
      from = page.next;
      follower.position = from.position;
      if (page.changes.length > 0) follower.deliver(new Batch(page.changes), from);
    }
  }

  leave(follower: Follower): void {
    for (const group of this.#followers) if (group.delete(follower)) this.#count -= 1;
    if (this.#count === 0) this.#rest();
  }

  /** A little before the end of the feed, where those begin who are about to list everything, unless much has come since. */
  async #begin(): Promise<void> {
    const { start, head, currency } = await this.reads.beginning();
    if (this.#recent) return;
    this.#recent = new RecentChanges(head.position - start.position > KEPT ? head : start, currency);
    void this.#advance();
  }

  /** True where memory has all that the follower lacks: from now on it hears of everything. */
  #join(follower: Follower, from: Cursor): boolean {
    const missed = this.#recent?.behind(from, follower.scope);
    if (!this.#recent || !missed) return false;
    const { at } = this.#recent;
    follower.position = Math.max(from.position, at.position);
    this.#group().add(follower);
    this.#count += 1;
    this.#timer ??= setInterval(() => this.#tick(), POLL_MS / GROUPS).unref();
    if (missed.changes.length > 0) follower.deliver(missed, { ...at, position: follower.position });
    return true;
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#recent = undefined;
  }

  #lose(): void {
    const all = this.#followers.flatMap((group) => [...group]);
    for (const group of this.#followers) group.clear();
    this.#count = 0;
    this.#rest();
    for (const follower of all) follower.lost();
  }

  #tick(): void {
    const group = this.#followers[this.#ticks % GROUPS];
    this.#ticks += 1;
    const now = this.#now();
    for (const follower of group ?? []) follower.tick(now);
    if (this.#ticks % GROUPS === 0) void this.#advance();
  }

  /** Reads and delivers what is new; it never fails. */
  #advance(): Promise<void> {
    this.#advancing ??= this.#catchUp()
      .catch((error: unknown) => this.#logger.debug({ err: error }, 'the feed cannot be read at the moment'))
      .finally(() => {
        this.#advancing = undefined;
      });
    return this.#advancing;
  }

  async #catchUp(): Promise<void> {
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
      if (!more && this.#heard <= recent.at.position) return;
      // A replica may not have what the message told of: the timer asks again.
      if (!more && recent.at === at) return;
    }
  }

  /** @returns whether there is more */
  async #step(recent: RecentChanges): Promise<boolean> {
    const { at } = recent;
    const catalogue = await this.reads.catalogue(at, PAGE);
    const { changes, next, more, currency } = catalogue;
    if (next.position === at.position) return false;
    const organizations = new Set(catalogue.organizations);
    const clusters = new Map<number, readonly Change[]>();
    // Again, since others may have come meanwhile; nobody comes between the last look and the delivery.
    for (;;) {
      const lacking = this.#served(organizations).filter((id) => !clusters.has(id));
      if (lacking.length === 0) break;
      await Promise.all(
        lacking.map(async (id) => {
          clusters.set(id, await this.#allOf(id, at, next.position));
        }),
      );
    }
    if (this.#recent !== recent) return false;
    recent.add(changes, organizations, next, currency);
    await this.#deliver(changes, clusters, next);
    return more;
  }

  /** Those of whom somebody follows. */
  #served(organizations: ReadonlySet<number>): number[] {
    if (organizations.size === 0) return [];
    const served = new Set<number>();
    for (const group of this.#followers)
      for (const { scope } of group) if (scope.organizationId !== undefined) served.add(scope.organizationId);
    return [...served].filter((id) => organizations.has(id));
  }

  async #allOf(organizationId: number, at: Cursor, upTo: number): Promise<readonly Change[]> {
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
      const { machines, organizationId, withSoldOut = false } = scope;
      const own = organizationId === undefined ? undefined : clusters.get(organizationId);
      const key = `${machines} ${withSoldOut} ${own ? organizationId : ''}`;
      let batch = batches.get(key);
      if (!batch) {
        const changes = [
          ...(machines ? catalogue.filter((change) => isFor(change, scope)) : []),
          ...(own ?? []),
        ];
        batch = new Batch(changes.sort((a, b) => a.position - b.position));
        batches.set(key, batch);
      }
      return batch;
    };
    let served = 0;
    for (const follower of this.#followers.flatMap((group) => [...group])) {
      const { scope, position } = follower;
      if (position >= next.position) continue;
      const batch = batchFor(scope);
      follower.position = next.position;
      const [first] = batch.changes;
      // One that has joined from a page of its own may have some of it.
      const lacks =
        first && first.position <= position
          ? new Batch(batch.changes.filter((change) => change.position > position))
          : batch;
      if (lacks.changes.length > 0) follower.deliver(lacks, next);
      served += 1;
      if (served % SERVED_AT_ONCE === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  [Symbol.dispose](): void {
    this.#lose();
  }
}

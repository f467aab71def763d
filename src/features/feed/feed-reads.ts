/** Pages of the changes feed, for one token or for all streams of a reader. */
import type { Sql } from '../../db/connection/client.ts';
import { Unavailable } from '../../snapshot/document/answer.ts';
import { type Cursor, Feed } from './cursor.ts';
import {
  type FeedHead,
  type FeedPage,
  type FeedQuestion,
  type FeedRow,
  readFeedPage,
  readFeedStart,
} from './queries.ts';

/** The changes that a token may see. */
export interface FeedScope {
  readonly machines: boolean;
  readonly organizationId: number | undefined;
  /** Includes sold-out machines; false unless given. */
  readonly withSoldOut?: boolean;
  /** The organization that has the reads in its share, with and without the permission to read clusters. */
  readonly shareOf?: number;
}

export interface Change {
  readonly position: number;
  readonly id: string;
  readonly type: string;
  readonly json: string;
  /** True: for scopes with sold-out machines. False: for scopes without. Undefined: for all scopes. */
  readonly withSoldOut?: boolean;
}

export const isFor = (change: Change, { withSoldOut = false }: FeedScope): boolean =>
  change.withSoldOut === undefined || change.withSoldOut === withSoldOut;

export interface ChangesPage {
  readonly changes: readonly Change[];
  readonly next: Cursor;
  readonly more: boolean;
  readonly currency: string | undefined;
}

/** Where a client starts before it lists everything, and the end of the feed. */
export interface Beginning {
  readonly start: Cursor;
  readonly head: Cursor;
  readonly currency: string | undefined;
}

/** The changes behind a cursor are deleted, or it is of another lineage. */
export class CursorGone extends Error {
  override readonly name = 'CursorGone';
  /** The cursor with which the client continues after a new list of everything. */
  readonly next: Cursor;

  constructor(next: Cursor) {
    super('the changes behind this cursor are deleted');
    this.next = next;
  }
}

/** Seconds from a starting cursor to now: a reader that lists everything may be two seconds behind. */
const OVERLAP_S = 30;

/** Runs a read within limits. The primary answers if a replica's result fails `check`, and first without a `check`. */
export type RunRead = <T>(
  read: (sql: Sql) => Promise<T>,
  options?: { readonly check?: (result: T) => boolean; readonly organizationId?: number | undefined },
) => Promise<T>;

export class FeedReads {
  readonly #run: RunRead;
  readonly #newest: () => number;
  #feed: Feed | undefined;
  #beginning: Promise<Beginning> | undefined;

  /** @param newest the newest position that this reader knows; 0 while messages may be lost */
  constructor(run: RunRead, newest: () => number = () => 0) {
    this.#run = run;
    this.#newest = newest;
  }

  #feedOf({ lineage, cursorKey }: FeedHead): Feed {
    if (!this.#feed?.is(lineage, cursorKey)) this.#feed = new Feed(lineage, cursorKey);
    return this.#feed;
  }

  /** A cursor of an unknown feed causes a read: the database may have been replaced. @throws CursorGone · Unavailable */
  async find(text: string): Promise<Cursor> {
    const known = this.#feed?.decode(text);
    if (known) return known;
    const { start } = await this.beginning();
    const found = start.feed.decode(text);
    if (!found) throw new CursorGone(start);
    return found;
  }

  /** Concurrent calls share one read. An earlier start has all changes of a later one, and more. */
  beginning(): Promise<Beginning> {
    this.#beginning ??= this.#readBeginning().finally(() => {
      this.#beginning = undefined;
    });
    return this.#beginning;
  }

  async #readBeginning(): Promise<Beginning> {
    const found = await this.#run((sql) => readFeedStart(sql, OVERLAP_S));
    const feed = this.#feedOf(found);
    return {
      start: { feed, position: found.start },
      head: { feed, position: found.position },
      currency: found.currency ?? undefined,
    };
  }

  /** Also returns the organizations with cluster changes in the same snapshot. @throws CursorGone */
  async catalogue(
    after: Cursor,
    limit: number,
  ): Promise<ChangesPage & { readonly organizations: readonly number[] }> {
    const page = await this.#read({
      organizationId: undefined,
      after: after.position,
      limit,
      withOrganizations: true,
    });
    await this.#checkNotPruned(after, [page]);
    return { ...merge(this.#feedOf(page.head), page, [], limit), organizations: page.organizations };
  }

  /**
   * Reads the changes of a scope behind a cursor.
   * @param range.upTo the last position of the page; no limit unless given
   * @param range.reaches a position that the server must have, else it would hide changes; the newest known one unless given
   * @throws CursorGone · Unavailable if no server that answers has this position
   */
  async page(
    scope: FeedScope,
    after: Cursor,
    limit: number,
    { upTo, reaches = this.#newest() }: { readonly upTo?: number; readonly reaches?: number } = {},
  ): Promise<ChangesPage> {
    const { machines, organizationId, shareOf } = scope;
    const question = { after: after.position, limit, ...(upTo === undefined ? {} : { upTo }) };
    const pages = await Promise.all([
      ...(machines ? [this.#read({ ...question, organizationId: undefined }, reaches, shareOf)] : []),
      ...(organizationId === undefined
        ? []
        : [this.#read({ ...question, organizationId }, reaches, shareOf)]),
    ]);
    const [first, ...others] = pages;
    if (!first) throw new Error('unreachable: a token without a scope is refused');
    await this.#checkNotPruned(after, pages);
    const merged = merge(this.#feedOf(first.head), first, others, limit);
    return { ...merged, changes: merged.changes.filter((change) => isFor(change, scope)) };
  }

  /** Checks the position of every read: several servers may be behind one address. */
  async #read(question: FeedQuestion, reaches = 0, organizationId?: number): Promise<FeedPage> {
    const hasReached = ({ head }: FeedPage) => head.position >= reaches;
    const read = (sql: Sql) => readFeedPage(sql, question);
    // Without a position to reach, only the primary knows the end of the feed.
    const page = await this.#run(read, { ...(reaches > 0 && { check: hasReached }), organizationId });
    if (!hasReached(page)) throw new Unavailable('this PostgreSQL lacks the newest changes');
    return page;
  }

  async #checkNotPruned(after: Cursor, pages: readonly FeedPage[]): Promise<void> {
    for (const { head } of pages)
      if (isGone(after, head)) throw new CursorGone((await this.beginning()).start);
  }
}

function isGone(after: Cursor, { lineage, pruned }: FeedHead): boolean {
  return after.feed.lineage !== lineage || after.position < pruned;
}

/** Merges pages in one order, up to the last position that all pages cover. */
function merge(feed: Feed, first: FeedPage, others: readonly FeedPage[], limit: number): ChangesPage {
  const pages = [first, ...others];
  const known = Math.min(...pages.map(({ next }) => next));
  const found = pages.flatMap((page) => page.rows);
  const rows = found.filter(({ position }) => position <= known).sort((a, b) => a.position - b.position);
  const isCut = rows.length > limit;
  const taken = isCut ? rows.slice(0, limit) : rows;
  const position = isCut ? (taken.at(-1)?.position ?? known) : known;
  return {
    changes: taken.flatMap((row) => changesOf(feed, row)),
    next: { feed, position },
    more: isCut || rows.length < found.length || pages.some((page) => page.more),
    currency: first.head.currency ?? undefined,
  };
}

/** Returns one change if all scopes see the same; none if its object is not shown any more: a later change states that. */
function changesOf(feed: Feed, row: FeedRow): Change[] {
  const { position, at } = row;
  const id = feed.encode(position);
  const made = ({ type, ...subject }: ShownChange) => ({
    position,
    id,
    type,
    json: JSON.stringify({ id, at, type, ...subject }),
  });
  const [without, withThem] = [shownChange(row, false), shownChange(row, true)];
  const [one, other] = [without && made(without), withThem && made(withThem)];
  if (one && one.json === other?.json) return [one];
  return [
    ...(one ? [{ ...one, withSoldOut: false }] : []),
    ...(other ? [{ ...other, withSoldOut: true }] : []),
  ];
}

interface ShownChange {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** Returns a change for scopes with or without sold-out machines. See append.ts for `before` and `after`. */
function shownChange(row: FeedRow, withSoldOut: boolean): ShownChange | undefined {
  const { kind, machineId, providerId, regionId, slug, shown, before, after } = row;
  const type = withSoldOut ? kind.replace(/^sold_out\./, 'machine.') : kind;
  if (type === 'catalogue.changed') return { type };
  if (type === 'cluster.deleted') return { type, slug };
  const isWithdrawn = type === 'machine.withdrawn' && (!withSoldOut || after === null);
  if (isWithdrawn || type === 'machine.retired')
    return { type, machine_id: machineId, provider_id: providerId, region_id: regionId };
  if (shown === null || type.startsWith('sold_out.')) return undefined;
  if (type.startsWith('cluster.')) return { type, cluster: JSON.parse(shown) as unknown };
  const found: { readonly isSoldOut: boolean; readonly machine: object } = JSON.parse(shown);
  if (found.isSoldOut && !withSoldOut) return undefined;
  const machine = found.isSoldOut ? { ...found.machine, available: false } : found.machine;
  if (type === 'machine.withdrawn') return { type: 'machine.sold_out', machine };
  if (withSoldOut && type === 'machine.added' && before !== null)
    return { type: 'machine.restocked', machine };
  if (type !== 'machine.repriced') return { type, machine };
  return { type, machine, before: Number(before), after: Number(after) };
}

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

/** Whose changes somebody may see. */
export interface FeedScope {
  /** Those of the catalogue. */
  readonly machines: boolean;
  /** The organization whose clusters' are; undefined for none. */
  readonly organizationId: number | undefined;
  /** Machines that are sold out as well; false unless given. */
  readonly withSoldOut?: boolean;
}

export interface Change {
  readonly position: number;
  /** Its cursor. */
  readonly id: string;
  readonly type: string;
  /** All of it, as JSON. */
  readonly json: string;
  /** True: only for scopes with sold-out machines. False: only for the others. Undefined: for all. */
  readonly withSoldOut?: boolean;
}

/** True for a change that a scope sees. */
export const isFor = (change: Change, { withSoldOut = false }: FeedScope): boolean =>
  change.withSoldOut === undefined || change.withSoldOut === withSoldOut;

export interface ChangesPage {
  readonly changes: readonly Change[];
  readonly next: Cursor;
  /** There are more behind `next`. */
  readonly more: boolean;
  readonly currency: string | undefined;
}

/** Where somebody begins who is about to list everything, and where the feed is. */
export interface Beginning {
  readonly start: Cursor;
  readonly head: Cursor;
  readonly currency: string | undefined;
}

/** Nobody can say what has changed since this cursor: what is behind it is not kept, or it is of another lineage. */
export class CursorGone extends Error {
  override readonly name = 'CursorGone';
  /** Where to go on once everything has been listed again. */
  readonly next: Cursor;

  constructor(next: Cursor) {
    super('the changes behind this cursor are not kept');
    this.next = next;
  }
}

/**
 * Seconds by which a starting cursor lies before now. A list that is read with it may come from a reader that has not
 * heard of the newest version yet: it hears of it within a second, or two where the cache is away.
 */
const OVERLAP_S = 30;

/**
 * Runs a read from Postgres, capped in number and time. Rejects with `Unavailable`.
 * The primary answers if a replica's result fails `check`, and it answers first if there is no `check`.
 */
export type RunRead = <T>(read: (sql: Sql) => Promise<T>, check?: (result: T) => boolean) => Promise<T>;

export class FeedReads {
  readonly #run: RunRead;
  readonly #newest: () => number;
  /** Of the newest read. */
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

  /**
   * Returns the place that a cursor names. A cursor that the known feed did not make causes a read: the reader may not know
   * yet that the database was replaced.
   * @param text matches `CURSOR_TEXT`
   * @throws CursorGone · Unavailable
   */
  async find(text: string): Promise<Cursor> {
    const known = this.#feed?.decode(text);
    if (known) return known;
    const { start } = await this.beginning();
    const found = start.feed.decode(text);
    if (!found) throw new CursorGone(start);
    return found;
  }

  /** One read for all who ask meanwhile: an earlier start tells what a later one does, and more. */
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

  /**
   * Changes of the catalogue behind a cursor. The same snapshot gives the organizations with cluster changes behind it.
   * @throws CursorGone
   */
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
    await this.#checkKept(after, [page]);
    return { ...merge(this.#feedOf(page.head), page, [], limit), organizations: page.organizations };
  }

  /**
   * @param range.upTo the last position that counts; all do unless given
   * @param range.reaches a position that the server must have, the newest known one unless given: a server that lacks it
   * would hide changes
   * @throws CursorGone · Unavailable where no server that answers has this position
   */
  async page(
    scope: FeedScope,
    after: Cursor,
    limit: number,
    { upTo, reaches = this.#newest() }: { readonly upTo?: number; readonly reaches?: number } = {},
  ): Promise<ChangesPage> {
    const { machines, organizationId } = scope;
    const question = { after: after.position, limit, ...(upTo === undefined ? {} : { upTo }) };
    const pages = await Promise.all([
      ...(machines ? [this.#read({ ...question, organizationId: undefined }, reaches)] : []),
      ...(organizationId === undefined ? [] : [this.#read({ ...question, organizationId }, reaches)]),
    ]);
    const [first, ...others] = pages;
    if (!first) throw new Error('unreachable: a token without a scope is refused');
    await this.#checkKept(after, pages);
    const merged = merge(this.#feedOf(first.head), first, others, limit);
    return { ...merged, changes: merged.changes.filter((change) => isFor(change, scope)) };
  }

  /** Each read may reach another server behind the same address, so the position of each is checked. */
  async #read(question: FeedQuestion, reaches = 0): Promise<FeedPage> {
    const hasReached = ({ head }: FeedPage) => head.position >= reaches;
    const read = (sql: Sql) => readFeedPage(sql, question);
    // Without a position to reach, only the primary knows where the feed ends.
    const page = await (reaches > 0 ? this.#run(read, hasReached) : this.#run(read));
    if (!hasReached(page)) throw new Unavailable('this PostgreSQL lacks the newest changes');
    return page;
  }

  async #checkKept(after: Cursor, pages: readonly FeedPage[]): Promise<void> {
    for (const { head } of pages)
      if (isGone(after, head)) throw new CursorGone((await this.beginning()).start);
  }
}

function isGone(after: Cursor, { lineage, pruned }: FeedHead): boolean {
  return after.feed.lineage !== lineage || after.position < pruned;
}

/** Both kinds in one order, up to where both are known. */
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

/**
 * The change as scopes without and with sold-out machines see it, once where both see the same. None for a change of what is
 * not shown any more: a later change says that it went.
 */
function changesOf(feed: Feed, row: FeedRow): Change[] {
  const { position, at } = row;
  const id = feed.encode(position);
  const made = ({ type, ...subject }: Seen) => ({
    position,
    id,
    type,
    json: JSON.stringify({ id, at, type, ...subject }),
  });
  const without = seen(row);
  const withThem = row.machineId === null ? without : seenWithSoldOut(row);
  const [one, other] = [without && made(without), withThem && made(withThem)];
  if (one && one.json === other?.json) return [one];
  return [
    ...(one ? [{ ...one, withSoldOut: false }] : []),
    ...(other ? [{ ...other, withSoldOut: true }] : []),
  ];
}

/** The type of a change and the members that describe its subject. */
interface Seen {
  readonly type: string;
  readonly [member: string]: unknown;
}

interface ShownMachine {
  readonly isSoldOut: boolean;
  readonly machine: object;
}

function seen(row: FeedRow): Seen | undefined {
  const { kind: type, machineId, providerId, regionId, slug, shown, before, after } = row;
  switch (type) {
    case 'machine.withdrawn':
    case 'machine.retired':
      return { type, machine_id: machineId, provider_id: providerId, region_id: regionId };
    case 'cluster.deleted':
      return { type, slug };
    case 'catalogue.changed':
      return { type };
  }
  if (shown === null || type.startsWith('sold_out.')) return undefined;
  if (type.startsWith('cluster.')) return { type, cluster: JSON.parse(shown) as unknown };
  const { isSoldOut, machine }: ShownMachine = JSON.parse(shown);
  if (isSoldOut) return undefined;
  if (type !== 'machine.repriced') return { type, machine };
  return { type, machine, before: Number(before), after: Number(after) };
}

/** A change of a machine for a scope that sees sold-out ones. `db/feed-events.ts` says what `before` and `after` mean. */
function seenWithSoldOut({ kind, shown, before, after, ...row }: FeedRow): Seen | undefined {
  const type = kind.replace(/^sold_out\./, 'machine.');
  const { machineId, providerId, regionId } = row;
  const isGone = type === 'machine.retired' || (type === 'machine.withdrawn' && after === null);
  if (isGone) return { type, machine_id: machineId, provider_id: providerId, region_id: regionId };
  if (shown === null) return undefined;
  const found: ShownMachine = JSON.parse(shown);
  const machine = found.isSoldOut ? { ...found.machine, available: false } : found.machine;
  if (type === 'machine.withdrawn') return { type: 'machine.sold_out', machine };
  if (type === 'machine.added' && before !== null) return { type: 'machine.restocked', machine };
  if (type !== 'machine.repriced') return { type, machine };
  return { type, machine, before: Number(before), after: Number(after) };
}

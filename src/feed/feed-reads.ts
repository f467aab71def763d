/** Pages of the changes feed, for one token or for all streams of a reader. */

import type { Sql } from '../db/client.ts';
import {
  type FeedHead,
  type FeedPage,
  type FeedQuestion,
  type FeedRow,
  readFeedOrganizations,
  readFeedPage,
  readFeedStart,
} from '../db/reads/feed.ts';
import { type Cursor, encodeCursor } from './cursor.ts';

/** Whose changes somebody may see. */
export interface FeedScope {
  /** Those of the catalogue. */
  readonly machines: boolean;
  /** The organization whose clusters' are; undefined for none. */
  readonly organizationId: number | undefined;
}

export interface Change {
  readonly position: number;
  /** Its cursor. */
  readonly id: string;
  readonly type: string;
  /** All of it, as JSON. */
  readonly json: string;
}

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

/** Runs a read from Postgres, capped in number and time. Rejects with `Unavailable`. */
export type RunRead = <T>(read: (sql: Sql) => Promise<T>) => Promise<T>;

export class FeedReads {
  readonly #run: RunRead;
  #beginning: Promise<Beginning> | undefined;

  constructor(run: RunRead) {
    this.#run = run;
  }

  /** One read for all who ask meanwhile: an earlier start tells what a later one does, and more. */
  beginning(): Promise<Beginning> {
    this.#beginning ??= this.#readBeginning().finally(() => {
      this.#beginning = undefined;
    });
    return this.#beginning;
  }

  async #readBeginning(): Promise<Beginning> {
    const { lineage, start, position, currency } = await this.#run((sql) => readFeedStart(sql, OVERLAP_S));
    return {
      start: { lineage, position: start },
      head: { lineage, position },
      currency: currency ?? undefined,
    };
  }

  /** Organizations whose clusters have changed between two positions. */
  organizations(after: number, upTo: number): Promise<number[]> {
    return this.#run((sql) => readFeedOrganizations(sql, after, upTo));
  }

  /**
   * @param upTo the last position that counts; all do unless given
   * @throws CursorGone
   */
  async page(scope: FeedScope, after: Cursor, limit: number, upTo?: number): Promise<ChangesPage> {
    const { machines, organizationId } = scope;
    const question = { after: after.position, limit, ...(upTo === undefined ? {} : { upTo }) };
    const read = (asked: FeedQuestion) => this.#run((sql) => readFeedPage(sql, asked));
    const pages = await Promise.all([
      ...(machines ? [read({ ...question, organizationId: undefined })] : []),
      ...(organizationId === undefined ? [] : [read({ ...question, organizationId })]),
    ]);
    const [first, ...others] = pages;
    if (!first) throw new Error('unreachable: a token without a scope is refused');
    for (const { head } of pages)
      if (isGone(after, head)) throw new CursorGone((await this.beginning()).start);
    return merge(first, others, limit);
  }
}

function isGone(after: Cursor, { lineage, pruned }: FeedHead): boolean {
  return after.lineage !== lineage || after.position < pruned;
}

/** Both kinds in one order, up to where both are known. */
function merge(first: FeedPage, others: readonly FeedPage[], limit: number): ChangesPage {
  const pages = [first, ...others];
  const { lineage, currency } = first.head;
  const known = Math.min(...pages.map(({ next }) => next));
  const found = pages.flatMap((page) => page.rows);
  const rows = found.filter(({ position }) => position <= known).sort((a, b) => a.position - b.position);
  const isCut = rows.length > limit;
  const taken = isCut ? rows.slice(0, limit) : rows;
  const position = isCut ? (taken.at(-1)?.position ?? known) : known;
  return {
    changes: taken.flatMap((row) => changeOf(lineage, row) ?? []),
    next: { lineage, position },
    more: isCut || rows.length < found.length || pages.some((page) => page.more),
    currency: currency ?? undefined,
  };
}

/**
 * Undefined for a change of what is shown no more: that it went follows as a change of its own, and there is nothing to
 * show of it.
 */
function changeOf(lineage: string, row: FeedRow): Change | undefined {
  const { position, at, kind: type } = row;
  const subject = subjectOf(row);
  if (!subject) return undefined;
  const id = encodeCursor({ lineage, position });
  return { position, id, type, json: JSON.stringify({ id, at, type, ...subject }) };
}

function subjectOf(row: FeedRow): Readonly<Record<string, unknown>> | undefined {
  const { kind, machineId, providerId, regionId, slug, shown } = row;
  switch (kind) {
    case 'machine.withdrawn':
    case 'machine.retired':
      return { machine_id: machineId, provider_id: providerId, region_id: regionId };
    case 'cluster.deleted':
      return { slug };
    case 'catalogue.changed':
      return {};
  }
  if (shown === null) return undefined;
  const state: unknown = JSON.parse(shown);
  if (kind.startsWith('cluster.')) return { cluster: state };
  if (kind !== 'machine.repriced') return { machine: state };
  return { machine: state, before: Number(row.before), after: Number(row.after) };
}

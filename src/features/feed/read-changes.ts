/** Cursors of the feed, and its pages for one token or for all streams of a reader. */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import {
  type ClientDatabase,
  databaseOn,
  executePrepared,
  inOrganization,
} from '../../db/connection/client.ts';
import { type SQL, sql } from '../../db/connection/drizzle.ts';
import { rfc3339 } from '../../db/connection/statements.ts';
import {
  CLUSTER_JSON,
  IS_PUBLISHED_OR_SOLD_OUT,
  JOIN_OF_CLUSTER,
  MACHINE_JSON,
} from '../../db/published-rows.ts';
import { Slice } from '../../domain/event-loop.ts';
import { Unavailable } from '../../snapshot/document/answer.ts';
import type { Reads } from '../../snapshot/read/postgres-reads.ts';

/** A place in the feed of one database. */
export interface Cursor {
  readonly feed: Feed;
  readonly position: number;
}

const LINEAGE_BYTES = 16;
const POSITION_BYTES = 6;
const OPEN_BYTES = LINEAGE_BYTES + POSITION_BYTES - 16;

/** Matches the text of a cursor: 22 bytes in base64url without padding. */
export const CURSOR_TEXT = /^[A-Za-z0-9_-]{29}[AQgw]$/;

export function encodeCursor({ feed, position }: Cursor): string {
  return feed.encode(position);
}

/** A cursor is 22 bytes: lineage and position. The last 16 are one AES block, so only the key makes or reads cursors. */
export class Feed {
  readonly lineage: string;
  readonly #lineage: Buffer;
  readonly #key: string;
  readonly #cipher: ReturnType<typeof createCipheriv>;
  readonly #decipher: ReturnType<typeof createDecipheriv>;

  constructor(lineage: string, key: string) {
    this.lineage = lineage;
    this.#lineage = bytesOf(lineage);
    this.#key = key;
    // ECB is safe here: a message is one block, and each block holds another position.
    this.#cipher = createCipheriv('aes-128-ecb', bytesOf(key), null).setAutoPadding(false);
    this.#decipher = createDecipheriv('aes-128-ecb', bytesOf(key), null).setAutoPadding(false);
  }

  is(lineage: string, key: string): boolean {
    return this.lineage === lineage && this.#key === key;
  }

  encode(position: number): string {
    const bytes = Buffer.alloc(LINEAGE_BYTES + POSITION_BYTES);
    this.#lineage.copy(bytes);
    bytes.writeUIntBE(position, LINEAGE_BYTES, POSITION_BYTES);
    this.#cipher.update(bytes.subarray(OPEN_BYTES)).copy(bytes, OPEN_BYTES);
    return bytes.toString('base64url');
  }

  /** Returns the cursor of a text; undefined for a text of another feed. */
  decode(text: string): Cursor | undefined {
    const bytes = Buffer.from(text, 'base64url');
    this.#decipher.update(bytes.subarray(OPEN_BYTES)).copy(bytes, OPEN_BYTES);
    if (!bytes.subarray(0, LINEAGE_BYTES).equals(this.#lineage)) return undefined;
    return { feed: this, position: bytes.readUIntBE(LINEAGE_BYTES, POSITION_BYTES) };
  }
}

const bytesOf = (uuid: string): Buffer => Buffer.from(uuid.replaceAll('-', ''), 'hex');

/** The state of the feed. */
interface FeedHead {
  readonly lineage: string;
  /** Of its prices; null while the database does not know it. */
  readonly currency: string | null;
  /** Of the newest change. */
  readonly position: number;
  /** Changes up to this position are deleted. */
  readonly pruned: number;
  /** Encrypts cursors: a UUID. */
  readonly cursorKey: string;
}

/** One change. It shows the current state of its machine or cluster. A later change follows as its own row. */
interface FeedRow {
  readonly position: number;
  /** RFC 3339, with microseconds. */
  readonly at: string;
  readonly kind: string;
  readonly machineId: number | null;
  readonly providerId: number | null;
  readonly regionId: number | null;
  /** Of a machine: the price that the feed stated before this change, and with it. */
  readonly before: string | null;
  readonly after: string | null;
  readonly slug: string | null;
  /** The cluster, or `{isSoldOut, machine}`, as JSON; null if it is not shown any more. */
  readonly shown: string | null;
}

interface FeedPage {
  readonly head: FeedHead;
  readonly rows: readonly FeedRow[];
  /** Organizations with cluster changes behind `after`, up to the head. Empty unless requested. */
  readonly organizations: readonly number[];
  readonly next: number;
  readonly more: boolean;
}

interface FeedQuestion {
  /** The organization of cluster changes; undefined for changes of the catalogue. */
  readonly organizationId: number | undefined;
  readonly after: number;
  /** Changes up to this position; all of them unless given. */
  readonly upTo?: number;
  readonly limit: number;
  readonly withOrganizations?: boolean;
}

/** The head, and one change or none. `place` is the position of the change. */
type PageRow = FeedHead &
  Omit<FeedRow, 'position'> & {
    readonly place: number | null;
    readonly organizations: readonly number[] | null;
  };

/** @param seconds how much older than now a list may be that a client reads */
export async function readFeedStart(
  db: ClientDatabase,
  seconds: number,
): Promise<FeedHead & { start: number }> {
  const rows = await executePrepared<FeedHead & { start: number }>(
    db,
    sql`
    select ${HEAD},
      coalesce((select min(last - count) from feed_changes where at > now() - ${seconds} * interval '1 second'),
        h.position)::float8 as start
    from ${PLACE_OF_FEED}`,
  );
  const head = headOf(rows);
  return { ...head, start: Math.max(head.pruned, rows[0]?.start ?? 0) };
}

export async function readFeedPage(db: ClientDatabase, question: FeedQuestion): Promise<FeedPage> {
  const { organizationId, after, upTo = Number.MAX_SAFE_INTEGER, limit, withOrganizations } = question;
  const found = await inOrganization(db, organizationId, (snapshot) =>
    executePrepared<PageRow>(
      snapshot,
      sql`
      with parts as materialized (
        select f.*, sum(f.count) over (order by f.last) - f.count as ahead from (
          select * from feed_changes where ${ofScope(organizationId)} and last > ${after} and last <= ${upTo}
          order by last limit ${limit + 1}
        ) f
      ), changes as materialized (
        select p.last - p.count + c.nth as position, p.at, p.region_id, p.organization_id, c.*
        from parts p cross join lateral unnest(p.kinds, p.machine_ids, p.before, p.after, p.slugs)
          with ordinality c (kind, machine_id, before, after, slug, nth)
        -- Most of the first part may be before the cursor.
        where p.ahead <= ${limit} + (select count from parts order by last limit 1)
          and p.last - p.count + c.nth > ${after}
        order by 1 limit ${limit + 1}
      )
      select ${HEAD}, touched.organizations, change.position::float8 as place, change.kind,
        ${rfc3339(sql`change.at`, 'us')} as at,
        change.machine_id as "machineId", r.provider_id as "providerId", change.region_id as "regionId",
        change.before, change.after, change.slug,
        -- A subquery for each row: the plan of a join with a large catalogue is unpredictable.
        (${organizationId === undefined ? MACHINE : CLUSTER})::text as shown
      from ${PLACE_OF_FEED}
      cross join lateral (${withOrganizations ? touchedBehind(after) : sql`select null::int[] as organizations`}) touched
      left join changes change on true
      left join regions r on r.id = change.region_id
      order by change.position`,
    ),
  );
  const head = headOf(found);
  const organizations = found[0]?.organizations ?? [];
  const rows: FeedRow[] = found.flatMap(({ place, ...row }) =>
    place === null ? [] : [{ ...row, position: place }],
  );
  const more = rows.length > limit;
  if (more) rows.pop();
  const next = more ? (rows.at(-1)?.position ?? after) : Math.max(after, Math.min(upTo, head.position));
  return { head, rows, organizations, next, more };
}

/** The limits state that both tables have one row: without statistics, PostgreSQL expects thousands. */
const PLACE_OF_FEED = sql`(select * from feed_head limit 1) h cross join (select * from lineage limit 1) l`;

const HEAD = sql`l.id as lineage, l.currency, h.position::float8 as position, h.pruned::float8 as pruned, h.cursor_key as "cursorKey"`;

function headOf([row]: readonly FeedHead[]): FeedHead {
  if (!row) throw new Error('the database has no feed; run `fleetbook migrate`');
  return row;
}

const touchedBehind = (after: number): SQL => sql`
  select array_agg(id) as organizations from feed_organizations(${after}, h.position) id`;

const ofScope = (organizationId: number | undefined): SQL =>
  organizationId === undefined ? sql`organization_id is null` : sql`organization_id = ${organizationId}`;

const MACHINE = sql`
  select json_build_object('isSoldOut', m.excluded_reason is not null, 'machine', ${sql.raw(MACHINE_JSON)})
  from machines m join regions r on r.id = m.region_id
  join providers p on p.id = r.provider_id
  where m.id = change.machine_id and ${sql.raw(IS_PUBLISHED_OR_SOLD_OUT)}`;

const CLUSTER = sql`
  select ${sql.raw(CLUSTER_JSON)} from clusters c ${sql.raw(JOIN_OF_CLUSTER)}
  where c.organization_id = change.organization_id and c.slug = change.slug and c.retired_at is null`;

/** The changes that a token may see. */
export interface FeedScope {
  readonly machines: boolean;
  readonly organizationId: number | undefined;
  /** Includes sold-out machines; false unless given. */
  readonly withSoldOut?: boolean;
  /** The only machines whose changes it has; undefined for all of them. */
  readonly machineIds?: ReadonlySet<number> | undefined;
  /** The organization that has the reads in its share, with and without the permission to read clusters. */
  readonly shareOf?: number;
}

export interface Change {
  readonly position: number;
  readonly id: string;
  readonly type: string;
  readonly json: string;
  /** Null for a change of no machine. */
  readonly machineId: number | null;
  /** True: for scopes with sold-out machines. False: for scopes without. Undefined: for all scopes. */
  readonly withSoldOut?: boolean;
}

export const isFor = (
  { withSoldOut, machineId }: Change,
  { withSoldOut: wantsSoldOut = false, machineIds }: FeedScope,
): boolean =>
  (withSoldOut === undefined || withSoldOut === wantsSoldOut) &&
  (machineIds === undefined || machineId === null || machineIds.has(machineId));

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
export type RunRead = Reads['run'];

export class FeedReads {
  readonly #run: RunRead;
  readonly #newest: () => number;
  #feed: Feed | undefined;
  #beginning: Promise<Beginning> | undefined;

  /** @param newest the newest position that this reader knows; 0 while entries may be lost */
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
    const found = await this.#run((client) => readFeedStart(databaseOn(client), OVERLAP_S));
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
    const merged = await merge(this.#feedOf(page.head), page, [], limit);
    return { ...merged, organizations: page.organizations };
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
    const merged = await merge(this.#feedOf(first.head), first, others, limit);
    return { ...merged, changes: merged.changes.filter((change) => isFor(change, scope)) };
  }

  /** Checks the position of every read: several servers may be behind one address. */
  async #read(question: FeedQuestion, reaches = 0, organizationId?: number): Promise<FeedPage> {
    const hasReached = ({ head }: FeedPage) => head.position >= reaches;
    // Without a position to reach, only the primary knows the end of the feed.
    const page = await this.#run((client) => readFeedPage(databaseOn(client), question), {
      ...(reaches > 0 && { check: hasReached }),
      organizationId,
    });
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
async function merge(
  feed: Feed,
  first: FeedPage,
  others: readonly FeedPage[],
  limit: number,
): Promise<ChangesPage> {
  const pages = [first, ...others];
  const known = Math.min(...pages.map(({ next }) => next));
  const found = pages.flatMap((page) => page.rows);
  const rows = found.filter(({ position }) => position <= known).sort((a, b) => a.position - b.position);
  const isCut = rows.length > limit;
  const taken = isCut ? rows.slice(0, limit) : rows;
  const position = isCut ? (taken.at(-1)?.position ?? known) : known;
  const changes: Change[] = [];
  const slice = new Slice();
  for (const row of taken) {
    changes.push(...changesOf(feed, row));
    if (slice.isOver) await slice.next();
  }
  return {
    changes,
    next: { feed, position },
    more: isCut || rows.length < found.length || pages.some((page) => page.more),
    currency: first.head.currency ?? undefined,
  };
}

/** Returns one change if all scopes see the same; none if its object is not shown any more: a later change states that. */
function changesOf(feed: Feed, row: FeedRow): Change[] {
  const { position, at, machineId } = row;
  const id = feed.encode(position);
  const made = ({ type, ...subject }: ShownChange) => ({
    position,
    id,
    type,
    machineId,
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

/** Returns a change for scopes with or without sold-out machines. See append-changes.ts for `before` and `after`. */
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

/** Changes of price books. Each is one transaction with its audit row, and raises the version of the organization. */
import { audit } from '../../db/audit.ts';
import type { Database } from '../../db/connection/connect.ts';
import { and, eq, inArray, isNull, sql } from '../../db/connection/drizzle.ts';
import { rfc3339 } from '../../db/connection/statements.ts';
import { lineage, organizations, priceBookEntries } from '../../db/schema.ts';
import { RAISE } from '../../db/versions.ts';
import type { Decider } from '../../domain/operator.ts';
import { overlap, type PriceBookEntry, selectorOf } from '../../domain/prices/price-book.ts';
import { BOOK_ENTRY_JSON } from '../../snapshot/document/load.ts';
import type { GivenEntry, PriceBookFile } from './answers.ts';
import { atPlace, BadEntry, type Names, type NewEntry, readEntry, timeOf } from './entries.ts';

/** Entries of a book that apply or begin later. More are a mistake: readers keep each book in memory. */
const MOST_ENTRIES = 2000;

/** Ids of entries. */
export interface ImportResult {
  readonly added: readonly number[];
  readonly changed: readonly number[];
  readonly ended: readonly number[];
  readonly removed: readonly number[];
  readonly kept: number;
}

/** Returns the changes of a book, as made by one operator. A change that throws `BadEntry` has stored nothing. */
export function priceBookChanges(db: Database, decider: Decider) {
  const record = (tx: Database, action: string, slug: string, details: Readonly<Record<string, unknown>>) =>
    audit(tx, decider, { action, subject: { kind: 'organization', id: slug }, details });
  return {
    /** Returns the id of the entry. */
    add: (slug: string, given: GivenEntry, names: Names): Promise<number> =>
      inBook(db, slug, async (tx, { organizationId, now, entries }) => {
        const entry = entryToAdd(given, names, { now, entries });
        const [id = 0] = await insert(tx, organizationId, [entry]);
        await record(tx, 'price.add', slug, { entry: id, ...given, from: entry.from });
        return { done: id, isChanged: true };
      }),

    /** Returns when the entry ends; null if it had not begun, and was removed. */
    end: (slug: string, id: number, at: string | undefined): Promise<string | null> =>
      inBook(db, slug, async (tx, { now, entries }) => {
        const entry = entries.find((each) => each.id === id);
        if (!entry)
          throw new BadEntry(
            'entry',
            `${id} is not in the book of ${slug}`,
            '`fleetbook price list` shows it',
          );
        const to = endOf(entry, timeOf('at', at), now);
        if (to === null) await remove(tx, [id]);
        else await setEnd(tx, id, to);
        await record(tx, 'price.end', slug, { entry: id, to });
        return { done: to, isChanged: true };
      }),

    /** Replaces the book by the entries of a file. Equal entries keep their ids, and ended ones stay. */
    replace: (
      slug: string,
      { entries: given, currency }: PriceBookFile,
      names: Names,
    ): Promise<ImportResult> =>
      inBook(db, slug, async (tx, { organizationId, now, entries }) => {
        await checkCurrency(tx, currency);
        const wanted = given.map((each, i) => atPlace(i + 1, () => readEntry(each, names)));
        const plan = planImport(entries, wanted, now);
        checkBook(plan.after, now);
        const result = await store(tx, organizationId, plan);
        const { kept, added, ...others } = result;
        const isChanged = [added, ...Object.values(others)].some(({ length }) => length > 0);
        const withValues = plan.added.map(({ place }, i) => ({ entry: added[i], ...given[place - 1] }));
        if (isChanged) await record(tx, 'price.import', slug, { added: withValues, ...others, kept });
        return { done: result, isChanged };
      }),
  };
}

/** Returns the entry as it would be stored. @throws BadEntry if the book cannot have it */
export function entryToAdd(
  given: GivenEntry,
  names: Names,
  { now, entries }: Pick<Book, 'now' | 'entries'>,
): BegunEntry {
  const entry = begun(readEntry(given, names), now);
  checkBook([...entries, entry], now);
  return entry;
}

interface Book {
  readonly organizationId: number;
  /** The time of PostgreSQL, in the form of the entries' times. */
  readonly now: string;
  readonly entries: readonly PriceBookEntry[];
}

/** Changes a book. The lock of its organization orders writers, so that no two of them store overlapping entries. */
async function inBook<T>(
  db: Database,
  slug: string,
  change: (tx: Database, book: Book) => Promise<{ readonly done: T; readonly isChanged: boolean }>,
): Promise<T> {
  return db.transaction(async (tx) => {
    const [organization] = await tx
      .select({ id: organizations.id })
      .from(organizations)
      .where(and(eq(organizations.slug, slug), isNull(organizations.deletedAt)))
      .for('no key update');
    if (!organization)
      throw new BadEntry(
        'organization',
        `"${slug}" does not exist, or is deleted`,
        '`fleetbook org list --all` shows all',
      );
    const organizationId = organization.id;
    // The clock after the lock: the writer before may have ended an entry after this transaction began.
    const [clock] = await tx.execute<{ now: string }>(sql`
      select ${rfc3339(sql`clock_timestamp()`, 'ms')} as now`);
    const rows = await tx.execute<{ entry: PriceBookEntry }>(sql`
      select ${sql.raw(BOOK_ENTRY_JSON)} as entry from price_book_entries e
      where e.organization_id = ${organizationId} order by e.id`);
    const book = { organizationId, now: clock?.now ?? '', entries: rows.map(({ entry }) => entry) };
    const { done, isChanged } = await change(tx, book);
    if (isChanged) await tx.execute(sql`${RAISE.clusters} where ${organizations.id} = ${organizationId}`);
    return done;
  });
}

/** @throws BadEntry if fixed prices of a file are in another currency than the published one */
async function checkCurrency(tx: Database, currency: string | undefined): Promise<void> {
  if (currency === undefined) return;
  const [published] = await tx.select({ currency: lineage.currency }).from(lineage);
  if (published?.currency == null || published.currency === currency) return;
  throw new BadEntry(
    'currency',
    `of the file is "${currency}", and prices are in ${published.currency}`,
    'convert the fixed prices, and correct the field',
  );
}

/** @throws BadEntry if the book cannot be as it would be then */
function checkBook(entries: readonly BegunEntry[], now: string): void {
  const pair = overlap(entries);
  if (pair) {
    const [earlier, later] = pair.map((entry) => ('id' in entry ? `entry ${entry.id}` : 'a new entry'));
    const until = pair[0].to === undefined ? 'without end' : `until ${pair[0].to}`;
    throw new BadEntry(
      'from',
      `${pair[1].from} of ${later} overlaps ${earlier}, which selects the same machines and applies ${until}`,
      'end that one first, or give a later time',
    );
  }
  const open = entries.filter(({ to }) => to === undefined || to > now).length;
  if (open > MOST_ENTRIES)
    throw new BadEntry(
      'entries',
      `would be ${open}`,
      `a book has at most ${MOST_ENTRIES}; use families and regions instead of machines`,
    );
}

/** Returns the end of an entry; null if it does not begin before. @throws BadEntry */
function endOf(entry: PriceBookEntry, at: string | undefined, now: string): string | null {
  const { id, from, to } = entry;
  if (hasEnded(entry, now))
    throw new BadEntry('entry', `${id} ended at ${to}`, 'ended entries stay, since past prices do');
  if (at !== undefined && at < now)
    throw new BadEntry('at', `${at} is past`, 'past prices stay; leave it out to end the entry now');
  const end = at ?? now;
  if (to !== undefined && end >= to)
    throw new BadEntry('at', `${end} is not before the present end, ${to}`, 'give an earlier time');
  return end > from ? end : null;
}

async function store(tx: Database, organizationId: number, plan: ImportPlan): Promise<ImportResult> {
  const ids = (some: readonly { readonly id: number }[]) => some.map(({ id }) => id);
  const { changed, ended, removed, kept } = plan;
  for (const { id, to } of [...ended, ...changed]) await setEnd(tx, id, to);
  await remove(tx, ids(removed));
  const entries = plan.added.map(({ entry }) => entry);
  const added = await insert(tx, organizationId, entries);
  return { added, changed: ids(changed), ended: ids(ended), removed: ids(removed), kept };
}

/** @param to undefined for no end */
async function setEnd(tx: Database, id: number, to: string | undefined): Promise<void> {
  await tx
    .update(priceBookEntries)
    .set({ validTo: to ?? null })
    .where(eq(priceBookEntries.id, id));
}

/** Removes entries that have not begun: no price depends on them. */
async function remove(tx: Database, ids: readonly number[]): Promise<void> {
  await tx.delete(priceBookEntries).where(inArray(priceBookEntries.id, [...ids]));
}

async function insert(
  tx: Database,
  organizationId: number,
  entries: readonly BegunEntry[],
): Promise<number[]> {
  if (entries.length === 0) return [];
  const rows = await tx
    .insert(priceBookEntries)
    .values(
      entries.map(({ from, to, ...entry }) => ({ organizationId, ...entry, validFrom: from, validTo: to })),
    )
    .returning({ id: priceBookEntries.id });
  return rows.map(({ id }) => id);
}

/** An entry of a file that has its time of beginning. */
export type BegunEntry = Omit<PriceBookEntry, 'id'>;

interface ImportPlan {
  /** The book after the import, ended entries included. */
  readonly after: readonly BegunEntry[];
  /** `place` is the place in the file, from 1. */
  readonly added: readonly { readonly place: number; readonly entry: BegunEntry }[];
  /** Entries with another end. */
  readonly changed: readonly PriceBookEntry[];
  readonly ended: readonly (PriceBookEntry & { readonly to: string })[];
  /** Entries that had not begun. */
  readonly removed: readonly PriceBookEntry[];
  readonly kept: number;
}

const hasEnded = ({ to }: PriceBookEntry, now: string): boolean => to !== undefined && to <= now;

/** Returns an entry with its beginning. @throws BadEntry */
function begun(entry: NewEntry, now: string): BegunEntry {
  if (entry.from === undefined && entry.to !== undefined && entry.to <= now)
    throw new BadEntry('to', `"${entry.to}" is past, and the entry begins now`, 'give from, or a later time');
  return { ...entry, from: entry.from ?? now };
}

/** Finds what an import changes. Times are RFC 3339 to the millisecond, so that texts compare as times. @throws BadEntry for two equal entries, and for an end in the past */
function planImport(
  entries: readonly PriceBookEntry[],
  wanted: readonly NewEntry[],
  now: string,
): ImportPlan {
  const left = new Set(entries);
  const kept: PriceBookEntry[] = [];
  const changed: PriceBookEntry[] = [];
  const added: { place: number; entry: BegunEntry }[] = [];
  /** Takes an entry of the book, so that no two entries of the file keep the same one. */
  const take = (isEqual: (stored: PriceBookEntry) => boolean): PriceBookEntry | undefined => {
    const found = [...left].find(isEqual);
    if (found) left.delete(found);
    return found;
  };
  const takeOpen = (entry: NewEntry) =>
    take(
      (stored) =>
        !hasEnded(stored, now) && isSamePrice(stored, entry) && (entry.from ?? stored.from) === stored.from,
    );
  for (const [i, entry] of wanted.entries()) {
    const same = take(
      (stored) => isSamePrice(stored, entry) && stored.from === entry.from && stored.to === entry.to,
    );
    const open = same ?? takeOpen(entry);
    if (!open) {
      added.push({ place: i + 1, entry: atPlace(i + 1, () => begun(entry, now)) });
    } else if (open.to === entry.to) kept.push(open);
    else if (entry.to !== undefined && entry.to < now)
      throw new BadEntry(
        'to',
        `"${entry.to}" is past, and the entry applies`,
        'past prices stay; give a time from now on',
      ).at(i + 1);
    else changed.push({ ...open, to: entry.to });
  }
  const rest = [...left];
  const past = rest.filter((entry) => hasEnded(entry, now));
  const ended = rest
    .filter((entry) => entry.from < now && !hasEnded(entry, now))
    .map((entry) => ({ ...entry, to: now }));
  const removed = rest.filter((entry) => entry.from >= now);
  const after = [...past, ...ended, ...kept, ...changed, ...added.map(({ entry }) => entry)];
  return { after, added, changed, ended, removed, kept: kept.length };
}

const isSamePrice = (a: BegunEntry | NewEntry, b: BegunEntry | NewEntry): boolean =>
  selectorOf(a) === selectorOf(b) && a.discount === b.discount && a.price === b.price;

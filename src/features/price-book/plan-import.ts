/** Finds what an import changes. Pure. Times are RFC 3339 to the millisecond, so that texts compare as times. */
import { type PriceBookEntry, selectorOf } from '../../domain/prices/price-book.ts';
import { BadEntry } from './bad-entry.ts';
import type { NewEntry } from './read-entry.ts';

/** An entry of a file that has its time of beginning. */
export type BegunEntry = Omit<PriceBookEntry, 'id'>;

export interface ImportPlan {
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

export const hasEnded = ({ to }: PriceBookEntry, now: string): boolean => to !== undefined && to <= now;

export const begun = (entry: NewEntry, now: string): BegunEntry => {
  if (entry.from === undefined && entry.to !== undefined && entry.to <= now)
    throw new BadEntry('to', `"${entry.to}" is past, and the entry begins now`, 'give from, or a later time');
  return { ...entry, from: entry.from ?? now };
};

/** @throws BadEntry for two equal entries, and for an end in the past */
export function planImport(
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

/** Adds the place in the file to an error. */
export function atPlace<T>(place: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof BadEntry ? error.at(place) : error;
  }
}

import type { PriceBookEntry } from '../../domain/price-book.ts';
import type { Document } from './document.ts';

const parsed = new WeakMap<Document, readonly PriceBookEntry[]>();

/** Returns the entries of a price book's document, ended ones included. The first call parses it. */
export function entriesOf(document: Document | undefined): readonly PriceBookEntry[] {
  if (!document) return [];
  const known = parsed.get(document);
  if (known) return known;
  const entries: readonly PriceBookEntry[] = JSON.parse(document.body.identity.toString());
  parsed.set(document, entries);
  return entries;
}

import type { Sql } from '../../db/connection/connect.ts';
import type { PriceBookEntry } from '../../domain/prices/price-book.ts';
import type { Document } from './document.ts';
import { loadPriceBook } from './load-price-book.ts';

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

/** Reads the entries of a price book from PostgreSQL, ended ones included. */
export async function storedEntries(sql: Sql, organizationId: number): Promise<readonly PriceBookEntry[]> {
  const content = await loadPriceBook(sql, organizationId);
  return content ? JSON.parse(content.body.toString()) : [];
}

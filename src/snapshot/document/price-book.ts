import type { Sql } from '../../db/connection/connect.ts';
import { instantText } from '../../db/connection/instant-text.ts';
import type { PriceBookEntry } from '../../domain/prices/price-book.ts';
import { priceBookContent } from './build.ts';
import { checkKey } from './check-key.ts';
import type { Document } from './document.ts';
import type { DocumentContent } from './format.ts';

/** An entry `e` as `PriceBookEntry`, as JSON. */
export const BOOK_ENTRY_JSON = `json_strip_nulls(json_build_object(
  'id', e.id, 'providerId', e.provider_id, 'regionId', e.region_id, 'family', e.family, 'machineId', e.machine_id,
  'term', e.term, 'discount', trim_scale(e.discount)::text, 'price', trim_scale(e.price)::text,
  'from', ${instantText('e.valid_from', 'ms')}, 'to', ${instantText('e.valid_to', 'ms')}))`;

/** Reads the price book of an organization. That of a deleted one is empty, and its version outranks every older copy. */
export async function loadPriceBook(sql: Sql, organizationId: number): Promise<DocumentContent | undefined> {
  // Row-level security on app.org_id and the predicate are each sufficient alone.
  const [, rows] = await sql.begin('read only', (tx) => [
    tx`select set_config('app.org_id', ${String(organizationId)}, true)`,
    tx<{ id: number; version: string; currency: string | null; entry: PriceBookEntry | null }[]>`
      select o.id, o.clusters_version as version, (select currency from lineage) as currency,
        case when e.id is not null then ${tx.unsafe(BOOK_ENTRY_JSON)} end as entry
      from organizations o
      left join price_book_entries e on e.organization_id = o.id and o.deleted_at is null
      where o.id = ${organizationId}
      order by e.id`,
  ]);
  const [first] = rows;
  if (!first) return undefined;
  checkKey(first.id, organizationId);
  const entries = rows.flatMap(({ entry }) => entry ?? []);
  return priceBookContent(organizationId, Number(first.version), entries, first.currency ?? undefined);
}

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

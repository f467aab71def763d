import { openSourceHttp } from '../../src/sources/http/http.ts';
import type { CatalogueAdapter, CatalogueItem } from '../../src/sources/source.ts';

/** Everything that an adapter yields of the source at a URL, read on 1 March 2026; without a token, without credentials. */
export async function readCatalogue(
  adapter: CatalogueAdapter,
  baseUrl: string,
  token?: string,
): Promise<CatalogueItem[]> {
  const { credentials } = adapter;
  const http = openSourceHttp({ baseUrl, credentials, token, deadlineMs: 10_000, maxBytes: 10_000_000 });
  const items: CatalogueItem[] = [];
  for await (const item of adapter.catalogue({ http, now: () => new Date('2026-03-01T00:00:00Z') }))
    items.push(item);
  return items;
}

/** What a test says of items in a word: the exclusion's reason, `offered`, `rejected`, or `unread` of a region. */
export function fates(items: readonly CatalogueItem[]): string[] {
  return items.flatMap((item) => {
    if (item.kind === 'offer') return [item.offer.excluded ?? 'offered'];
    return item.kind === 'rejected' || item.kind === 'unread' ? [item.kind] : [];
  });
}

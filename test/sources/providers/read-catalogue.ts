import { openSourceHttp } from '../../../src/sources/http/http.ts';
import type { AnyCatalogueAdapter, CatalogueItem } from '../../../src/sources/source.ts';

/** Returns all items that an adapter yields for a URL, read on 1 March 2026 without credentials by default. */
export async function readCatalogue(
  adapter: AnyCatalogueAdapter,
  baseUrl: string,
  token?: string,
  options: Readonly<Record<string, string>> = {},
): Promise<CatalogueItem[]> {
  const { credentials } = adapter;
  const http = openSourceHttp({ baseUrl, credentials, token, deadlineMs: 10_000, maxBytes: 10_000_000 });
  return await Array.fromAsync(
    adapter.catalogue({ http, now: () => new Date('2026-03-01T00:00:00Z'), options }),
  );
}

/** The state of an item: `offered`, `rejected`, `unread` (a region), or the exclusion's reason. */
export function fates(items: readonly CatalogueItem[]): string[] {
  return items.flatMap((item) => {
    if (item.kind === 'offer') return [item.offer.excluded ?? 'offered'];
    return item.kind === 'rejected' || item.kind === 'unread' ? [item.kind] : [];
  });
}

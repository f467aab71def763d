import { openSourceHttp } from '../../../src/sources/http/http.ts';
import type { AnyCatalogueAdapter, CatalogueItem } from '../../../src/sources/source.ts';

/** Returns all items that an adapter yields for a source at this URL. */
export async function readItems(
  adapter: AnyCatalogueAdapter,
  baseUrl: string,
  options: Readonly<Record<string, string>>,
): Promise<CatalogueItem[]> {
  const http = openSourceHttp({
    baseUrl,
    credentials: adapter.credentials,
    token: 'token',
    deadlineMs: 5_000,
    maxBytes: 1_000_000,
  });
  return await Array.fromAsync(
    adapter.catalogue({ http, now: () => new Date('2026-03-01T00:00:00Z'), options }),
  );
}

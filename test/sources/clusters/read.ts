import type { DescribedCluster } from '../../../src/domain/cluster.ts';
import { fixedCredentials } from '../../../src/sources/credentials/provider.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import type { ClusterAdapter, ClusterItem } from '../../../src/sources/source.ts';

const TOKEN = 'key:secret';

/** Returns all items that an adapter yields for a source at this URL. */
export async function readClusterItems(
  adapter: ClusterAdapter,
  url: string,
  options: Readonly<Record<string, string>> = {},
  token = TOKEN,
): Promise<ClusterItem[]> {
  const http = openSourceHttp({
    baseUrl: url,
    credentials: adapter.credentials,
    token,
    deadlineMs: 5_000,
    maxBytes: 1_000_000,
  });
  const now = () => new Date('2026-03-01T00:00:00Z');
  return await Array.fromAsync(
    adapter.clusters({ http, now, options, address: { url, credentials: fixedCredentials(token) } }),
  );
}

/** Returns the clusters of a read without rejected rows. */
export function onlyClusters(items: readonly ClusterItem[]): DescribedCluster[] {
  return items.map((item) => {
    if (item.kind === 'cluster') return item.cluster;
    throw new Error(`no cluster but ${JSON.stringify(item)}`);
  });
}

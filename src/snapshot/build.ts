/** Rows to document contents. Pure: the same rows give the same bytes in the publisher and in the reader. */
import type { ClusterDocument } from '../domain/cluster.ts';
import type { MachineDocument } from '../domain/machine.ts';
import type { DocumentContent } from './format.ts';
import type { DocumentName } from './keys.ts';

/** A list of elements with their keys, in the order in which they are shown. */
function listContent(
  name: DocumentName,
  version: number,
  elements: Iterable<readonly [key: string, element: unknown]>,
  sources: readonly string[],
): DocumentContent {
  const index = new Map<string, readonly [number, number]>();
  const parts: string[] = [];
  let end = 1;
  for (const [key, element] of elements) {
    const json = JSON.stringify(element);
    if (parts.length > 0) end += 1;
    const start = end;
    end += Buffer.byteLength(json);
    index.set(key, [start, end]);
    parts.push(json);
  }
  return { name, version, body: Buffer.from(`[${parts.join(',')}]`), index, sources: [...sources].sort() };
}

export interface RegionHead {
  readonly id: number;
  readonly code: string;
  readonly name: string;
  readonly version: number;
  readonly provider: { readonly id: number; readonly name: string };
}

export interface MachineRow {
  readonly id: number;
  readonly name: string;
  readonly ram: number;
  readonly cpu: number;
  readonly price: number;
  readonly ramUnit: MachineDocument['ram_unit'];
}

/** The machines of one region, in the order of `rows`; the key is the machine's id. */
export function regionContent(
  region: RegionHead,
  rows: readonly MachineRow[],
  sources: readonly string[],
): DocumentContent {
  const provider = { id: region.provider.id, name: region.provider.name };
  const regionField = { id: region.id, name: region.name, code: region.code };
  return listContent(
    { kind: 'region', regionId: region.id },
    region.version,
    rows.map((row): [string, MachineDocument] => [
      String(row.id),
      {
        id: row.id,
        name: row.name,
        ram: row.ram,
        cpu: row.cpu,
        price: row.price,
        ram_unit: row.ramUnit,
        provider,
        region: regionField,
      },
    ]),
    sources,
  );
}

/** The clusters of one organization, in the order given; the key is the slug. */
export function clustersContent(
  organizationId: number,
  version: number,
  clusters: readonly ClusterDocument[],
  sources: readonly string[],
): DocumentContent {
  return listContent(
    { kind: 'clusters', organizationId },
    version,
    clusters.map((cluster): [string, ClusterDocument] => [cluster.slug, cluster]),
    sources,
  );
}

export interface ProviderListing {
  readonly id: number;
  readonly name: string;
  readonly regions: readonly { readonly id: number; readonly name: string; readonly code: string }[];
}

/**
 * Every provider with its regions; the key is `<provider id>/<region id>` and leads to the provider, so that a
 * reader can tell without further I/O whether a region exists at a provider.
 */
export function providersContent(
  version: number,
  providers: readonly ProviderListing[],
  sources: readonly string[],
): DocumentContent {
  const content = listContent(
    { kind: 'providers' },
    version,
    providers.map((provider): [string, ProviderListing] => [String(provider.id), provider]),
    sources,
  );
  const index = new Map<string, readonly [number, number]>();
  for (const provider of providers) {
    const place = content.index.get(String(provider.id));
    if (place) for (const region of provider.regions) index.set(regionKey(provider.id, region.id), place);
  }
  return { ...content, index };
}

/** Key of a region in the index of the providers document. */
export function regionKey(providerId: number, regionId: number): string {
  return `${providerId}/${regionId}`;
}

/** What is kept about a token. A revoked one stays as a tombstone: a deletion could be undone by a late write-back. */
export interface TokenRecord {
  readonly id: number;
  readonly organizationId: number;
  readonly scopes: readonly string[];
  /** Milliseconds since the epoch; null for a token that does not expire. */
  readonly expiresAt: number | null;
  readonly revoked: boolean;
}

export function tokenContent(hash: string, version: number, record: TokenRecord): DocumentContent {
  return {
    name: { kind: 'token', hash },
    version,
    body: Buffer.from(JSON.stringify(record)),
    index: new Map(),
    sources: [],
  };
}

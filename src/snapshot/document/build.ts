/** Builds documents from rows. The same rows give the same bytes in the publisher and in the reader. */
import type { ClusterDocument } from '../../domain/cluster.ts';
import type { MachineDocument } from '../../domain/machine.ts';
import type { PriceBookEntry } from '../../domain/prices/price-book.ts';
import type { Document, Provenance } from './document.ts';
import type { DocumentContent } from './format.ts';
import { type DocumentName, regionKey } from './keys.ts';

/** Builds the document of a list. Its elements may come in parts, so that a long list takes several turns of the event loop. */
export class ListBuilder {
  readonly #index = new Map<string, readonly [number, number]>();
  readonly #parts: string[] = [];
  #end = 1;

  add(elements: Iterable<Element>): this {
    const texts: string[] = [];
    for (const [key, json] of elements) {
      if (this.#end > 1) this.#end += 1;
      const start = this.#end;
      this.#end += Buffer.byteLength(json);
      this.#index.set(key, [start, this.#end]);
      texts.push(json);
    }
    if (texts.length > 0) this.#parts.push(texts.join(','));
    return this;
  }

  content(name: DocumentName, version: number, { sources, currency }: Provenance): DocumentContent {
    const body = Buffer.from(`[${this.#parts.join(',')}]`);
    return { name, version, body, index: this.#index, sources: [...sources].sort(), currency };
  }
}

function listContent(
  name: DocumentName,
  version: number,
  elements: Iterable<Element>,
  provenance: Provenance,
): DocumentContent {
  return new ListBuilder().add(elements).content(name, version, provenance);
}

export interface RegionHead {
  readonly id: number;
  readonly code: string;
  readonly name: string;
  readonly country?: string | null;
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

export type Element = readonly [key: string, json: string];

/** Returns a function that builds a machine's element; the key is the machine's id. */
export function machineElements(region: RegionHead): (row: MachineRow) => Element {
  const where: Pick<MachineDocument, 'provider' | 'region'> = {
    provider: { id: region.provider.id, name: region.provider.name },
    region: { id: region.id, name: region.name, code: region.code },
  };
  const end = `,${JSON.stringify(where).slice(1)}`;
  return ({ id, name, ram, cpu, price, ramUnit }) => {
    const own: Omit<MachineDocument, keyof typeof where> = { id, name, ram, cpu, price, ram_unit: ramUnit };
    return [String(id), JSON.stringify(own).slice(0, -1) + end];
  };
}

export function regionContent(
  region: RegionHead,
  rows: Iterable<MachineRow>,
  provenance: Provenance,
): DocumentContent {
  const machines = Iterator.from(rows).map(machineElements(region));
  return listContent({ kind: 'region', regionId: region.id }, region.version, machines, provenance);
}

export function clustersContent(
  organizationId: number,
  version: number,
  clusters: readonly ClusterDocument[],
  provenance: Provenance,
): DocumentContent {
  return listContent(
    { kind: 'clusters', organizationId },
    version,
    clusters.map((cluster) => [cluster.slug, JSON.stringify(cluster)]),
    provenance,
  );
}

export function priceBookContent(
  organizationId: number,
  version: number,
  entries: readonly PriceBookEntry[],
  currency: string | undefined,
): DocumentContent {
  return { ...valueContent({ kind: 'price-book', organizationId }, version, entries), currency };
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

/** Returns a document without elements and sources. */
function valueContent(name: DocumentName, version: number, value: unknown): DocumentContent {
  return { name, version, body: Buffer.from(JSON.stringify(value)), index: new Map(), sources: [] };
}

export interface ProviderListing {
  readonly id: number;
  readonly name: string;
  readonly regions: readonly { readonly id: number; readonly name: string; readonly code: string }[];
}

/**
 * The keys are `<provider id>/<region id>`: a reader checks a region of a provider without further I/O, and finds all regions
 * while PostgreSQL is away.
 * @param unlisted keys of regions with plans of databases alone: the body omits them, so they have no place in it
 */
export function providersContent(
  version: number,
  providers: readonly ProviderListing[],
  provenance: Provenance,
  unlisted: readonly string[] = [],
): DocumentContent {
  const content = listContent(
    { kind: 'providers' },
    version,
    providers.map((provider) => [String(provider.id), JSON.stringify(provider)]),
    provenance,
  );
  const index = new Map<string, readonly [number, number]>();
  for (const provider of providers) {
    const place = content.index.get(String(provider.id));
    if (place) for (const region of provider.regions) index.set(regionKey(provider.id, region.id), place);
  }
  for (const key of unlisted) index.set(key, [0, 0]);
  return { ...content, index };
}

/** A token. A revoked one is a tombstone, because a late write-back could undo a deletion. */
export interface TokenRecord {
  readonly id: number;
  readonly organizationId: number;
  readonly scopes: readonly string[];
  readonly expiresAt: number | null;
  readonly revoked: boolean;
}

export function tokenContent(hash: string, version: number, record: TokenRecord): DocumentContent {
  return valueContent({ kind: 'token', hash }, version, record);
}

import { inSlices, nextTurn } from '../domain/event-loop.ts';
import { Unavailable } from '../snapshot/document/answer.ts';
import { readColumns } from '../snapshot/document/columns.ts';
import { placeOfRegion } from '../snapshot/document/keys.ts';
import { loadFreshness, loadRegionVersions } from '../snapshot/document/load.ts';
import type { Documents } from '../snapshot/read/documents.ts';
import type { Stamps } from '../snapshot/read/freshness.ts';
import { type CatalogueIndex, indexBytes, type RegionUpdate, updateIndex } from './catalogue-index.ts';

/** Concurrent reads of documents, and rows of one merge. Until then their names take memory. */
const READS_AT_ONCE = 4;
const ROWS_AT_ONCE = 100_000;

/** Machines cannot be searched now. The message has the reason for the client. */
export class SearchUnavailable extends Unavailable {}

export class TooLarge extends SearchUnavailable {
  constructor() {
    super('Machines cannot be searched here: their index is larger than its part of MEMORY_LIMIT.', 60);
  }
}

export interface MergeOptions {
  readonly documents: Documents;
  readonly memoryLimit: number;
  /** True after a change of lineage: the index is of no use then. */
  readonly isOver: () => boolean;
}

/** Reads the version of every region from Postgres, and the stamps that they cover; undefined if Postgres does not answer. */
export async function storedVersions(
  documents: Documents,
): Promise<{ stamps: Stamps; versions: Map<number, number> } | undefined> {
  try {
    return await documents.postgres(async (sql) => {
      // Stamps first, from the same server: it may be a replica that is behind.
      const stamps = await loadFreshness(sql);
      return { stamps, versions: await loadRegionVersions(sql) };
    });
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    return undefined;
  }
}

export async function listedRegions(documents: Documents): Promise<Map<number, number>> {
  const { document } = await documents.get({ kind: 'providers' });
  return new Map(document?.keys().map((key) => [placeOfRegion(key).regionId, 0]));
}

export async function mergeRegions(
  before: CatalogueIndex,
  wanted: ReadonlyMap<number, number>,
  { documents, memoryLimit, isOver }: MergeOptions,
) {
  let index = before;
  let knownSince: number | undefined;
  /** Source of a region → the time of the region's document. */
  const read = new Map<string, string>();
  let updates: RegionUpdate[] = [];
  let rows = 0;
  const merge = async () => {
    if (updates.length > 0) index = await inSlices(updateIndex(index, updates));
    updates = [];
    rows = 0;
    if (indexBytes(index) > memoryLimit) throw new TooLarge();
  };
  const versionOf = (region: number) => before.regions[before.regionOf.get(region) ?? -1]?.version ?? -1;
  const queue = [...wanted].filter(([region, version]) => version === 0 || version > versionOf(region));
  for (let from = 0; from < queue.length; from += READS_AT_ONCE) {
    if (isOver()) break;
    const batch = queue.slice(from, from + READS_AT_ONCE);
    const found = await Promise.all(
      batch.map(([regionId, version]) => documents.readApart({ kind: 'columns', regionId }, version)),
    );
    for (const { document, knownAt, asOf } of found) {
      if (knownAt !== undefined) knownSince = Math.min(knownAt, knownSince ?? knownAt);
      if (asOf !== undefined) for (const id of document?.sources ?? []) read.set(id, `catalogue ${asOf}`);
      // The columns of a large region take about a slice.
      await nextTurn();
      const columns = document && readColumns(document.body.identity);
      if (!columns || document.version <= versionOf(columns.region.id)) continue;
      const { version, body, sources, currency } = document;
      const { region, provider, country } = columns;
      updates.push({ region, provider, country, version, hash: body.hash, sources, currency, columns });
      rows += columns.ids.length;
    }
    if (rows >= ROWS_AT_ONCE) await merge();
  }
  await merge();
  return { index, knownSince, read };
}

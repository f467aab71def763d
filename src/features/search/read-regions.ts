/** Reads the regions of an index from their documents. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Unavailable } from '../../snapshot/document/answer.ts';
import { readColumns } from '../../snapshot/document/columns.ts';
import { loadFreshness } from '../../snapshot/document/load.ts';
import { loadRegionVersions } from '../../snapshot/document/load-region.ts';
import type { Documents } from '../../snapshot/read/documents.ts';
import type { Stamps } from '../../snapshot/read/freshness.ts';
import { type CatalogueIndex, indexBytes, type RegionUpdate, updateIndex } from './catalogue-index.ts';

/** Documents that are read at once, and rows that are put in at once: names take room until they are. */
const READS_AT_ONCE = 4;
const ROWS_AT_ONCE = 100_000;
/** Milliseconds of work between two turns of the event loop. */
const TURN_MS = 2;

/** No machine can be searched now; the message says why, for the caller. */
export class SearchUnavailable extends Unavailable {}

export class TooLarge extends SearchUnavailable {
  constructor() {
    super(
      'Machines cannot be searched here: their index does not fit into what MEMORY_LIMIT leaves for it.',
      60,
    );
  }
}

export interface PutOptions {
  readonly documents: Documents;
  /** Bytes that the index may take. */
  readonly memoryLimit: number;
  /** True once another lineage has begun: the index will not be used. */
  readonly isOver: () => boolean;
}

/** The version of every region by Postgres, and the stamps that they cover; undefined if Postgres does not answer. */
export async function storedVersions(
  documents: Documents,
): Promise<{ stamps: Stamps; versions: Map<number, number> } | undefined> {
  try {
    return await documents.postgres(async (sql) => {
      // The server may be a replica that is behind: its own stamps, read first, are true of its versions.
      const stamps = await loadFreshness(sql);
      return { stamps, versions: await loadRegionVersions(sql) };
    });
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    return undefined;
  }
}

/** Every region that readers are shown, with 0 for its version. */
export async function listedRegions(documents: Documents): Promise<Map<number, number>> {
  const { document } = await documents.get({ kind: 'providers' });
  const keys = [...(document?.keys() ?? [])];
  return new Map(keys.map((key) => [Number(key.slice(key.indexOf('/') + 1)), 0]));
}

/** Puts these regions into an index, those that have another version there. */
export async function putRegions(
  before: CatalogueIndex,
  wanted: ReadonlyMap<number, number>,
  { documents, memoryLimit, isOver }: PutOptions,
) {
  let index = before;
  let ofDisk = false;
  // Set where nothing confirms what was read: the disk gave it, or a cache that no publisher reaches.
  let knownSince: number | undefined;
  /** Source of a region → the time of the region's document. */
  const read = new Map<string, string>();
  let updates: RegionUpdate[] = [];
  let rows = 0;
  const merge = async () => {
    if (updates.length > 0) index = await inTurns(updateIndex(index, updates));
    updates = [];
    rows = 0;
    if (bytesOf(index) > memoryLimit) throw new TooLarge();
  };
  const versionOf = (region: number) => before.regions[before.regionOf.get(region) ?? -1]?.version ?? -1;
  const queue = [...wanted].filter(([region, version]) => version === 0 || version > versionOf(region));
  for (let from = 0; from < queue.length; from += READS_AT_ONCE) {
    if (isOver()) break;
    const batch = queue.slice(from, from + READS_AT_ONCE);
    const found = await Promise.all(
      batch.map(([regionId, version]) => documents.readApart({ kind: 'columns', regionId }, version)),
    );
    for (const { document, tier, knownAt, asOf } of found) {
      ofDisk ||= tier === 'disk';
      if (knownAt !== undefined) knownSince = Math.min(knownAt, knownSince ?? knownAt);
      if (asOf !== undefined) for (const id of document?.sources ?? []) read.set(id, `catalogue ${asOf}`);
      const columns = document && readColumns(document.body.identity);
      if (!columns || document.version <= versionOf(columns.region.id)) continue;
      const { version, body, sources, currency } = document;
      const { region, provider } = columns;
      updates.push({ region, provider, version, hash: body.hash, sources, currency, columns });
      rows += columns.ids.length;
    }
    if (rows >= ROWS_AT_ONCE) await merge();
  }
  await merge();
  return { index, ofDisk, knownSince, read };
}

/** Bytes of an index, by its own count. */
export function bytesOf({ rows, dictionary, regions }: CatalogueIndex): number {
  return indexBytes(rows.count, dictionary, regions.length);
}

/** Does the work in turns, so that nothing else waits for long. */
async function inTurns<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const until = performance.now() + TURN_MS;
    do {
      const step = work.next();
      if (step.done) return step.value;
    } while (performance.now() < until);
    await nextTurn();
  }
}

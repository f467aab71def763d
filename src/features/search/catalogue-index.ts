/** The machines of all regions, as they are searched. Immutable: a publication makes another one. */
import { hash } from 'node:crypto';
import type { Place, RegionColumns } from '../../snapshot/document/columns.ts';
import { Dictionary } from './dictionary.ts';
import { BYTES_PER_ROW, type Columns, emptyColumns, mergeRows, NO_ROWS, type Rows } from './rows.ts';

/** A region as it was published last. */
export interface IndexedRegion extends Place {
  readonly version: number;
  /** Of what the document holds. */
  readonly hash: string;
  readonly sources: readonly string[];
  readonly currency: string | undefined;
}

/** A region that takes the place of what it was. */
export interface RegionUpdate extends IndexedRegion {
  readonly columns: RegionColumns;
}

/** Names in lower case, one after the other, each behind a line feed. */
export interface NameText {
  readonly text: string;
  /** By type: where its name starts. */
  readonly starts: Uint32Array;
}

export interface CatalogueIndex {
  readonly rows: Rows;
  readonly dictionary: Dictionary;
  /** So many groups and types of the dictionary are in use: it may have grown since. */
  readonly groups: number;
  readonly types: number;
  readonly groupOf: Uint32Array;
  readonly names: NameText;
  readonly regions: readonly IndexedRegion[];
  /** By id: its place in `regions`. */
  readonly regionOf: ReadonlyMap<number, number>;
  /** Names what is searched: the same for the same content, in every process. */
  readonly version: string;
}

export function emptyIndex(): CatalogueIndex {
  return {
    rows: NO_ROWS,
    dictionary: new Dictionary(),
    groups: 0,
    types: 0,
    groupOf: new Uint32Array(0),
    names: { text: '', starts: new Uint32Array(0) },
    regions: [],
    regionOf: new Map(),
    version: versionOf([]),
  };
}

/** Measured by `npm run bench:search`: objects, names and map entries of each. */
const BYTES_PER_TYPE = 350;
const BYTES_PER_GROUP = 400;
const BYTES_PER_REGION = 1500;

/** Bytes that an index takes. */
export function indexBytes(rows: number, { types, groups }: Dictionary, regions: number): number {
  return (
    rows * BYTES_PER_ROW +
    types.length * BYTES_PER_TYPE +
    groups.length * BYTES_PER_GROUP +
    regions * BYTES_PER_REGION
  );
}

/** Machines that are looked up in the dictionary between two turns. */
const MACHINES_PER_TURN = 512;

/** The index with these regions as they are now. The one of before stays as it is. */
export function* updateIndex(
  before: CatalogueIndex,
  updates: readonly RegionUpdate[],
): Generator<void, CatalogueIndex> {
  const { dictionary } = before;
  const regions = [...before.regions];
  const regionOf = new Map(before.regionOf);
  for (const update of updates) {
    const { region, provider, version, hash: contentHash, sources, currency } = update;
    const place = regionOf.get(region.id) ?? regions.length;
    regionOf.set(region.id, place);
    regions[place] = { region, provider, version, hash: contentHash, sources, currency };
  }
  const isChanged = new Uint8Array(regions.length);
  for (const { region } of updates) isChanged[regionOf.get(region.id) as number] = 1;
  const incoming = yield* gather(updates, dictionary, regionOf);
  const groupOf = Uint32Array.from(dictionary.types, ({ group }) => group);
  const groups = dictionary.groups.length;
  const types = dictionary.types.length;
  yield;
  const rows = yield* mergeRows(before.rows, {
    incoming,
    isChanged,
    groupOf,
    groups,
    types,
    regions: regions.length,
  });
  const names = types === before.types ? before.names : nameText(dictionary);
  return { rows, dictionary, groups, types, groupOf, names, regions, regionOf, version: versionOf(regions) };
}

function* gather(
  updates: readonly RegionUpdate[],
  dictionary: Dictionary,
  regionOf: ReadonlyMap<number, number>,
): Generator<void, Columns> {
  const incoming = emptyColumns(updates.reduce((sum, { columns }) => sum + columns.ids.length, 0));
  let at = 0;
  for (const { columns, region, provider } of updates) {
    const { names, kinds, kindOf, prices, ids } = columns;
    const shared = kinds.map((kind) => dictionary.kind(kind));
    incoming.prices.set(prices, at);
    incoming.ids.set(ids, at);
    incoming.regions.fill(regionOf.get(region.id) as number, at, at + ids.length);
    for (const [i, name] of names.entries()) {
      const kind = shared[kindOf[i] as number];
      if (!kind) throw new Error('unreachable: readColumns has checked it');
      incoming.types[at++] = dictionary.type(provider.id, name, kind);
      if (at % MACHINES_PER_TURN === 0) yield;
    }
  }
  return incoming;
}

function nameText({ types }: Dictionary): NameText {
  const starts = new Uint32Array(types.length);
  const parts: string[] = [];
  let at = 0;
  for (const [i, { name }] of types.entries()) {
    const part = `\n${name.replaceAll('\n', ' ').toLowerCase()}`;
    starts[i] = at;
    at += part.length;
    parts.push(part);
  }
  return { text: parts.join(''), starts };
}

function versionOf(regions: readonly IndexedRegion[]): string {
  const lines = regions.map(({ region, hash: contentHash }) => `${region.id} ${contentHash}`);
  return hash('sha256', lines.sort().join('\n'), 'base64url').slice(0, 22);
}

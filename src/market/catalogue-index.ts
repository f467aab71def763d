/** The index of all machines. It is immutable: a publication makes another one. */
import { hash } from 'node:crypto';
import type { PublishedPlan } from '../domain/database-plan.ts';
import type { SelectedMachine } from '../domain/prices/price-book.ts';
import type { Term } from '../domain/prices/term.ts';
import {
  amountOf,
  type ById,
  type MachineKind,
  type Place,
  type RegionColumns,
  type RegionPrice,
  type RegionStock,
  type RegionTerms,
} from '../snapshot/document/columns.ts';
import { Dictionary } from './dictionary.ts';
import {
  type Change,
  type Columns,
  emptyColumns,
  mergeRows,
  mergeView,
  NO_ROWS,
  type Rows,
  rowsBytes,
  rowsOfRegions,
  withSpans,
} from './rows.ts';

export interface IndexedRegion extends Place {
  readonly version: number;
  readonly hash: string;
  readonly sources: readonly string[];
  readonly currency: string | undefined;
  /** Undefined if none of its machines has any. */
  readonly terms?: RegionTerms | undefined;
  /** Undefined if the stock of none of its machines changed. */
  readonly stock?: RegionStock | undefined;
  /** Prices besides those of machines; undefined if they are unknown. */
  readonly prices?: readonly RegionPrice[] | undefined;
  /** Plans of managed databases; undefined if there is none. */
  readonly databases?: readonly PublishedPlan[] | undefined;
}

export interface RegionUpdate extends Omit<IndexedRegion, 'terms' | 'stock' | 'prices' | 'databases'> {
  readonly columns: RegionColumns;
}

/** All names in lower case in one text, each behind a line feed. */
export interface NameText {
  readonly text: string;
  readonly starts: Uint32Array;
}

/** The rows of the machines that have a term, in the order of its price. */
type TermRows = ReadonlyMap<Term, Rows>;

export interface CatalogueIndex {
  /** In the order of list prices on demand, or of other prices in a view, see `ofTerm` and `ownView`. */
  readonly rows: Rows;
  /** The most that a month of a row costs, by region and the machine's id. */
  readonly caps: readonly (ById | undefined)[];
  /** The machines with each term that occurs. */
  readonly termRows: TermRows;
  readonly dictionary: Dictionary;
  /** By type: its kind. It has the types of this index. The dictionary may have more. */
  readonly kindOf: Uint32Array;
  readonly names: NameText;
  readonly regions: readonly IndexedRegion[];
  readonly regionOf: ReadonlyMap<number, number>;
  /** A hash of the content, the same in every process. */
  readonly version: string;
}

/** A row with the values of its type and its region. */
export interface IndexedMachine {
  readonly id: number;
  /** Per minute, in the currency of its region. */
  readonly price: number;
  readonly name: string;
  readonly kind: MachineKind;
  /** In `regions` of the index, see `SearchState.asOf`. */
  readonly place: number;
  readonly region: IndexedRegion;
}

export function indexedMachine(
  { rows, dictionary, kindOf, regions }: CatalogueIndex,
  row: number,
): IndexedMachine {
  const type = rows.types[row] as number;
  const place = rows.regions[row] as number;
  const name = dictionary.names[type];
  const kind = dictionary.kinds[kindOf[type] as number]?.facts;
  const region = regions[place];
  if (name === undefined || !kind || !region)
    throw new Error('unreachable: every row has a type and a region');
  return { id: rows.ids[row] as number, price: rows.prices[row] as number, name, kind, place, region };
}

export function selectedMachine({
  id,
  name,
  region: { region, provider },
}: Pick<IndexedMachine, 'id' | 'name' | 'region'>): SelectedMachine {
  return { id, name, regionId: region.id, providerId: provider.id };
}

export function emptyIndex(): CatalogueIndex {
  return {
    rows: NO_ROWS,
    caps: [],
    termRows: new Map(),
    dictionary: new Dictionary(),
    kindOf: new Uint32Array(0),
    names: { text: '', starts: new Uint32Array(0) },
    regions: [],
    regionOf: new Map(),
    version: versionOf([]),
  };
}

/** Bytes of objects, names and map entries, measured by `npm run bench -- search`. */
const BYTES_PER_TYPE = 160;
const BYTES_PER_KIND = 800;
const BYTES_PER_REGION = 1500;
const BYTES_PER_PLAN = 300;

/** Returns the bytes of an index, by its own count. */
export function indexBytes({ rows, termRows, dictionary, regions }: CatalogueIndex): number {
  const { names, kinds } = dictionary;
  const ofTerms = [...termRows.values()].reduce((sum, each) => sum + rowsBytes(each), 0);
  const ofRegions = regions.reduce(
    (sum, { terms, stock, databases = [] }) =>
      sum +
      (terms ? termsBytes(terms) : 0) +
      (stock ? stockBytes(stock) : 0) +
      databases.length * BYTES_PER_PLAN,
    0,
  );
  return (
    ofTerms +
    ofRegions +
    rowsBytes(rows) +
    names.length * BYTES_PER_TYPE +
    kinds.length * BYTES_PER_KIND +
    regions.length * BYTES_PER_REGION
  );
}

export const byIdBytes = ({ ids, values }: ById): number => ids.byteLength + values.byteLength;

const termsBytes = ({ prices, upfronts, caps, since }: RegionTerms): number =>
  [...prices.values(), ...upfronts.values(), caps, since].reduce((sum, each) => sum + byIdBytes(each), 0);

const stockBytes = ({ ids, ends, times }: RegionStock): number =>
  ids.byteLength + ends.byteLength + times.byteLength;

const MACHINES_PER_STEP = 512;
const KINDS_PER_STEP = 128;
const NAMES_PER_STEP = 2048;

/** Returns an index with new versions of these regions. The earlier index does not change. */
export function* updateIndex(
  before: CatalogueIndex,
  updates: readonly RegionUpdate[],
): Generator<void, CatalogueIndex> {
  const { dictionary } = before;
  const regions = [...before.regions];
  const regionOf = new Map(before.regionOf);
  for (const update of updates) {
    const { columns, ...found } = update;
    const { terms, stock, regionPrices: prices, databases } = columns;
    const place = regionOf.get(found.region.id) ?? regions.length;
    regionOf.set(found.region.id, place);
    regions[place] = { ...found, terms, stock, prices, databases };
  }
  const isChanged = new Uint8Array(regions.length);
  for (const { region } of updates) isChanged[regionOf.get(region.id) as number] = 1;
  const incoming = yield* gather(updates, dictionary, regionOf);
  yield;
  const isLarger = dictionary.names.length > before.kindOf.length;
  const kindOf = isLarger ? new Uint32Array(dictionary.kindOf) : before.kindOf;
  const names = isLarger ? yield* nameText(dictionary) : before.names;
  yield;
  const change = { isChanged, kindOf, kinds: dictionary.kinds };
  const rows = yield* mergeRows(before.rows, { ...change, incoming });
  const caps = regions.map(({ terms }) => (terms && terms.caps.ids.length > 0 ? terms.caps : undefined));
  const termRows = yield* updateTermRows(before, { rows, regions }, change);
  return { rows, caps, termRows, dictionary, kindOf, names, regions, regionOf, version: versionOf(regions) };
}

const NO_CHANGED = new Uint32Array(0);

function* updateTermRows(
  before: CatalogueIndex,
  { rows, regions }: Pick<CatalogueIndex, 'rows' | 'regions'>,
  change: Omit<Change, 'incoming'>,
): Generator<void, TermRows> {
  const { isChanged, kindOf } = change;
  const places = [...regions.keys()].filter((place) => isChanged[place] === 1);
  const termsAt = (place: number) => [
    ...(before.regions[place]?.terms?.prices.keys() ?? []),
    ...(regions[place]?.terms?.prices.keys() ?? []),
  ];
  const touched = new Set(places.flatMap(termsAt));
  const changed = touched.size > 0 ? yield* rowsOfRegions(rows, isChanged) : NO_CHANGED;
  const after = new Map<Term, Rows>();
  for (const term of new Set([...before.termRows.keys(), ...touched])) {
    const known = before.termRows.get(term) ?? NO_ROWS;
    const lists = regions.map(({ terms }) => terms?.prices.get(term));
    const priceOf = (row: number) => {
      const list = lists[rows.regions[row] as number];
      return list && amountOf(list, rows.ids[row] as number);
    };
    const merged = touched.has(term)
      ? yield* mergeView(known, rows, changed, change, priceOf)
      : withSpans(known, kindOf.length, isChanged.length);
    if (merged.count > 0) after.set(term, merged);
    yield;
  }
  return after;
}

function* gather(
  updates: readonly RegionUpdate[],
  dictionary: Dictionary,
  regionOf: ReadonlyMap<number, number>,
): Generator<void, Columns> {
  const incoming = yield* emptyColumns(updates.reduce((sum, { columns }) => sum + columns.ids.length, 0));
  let at = 0;
  for (const { columns, region, provider } of updates) {
    const { names, kinds, kindOf, prices, ids } = columns;
    const known: number[] = [];
    for (const kind of kinds) {
      known.push(dictionary.kind(provider.id, kind));
      if (known.length % KINDS_PER_STEP === 0) yield;
    }
    incoming.prices.set(prices, at);
    incoming.ids.set(ids, at);
    incoming.regions.fill(regionOf.get(region.id) as number, at, at + ids.length);
    for (const [i, name] of names.entries()) {
      incoming.types[at++] = dictionary.type(known[kindOf[i] as number] as number, name);
      if (at % MACHINES_PER_STEP === 0) yield;
    }
  }
  return incoming;
}

function* nameText({ names }: Dictionary): Generator<void, NameText> {
  const starts = new Uint32Array(names.length);
  const parts: string[] = [];
  let at = 0;
  for (const [i, name] of names.entries()) {
    const part = `\n${name.replaceAll('\n', ' ').toLowerCase()}`;
    starts[i] = at;
    at += part.length;
    parts.push(part);
    if (i % NAMES_PER_STEP === 0) yield;
  }
  return { text: parts.join(''), starts };
}

function versionOf(regions: readonly IndexedRegion[]): string {
  const lines = regions.map(({ region, hash: contentHash }) => `${region.id} ${contentHash}`);
  return hash('sha256', lines.sort().join('\n'), 'base64url').slice(0, 22);
}

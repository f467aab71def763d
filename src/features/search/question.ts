/** The identity of a question, and the cursors of its pages. Pure. */
import { hash } from 'node:crypto';
import type { MachineDocument } from '../../domain/machine.ts';
import type { PriceTerm } from '../../domain/prices/term.ts';
import type { Filters, Position, Sort } from '../../snapshot/catalogue/filters.ts';

/** The unit of memory in filters: `AsSold` is the unit in which each machine is sold. */
export const RAM_UNITS = ['AsSold', 'Binary', 'Decimal'] as const satisfies readonly (
  | 'AsSold'
  | MachineDocument['ram_unit']
)[];
export type RamUnit = (typeof RAM_UNITS)[number];

export interface Cursor {
  readonly after: Position;
  /** Of the index that gave the page. */
  readonly version: string;
}

/** Characters of a version in a cursor: enough to distinguish successive versions. */
const VERSION_LENGTH = 8;
const HASH_LENGTH = 8;
const POSITION_LENGTH = 8 + 8 + 4;

/** Returns a hash of the question. Equal filters have equal hashes in any order. */
export function questionHash(filters: Filters, sort: Sort, term: PriceTerm = 'on_demand'): string {
  const set = (ids: readonly number[] | undefined) => ids && [...new Set(ids)].sort((a, b) => a - b);
  const { providers, regions, name } = filters;
  const plain = { ...filters, providers: set(providers), regions: set(regions), name: name?.toLowerCase() };
  const entries = Object.entries(plain).filter(([, value]) => value !== undefined);
  const sorted = entries.sort(([a], [b]) => (a < b ? -1 : 1));
  const ofTerm = term === 'on_demand' ? [] : [term];
  const text = JSON.stringify([sorted, sort.by, sort.descending, ...ofTerm]);
  return hash('sha256', text, 'base64url').slice(0, HASH_LENGTH);
}

export function writeCursor(question: string, { after, version }: Cursor): string {
  const position = Buffer.alloc(POSITION_LENGTH);
  position.writeDoubleBE(after.key, 0);
  position.writeDoubleBE(after.price, 8);
  position.writeUInt32BE(after.id, 16);
  return question + version.slice(0, VERSION_LENGTH) + position.toString('base64url');
}

/** Returns the cursor of a text; undefined unless it is of this question. */
export function readCursor(question: string, text: string): Cursor | undefined {
  const [start, end] = [HASH_LENGTH, HASH_LENGTH + VERSION_LENGTH];
  if (!text.startsWith(question)) return undefined;
  const position = Buffer.from(text.slice(end), 'base64url');
  if (position.length !== POSITION_LENGTH || position.toString('base64url') !== text.slice(end))
    return undefined;
  const after = {
    key: position.readDoubleBE(0),
    price: position.readDoubleBE(8),
    id: position.readUInt32BE(16),
  };
  if (!Number.isFinite(after.key) || !Number.isFinite(after.price)) return undefined;
  return { after, version: text.slice(start, end) };
}

export const isSameVersion = (cursor: Cursor, version: string): boolean => version.startsWith(cursor.version);

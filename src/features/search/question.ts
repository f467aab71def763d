/** What a search asks for, and where its pages begin. Pure. */
import { hash } from 'node:crypto';
import type { MachineDocument } from '../../domain/machine.ts';
import type { MachineFacts } from '../../domain/machine-facts.ts';

export const SORT_FIELDS = ['price', 'price_per_cpu', 'price_per_ram', 'cpu', 'ram'] as const;

/** How a question counts memory: each machine in the unit that it is sold in, or all of them in one unit. */
export const RAM_UNITS = ['AsSold', 'Binary', 'Decimal'] as const satisfies readonly (
  | 'AsSold'
  | MachineDocument['ram_unit']
)[];
export type RamUnit = (typeof RAM_UNITS)[number];

export interface Sort {
  readonly by: (typeof SORT_FIELDS)[number];
  readonly descending: boolean;
}

/** Each limit belongs to what it allows. What is undefined is not asked for. */
export interface Filters {
  readonly minCpu?: number | undefined;
  readonly maxCpu?: number | undefined;
  /** True: a machine's memory counts as sold, so that 8 GB and 8 GiB are both 8. Otherwise memory is compared in bytes. */
  readonly isRamAsSold?: boolean | undefined;
  /** Thousandths of a byte, or of a GB or GiB as sold: three decimals of a gigabyte are exact. */
  readonly minRam?: number | undefined;
  readonly maxRam?: number | undefined;
  /** The same for each cpu. */
  readonly minRamPerCpu?: number | undefined;
  readonly maxRamPerCpu?: number | undefined;
  /** Per minute. */
  readonly maxPrice?: number | undefined;
  /** GB of local disk that a machine is known to have. */
  readonly minDisk?: number | undefined;
  readonly providers?: readonly number[] | undefined;
  readonly regions?: readonly number[] | undefined;
  /** Part of the name, in either case. Not empty, and without line feeds. */
  readonly name?: string | undefined;
  readonly architecture?: string | undefined;
  readonly cpuKind?: MachineFacts['cpuKind'] | undefined;
  /** Machines that cannot be ordered now are found as well. */
  readonly withSoldOut?: true | undefined;
}

/** A place in an order: behind the machine of this key, price and id. The key is what is sorted by. */
export interface Position {
  readonly key: number;
  readonly price: number;
  readonly id: number;
}

/** What a cursor says. */
export interface Cursor {
  readonly after: Position;
  /** Of the index in which it was the last machine of a page. */
  readonly version: string;
}

/** Characters of a version in a cursor: enough to tell any two that follow one another. */
const VERSION_LENGTH = 8;
const HASH_LENGTH = 8;
/** Bytes of a position. */
const POSITION_LENGTH = 8 + 8 + 4;

/** Names the question: equal for equal filters, however they were written. */
export function questionHash(filters: Filters, sort: Sort): string {
  const set = (ids: readonly number[] | undefined) => ids && [...new Set(ids)].sort((a, b) => a - b);
  const { providers, regions, name } = filters;
  const plain = { ...filters, providers: set(providers), regions: set(regions), name: name?.toLowerCase() };
  const entries = Object.entries(plain).filter(([, value]) => value !== undefined);
  const text = JSON.stringify([entries.sort(([a], [b]) => (a < b ? -1 : 1)), sort.by, sort.descending]);
  return hash('sha256', text, 'base64url').slice(0, HASH_LENGTH);
}

/** Opaque to whoever gets it, and short. */
export function writeCursor(question: string, { after, version }: Cursor): string {
  const position = Buffer.alloc(POSITION_LENGTH);
  position.writeDoubleBE(after.key, 0);
  position.writeDoubleBE(after.price, 8);
  position.writeUInt32BE(after.id, 16);
  return question + version.slice(0, VERSION_LENGTH) + position.toString('base64url');
}

/** Undefined for what is no cursor of this question. */
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

/** Whether the version is the one that a cursor names. */
export const isSameVersion = (cursor: Cursor, version: string): boolean => version.startsWith(cursor.version);

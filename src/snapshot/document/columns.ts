/**
 * The machines of a region as columns, for the search index.
 *
 *     "FBC1" <rows, u32> <bytes of the head, u32> <head: JSON> <price, f64>… <id, u32>… <kind, u32>…
 *
 * Numbers are little-endian. Rows are sorted by price, then id. The head has the region, the names, and each kind of machine
 * (size and facts) once. It also has the sold-out machines, and see column-terms.ts and column-databases.ts.
 */

import type { PublishedPlan } from '../../domain/database-plan.ts';
import type { MemoryUnit } from '../../domain/machine.ts';
import { FACT_FIELDS, type MachineFacts } from '../../domain/machine-facts.ts';
import { type DatabasesPart, isDatabasesPart, readDatabases } from './column-databases.ts';
import {
  isTermsPart,
  type RegionPrice,
  type RegionTerms,
  readTerms,
  type TermsPart,
} from './column-terms.ts';
import { parsed } from './json.ts';

/** The size and facts that machines with different names may share. */
export interface MachineKind extends MachineFacts {
  readonly cpu: number;
  /** Count of `ramUnit` units. */
  readonly ram: number;
  readonly ramUnit: MemoryUnit;
  readonly isSoldOut?: true;
}

export interface Place {
  readonly region: { readonly id: number; readonly name: string; readonly code: string };
  readonly provider: { readonly id: number; readonly name: string };
  /** ISO 3166-1 alpha-2; undefined if it is unknown. */
  readonly country?: string | undefined;
}

/** The machines of a region, then its sold-out ones. Row i has the i-th price, id, kind and name. */
export interface RegionColumns extends Place {
  /** Per minute, ascending in each of the two parts. */
  readonly prices: Float64Array;
  readonly ids: Uint32Array;
  readonly kindOf: Uint32Array;
  readonly kinds: readonly MachineKind[];
  readonly names: readonly string[];
  /** Undefined if no machine has any. */
  readonly terms: RegionTerms | undefined;
  /** Prices besides those of machines; undefined if they are unknown. */
  readonly regionPrices: readonly RegionPrice[] | undefined;
  /** Plans of managed databases, ascending by price; undefined if there is none. */
  readonly databases: readonly PublishedPlan[] | undefined;
}

export const MAGIC = 'FBC1';
export const HEADER_LENGTH = 12;
export const BYTES_PER_ROW = 8 + 4 + 4;

export type KindTuple = [
  cpu: number,
  ram: number,
  ramUnit: MemoryUnit,
  /** In the order of `FACT_FIELDS`. */
  ...facts: MachineFacts[keyof MachineFacts][],
];

export type SoldOutRow = readonly [price: number, id: number, kind: number, name: string];

interface Head extends Place, TermsPart, DatabasesPart {
  readonly kinds: readonly KindTuple[];
  readonly names: readonly string[];
  readonly soldOut?: readonly SoldOutRow[];
}

/** Reads the columns of a body; undefined if it is incomplete or in another format. */
export function readColumns(body: Buffer): RegionColumns | undefined {
  if (body.length < HEADER_LENGTH || body.toString('latin1', 0, 4) !== MAGIC) return undefined;
  const rows = body.readUInt32LE(4);
  const start = HEADER_LENGTH + body.readUInt32LE(8);
  if (body.length !== start + rows * BYTES_PER_ROW) return undefined;
  const head = readHead(body.subarray(HEADER_LENGTH, start));
  if (!head || head.names.length !== rows) return undefined;
  const view = new DataView(body.buffer, body.byteOffset + start, rows * BYTES_PER_ROW);
  const { kinds, soldOut = [] } = head;
  const prices = new Float64Array(rows + soldOut.length);
  const ids = new Uint32Array(rows + soldOut.length);
  const kindOf = new Uint32Array(rows + soldOut.length);
  for (let i = 0; i < rows; i++) {
    prices[i] = view.getFloat64(i * 8, true);
    ids[i] = view.getUint32(rows * 8 + i * 4, true);
    const kind = view.getUint32(rows * 12 + i * 4, true);
    if (kind >= kinds.length) return undefined;
    kindOf[i] = kind;
  }
  for (const [i, [price, id, kind]] of soldOut.entries()) {
    if (kind >= kinds.length) return undefined;
    prices[rows + i] = price;
    ids[rows + i] = id;
    kindOf[rows + i] = kinds.length + kind;
  }
  const { region, provider, country } = head;
  const all = kinds.map(kindOfTuple);
  const soldOutKinds = soldOut.length === 0 ? [] : all.map((kind) => ({ ...kind, isSoldOut: true as const }));
  const names = soldOut.length === 0 ? head.names : [...head.names, ...soldOut.map(([, , , name]) => name)];
  const rest = { terms: readTerms(head), regionPrices: head.prices, databases: readDatabases(head) };
  return { region, provider, country, prices, ids, kindOf, names, kinds: [...all, ...soldOutKinds], ...rest };
}

export function tupleOf(
  { cpu, ram, ramUnit }: Omit<MachineKind, keyof MachineFacts>,
  facts: MachineFacts,
): KindTuple {
  return [cpu, ram, ramUnit, ...FACT_FIELDS.map((field) => facts[field])];
}

function kindOfTuple([cpu, ram, ramUnit, ...values]: KindTuple): MachineKind {
  const facts = Object.fromEntries(FACT_FIELDS.map((field, i) => [field, values[i] ?? null]));
  return { cpu, ram, ramUnit, ...(facts as unknown as MachineFacts) };
}

function readHead(bytes: Buffer): Head | undefined {
  const head = parsed(bytes) as Partial<Head> | null | undefined;
  const isPlace = (place: Partial<Place['region']> | undefined) =>
    Number.isInteger(place?.id) && typeof place?.name === 'string';
  const isValid =
    isPlace(head?.region) &&
    isPlace(head?.provider) &&
    ['undefined', 'string'].includes(typeof head?.country) &&
    Array.isArray(head?.kinds) &&
    head.kinds.every((kind) => Array.isArray(kind) && Number.isInteger(kind[0]) && kind[0] > 0) &&
    Array.isArray(head.names) &&
    head.names.every((name) => typeof name === 'string') &&
    (head.soldOut === undefined || (Array.isArray(head.soldOut) && head.soldOut.every(isSoldOutRow))) &&
    isTermsPart(head) &&
    isDatabasesPart(head);
  return isValid ? (head as Head) : undefined;
}

const isSoldOutRow = (row: unknown): boolean =>
  Array.isArray(row) &&
  row.length === 4 &&
  Number.isFinite(row[0]) &&
  row.slice(1, 3).every((place) => Number.isInteger(place) && place >= 0) &&
  typeof row[3] === 'string';

/** Machines of the index: by id, in the view of a term, and as answers have them. */
import type { MachineFactsDocument } from '../domain/machine.ts';
import { byColumn, type FactsDocument } from '../domain/machine-facts.ts';
import { TERMS, type Term } from '../domain/prices/term.ts';
import { availableShare } from '../domain/stock.ts';
import { amountOf, timesOf } from '../snapshot/document/columns.ts';
import {
  type CatalogueIndex,
  type IndexedMachine,
  type IndexedRegion,
  indexedMachine,
} from './catalogue-index.ts';
import { NO_ROWS, rowOf, withSpans } from './rows.ts';

export interface FoundMachine extends IndexedMachine {
  /** In `rows` of the index. */
  readonly row: number;
  readonly terms: { readonly [T in Term]?: TermPrice };
  /** The most that a calendar month costs on demand. */
  readonly monthlyCap: number | undefined;
  /** Milliseconds since the epoch: when a term or the cap last changed. */
  readonly termsSince: number | undefined;
}

export interface TermPrice {
  /** With the payment upfront spread over the term. */
  readonly price: number;
  /** In total; undefined if nothing is paid upfront. */
  readonly upfront: number | undefined;
}

/** Returns a published or sold-out machine. */
export function findMachine(index: CatalogueIndex, id: number): FoundMachine | undefined {
  const row = rowOf(index.rows, id);
  return row === undefined ? undefined : machineAt(index, row);
}

/** @param row of `rows` of the index */
function machineAt(index: CatalogueIndex, row: number): FoundMachine {
  const machine = indexedMachine(index, row);
  const { id, region } = machine;
  const { terms } = region;
  return {
    ...machine,
    row,
    terms: terms ? termsOf(region, id) : {},
    monthlyCap: terms && amountOf(terms.caps, id),
    termsSince: terms && amountOf(terms.since, id),
  };
}

function termsOf({ terms }: IndexedRegion, id: number): FoundMachine['terms'] {
  const found: { [T in Term]?: TermPrice } = {};
  for (const term of TERMS) {
    const prices = terms?.prices.get(term);
    const price = prices && amountOf(prices, id);
    if (price === undefined) continue;
    const upfronts = terms?.upfronts.get(term);
    found[term] = { price, upfront: upfronts && amountOf(upfronts, id) };
  }
  return found;
}

/** Returns the index with only the machines that have the term. The price of a row is that of the term. */
export function ofTerm(index: CatalogueIndex, term: Term): CatalogueIndex {
  const { termRows, kindOf, regions } = index;
  const rows = termRows.get(term) ?? withSpans(NO_ROWS, kindOf.length, regions.length);
  return { ...index, rows, caps: [] };
}

/** A machine in answers of the index. */
export interface IndexedMachineDocument extends MachineFactsDocument {
  /** See `availableShare`. */
  available_share: number;
}

export type MachineField = keyof IndexedMachineDocument;

type Fields<Field extends MachineField> = {
  readonly [K in Field]-?: (machine: IndexedMachine, now: number) => IndexedMachineDocument[K];
};

const FIELDS: Fields<MachineField> = {
  id: ({ id }) => id,
  name: ({ name }) => name,
  ram: ({ kind }) => kind.ram,
  cpu: ({ kind }) => kind.cpu,
  price: ({ price }) => price,
  ram_unit: ({ kind }) => kind.ramUnit,
  provider: ({ region }) => region.provider,
  region: ({ region }) => region.region,
  ...(byColumn(
    (field) =>
      ({ kind }: IndexedMachine) =>
        kind[field],
  ) as Fields<keyof FactsDocument>),
  available: ({ kind }) => (kind.isSoldOut ? false : undefined),
  available_share: ({ id, kind, region: { stock } }, now) =>
    availableShare(stock ? timesOf(stock, id) : [], !kind.isSoldOut, now),
};

export const MACHINE_FIELDS = Object.keys(FIELDS) as MachineField[];

/** @param now milliseconds since the epoch, for the share */
export function machineOfRow(
  index: CatalogueIndex,
  row: number,
  fields: readonly MachineField[] = MACHINE_FIELDS,
  now = Date.now(),
): Partial<IndexedMachineDocument> {
  const machine = indexedMachine(index, row);
  return Object.fromEntries(fields.map((field) => [field, FIELDS[field](machine, now)]));
}

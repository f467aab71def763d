/** The prices of clusters' machines: published ones from the index in memory, all others from PostgreSQL. Pure. */
import type { PricedMachine } from '../../db/costs.ts';
import type { NodePrice } from '../../domain/cost.ts';
import { decimal } from '../../domain/price.ts';
import { TERMS } from '../../domain/term.ts';
import type { CatalogueIndex } from '../../snapshot/catalogue/catalogue-index.ts';
import type { StoredMachines } from './stored-machines.ts';

export const PRICE_TERMS = ['on_demand', ...TERMS] as const;
export const PRICE_SOURCES = ['list', 'own'] as const;

export interface PriceQuestion {
  readonly term: (typeof PRICE_TERMS)[number];
  /** `own`: the organization's prices where it has any, list prices otherwise. */
  readonly prices: (typeof PRICE_SOURCES)[number];
  /** RFC 3339; undefined for now. */
  readonly at: string | undefined;
}

/** Why a price is unknown, for the answer. */
export const REASONS = ['not_listed', 'no_price', 'term_not_sold', 'no_disk_price'] as const;
export type Reason = (typeof REASONS)[number];

/** A machine of a cluster, and its price by one question. */
export interface Priced {
  readonly id: number;
  /** Null if no machine with this id can be seen. */
  readonly name: string | null;
  /** False if the published catalogue lacks the machine. */
  readonly isPublished: boolean;
  readonly price: NodePrice | null;
  readonly source: (typeof PRICE_SOURCES)[number] | null;
  /** The entry of the price book that gave the price. */
  readonly entry: number | null;
  readonly reason: Reason | null;
}

/** Returns the row of each of these machines that the index has, in one scan. */
export function rowsOf({ rows }: CatalogueIndex, ids: ReadonlySet<number>): Map<number, number> {
  const found = new Map<number, number>();
  // A table of the last 16 bits rejects almost all rows faster than a set does.
  const marks = new Uint8Array(0x1_0000);
  for (const id of ids) marks[id & 0xffff] = 1;
  for (let row = 0; row < rows.count && found.size < ids.size; row++) {
    const id = rows.ids[row] as number;
    if (marks[id & 0xffff] === 1 && ids.has(id)) found.set(id, row);
  }
  return found;
}

/** True if the index has the prices of the question. */
export const isInMemory = ({ term, at }: PriceQuestion): boolean => term === 'on_demand' && at === undefined;

export interface PriceInputs {
  readonly index: CatalogueIndex;
  readonly rows: ReadonlyMap<number, number>;
  readonly stored: StoredMachines;
  readonly question: PriceQuestion;
}

export function pricedMachine(id: number, { index, rows, stored, question }: PriceInputs): Priced {
  const row = rows.get(id);
  const found = stored.get(id);
  if (found) return pricedStored(found, row !== undefined, question);
  if (row === undefined) return unknown(id, null, false, 'not_listed');
  const name = index.dictionary.names[index.rows.types[row] as number] ?? null;
  const price = decimal(index.rows.prices[row] as number);
  if (price === undefined) return unknown(id, name, true, 'no_price');
  return listed(id, name, true, { price, monthlyCap: null });
}

function pricedStored(machine: PricedMachine, isPublished: boolean, question: PriceQuestion): Priced {
  const { id, name, isListed } = machine;
  if (!isListed) return unknown(id, name, false, 'not_listed');
  return { ...pricedBy(machine, question), name, isPublished };
}

/** Returns the price of a machine with these stored prices. */
export function pricedBy(
  { id, price, terms }: Pick<PricedMachine, 'id' | 'price' | 'terms'>,
  { term }: PriceQuestion,
): Priced {
  if (term !== 'on_demand') {
    const ofTerm = terms?.terms[term]?.price;
    return ofTerm === undefined
      ? unknown(id, null, false, 'term_not_sold')
      : listed(id, null, false, { price: ofTerm, monthlyCap: null });
  }
  if (price === null || Number(price) <= 0) return unknown(id, null, false, 'no_price');
  return listed(id, null, false, { price, monthlyCap: terms?.monthly_cap?.price ?? null });
}

function listed(id: number, name: string | null, isPublished: boolean, price: NodePrice): Priced {
  return { id, name, isPublished, price, source: 'list', entry: null, reason: null };
}

function unknown(id: number, name: string | null, isPublished: boolean, reason: Reason): Priced {
  return { id, name, isPublished, price: null, source: null, entry: null, reason };
}

export function isSamePrice(a: Priced, b: Priced): boolean {
  return (
    a.price?.price === b.price?.price &&
    a.price?.monthlyCap === b.price?.monthlyCap &&
    a.source === b.source &&
    a.entry === b.entry &&
    a.reason === b.reason &&
    a.name === b.name &&
    a.isPublished === b.isPublished
  );
}

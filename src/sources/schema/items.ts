import type { z } from 'zod';
import type { ExclusionReason, Offer } from '../../domain/machine.ts';
import type { MachineFacts } from '../../domain/machine-facts.ts';
import { isPositive } from '../../domain/prices/price.ts';
import type { CatalogueItem, RejectedRow, UnreadRegion } from '../source.ts';
import { labelIn, readRow, rowOf } from './rows.ts';

/** Returns the item that `read` returns, or the rejected row if it reads an unusable row. @param place begins its reason */
export function orRejected<Item>(
  key: string,
  known: KnownOfRow,
  read: () => Item,
  place = '',
): Item | RejectedRow {
  const { value, reason, waits } = rowOf(read);
  if (reason === undefined) return value as Item;
  return { ...rejectedRow(key, place + reason, known), ...(waits ? { waits } : {}) };
}

export function offerOrRejected(name: string, regionCode: string, read: () => CatalogueItem): CatalogueItem {
  return orRejected(`${name}@${regionCode}`, { name, regionCode }, read);
}

/** Returns the usable rows of a list of machine types. Yields the others as rejected; `what` names a row without a name. */
export function* usableRows<T>(
  rows: readonly unknown[],
  schema: z.ZodType<T>,
  nameField: string,
  what: string,
): Generator<RejectedRow, T[]> {
  const usable: T[] = [];
  for (const [index, row] of rows.entries()) {
    const read = readRow(schema, row);
    const name = labelIn(row, nameField);
    if (read.reason === undefined) usable.push(read.value);
    else yield rejectedRow(name ?? `${what} ${index + 1}`, read.reason, { name });
  }
  return usable;
}

/** Returns the usable rows of a list of regions. Yields an item for each row. The parameters are those of `usableRows`. */
export function* usableRegions<
  T extends { readonly code: string; readonly name: string; readonly country?: string | undefined },
>(
  rows: readonly unknown[],
  schema: z.ZodType<T>,
  codeField: string,
  what: string,
): Generator<CatalogueItem, T[]> {
  const usable: T[] = [];
  for (const [index, row] of rows.entries()) {
    const read = readRow(schema, row);
    if (read.reason === undefined) {
      usable.push(read.value);
      const { code, name, country } = read.value;
      yield { kind: 'region', code, name, ...(country !== undefined && { country }) };
    } else {
      yield unusableRegion(labelIn(row, codeField), `${what} ${index + 1}`, read.reason);
    }
  }
  return usable;
}

type KnownOfRow = { readonly [Field in 'regionCode' | 'name' | 'organization']?: string | undefined };

export function rejectedRow(key: string, reason: string, known: KnownOfRow = {}): RejectedRow {
  const given = Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined));
  return { kind: 'rejected', key, reason, ...given };
}

export function rejectedOffer(name: string, regionCode: string, reason: string): RejectedRow {
  return rejectedRow(`${name}@${regionCode}`, reason, { name, regionCode });
}

/** Without its code, an unusable region is a rejected row, which may be any region. */
export function unusableRegion(
  code: string | undefined,
  key: string,
  reason: string,
): RejectedRow | UnreadRegion {
  return code === undefined ? rejectedRow(key, reason) : { kind: 'unread', regionCode: code, reason };
}

type FoundOffer = Omit<Offer, 'excluded' | 'facts' | 'monthlyCap'> & {
  readonly facts?: FoundFacts;
  readonly monthlyCap?: string | undefined;
};

/** Returns the item of a machine in a region. A price of zero excludes it, like a reason of the source. A cap of zero is none. */
export function offerItem(
  { facts, monthlyCap, ...machine }: FoundOffer,
  excluded?: ExclusionReason | null,
): CatalogueItem {
  const known = Object.entries(facts ?? {}).filter(([, fact]) => fact != null);
  const offer: Offer = {
    ...machine,
    ...(monthlyCap !== undefined && isPositive(monthlyCap) && { monthlyCap }),
    ...(known.length > 0 && { facts: Object.fromEntries(known) }),
  };
  const reason = excluded ?? (isPositive(machine.price.amount) ? undefined : 'zero_price');
  return { kind: 'offer', offer: reason === undefined ? offer : { ...offer, excluded: reason } };
}

export type FoundFacts = { readonly [Fact in keyof MachineFacts]?: MachineFacts[Fact] | undefined };

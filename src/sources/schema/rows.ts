import type { z } from 'zod';
import type { CatalogueItem, RejectedRow, UnreadRegion } from '../source.ts';
import { label } from './fields.ts';
import { pathOf, problemText } from './problems.ts';

/** A row that its schema accepted, or the reason why it cannot be used. */
export type Row<T> =
  | { readonly value: T; readonly reason?: never }
  | { readonly value?: never; readonly reason: string };

/**
 * Reads one row of a list.
 * @param at the row's place in the payload
 * @returns the row, or a reason that names the field, its rule and its value
 */
export function readRow<T>(schema: z.ZodType<T>, row: unknown, at: readonly PropertyKey[] = []): Row<T> {
  const parsed = schema.safeParse(row);
  if (parsed.success) return { value: parsed.data };
  const reasons = parsed.error.issues.slice(0, 3).map((issue) => {
    const found = valueAt(row, issue.path);
    const problem = `${pathOf([...at, ...issue.path])} ${problemText(issue.message)}`;
    return found === undefined ? problem : `${problem}; it is ${shown(found)}`;
  });
  return { reason: reasons.join('; ') };
}

/**
 * Returns the usable rows of a list of machine types. Yields the others as rejected.
 * @param nameField the field with the type's name
 * @param what the name of one row, for an operator
 */
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
export function* usableRegions<T extends { readonly code: string; readonly name: string }>(
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
      yield { kind: 'region', code: read.value.code, name: read.value.name };
    } else {
      yield unusableRegion(labelIn(row, codeField), `${what} ${index + 1}`, read.reason);
    }
  }
  return usable;
}

/** Returns one field of a row, also of an unusable row; undefined if the field itself is unusable. */
export function labelIn(row: unknown, ...fields: readonly string[]): string | undefined {
  for (const field of fields) {
    const { data } = label.safeParse(valueAt(row, [field]));
    if (data !== undefined) return data;
  }
  return undefined;
}

/** The known identity of an unusable row. */
export interface KnownOfRow {
  readonly regionCode?: string | undefined;
  readonly name?: string | undefined;
  readonly organization?: string | undefined;
}

export function rejectedRow(key: string, reason: string, known: KnownOfRow = {}): RejectedRow {
  const given = Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined));
  return { kind: 'rejected', key, reason, ...given };
}

/** Returns the item of a machine that cannot be used in one region. */
export function rejectedOffer(name: string, regionCode: string, reason: string): RejectedRow {
  return rejectedRow(`${name}@${regionCode}`, reason, { name, regionCode });
}

/**
 * Returns the item of an unusable row in a list of regions. Without its code it is a rejected row, which may be any
 * region.
 */
export function unusableRegion(
  code: string | undefined,
  key: string,
  reason: string,
): RejectedRow | UnreadRegion {
  return code === undefined ? rejectedRow(key, reason) : { kind: 'unread', regionCode: code, reason };
}

function valueAt(row: unknown, path: readonly PropertyKey[]): unknown {
  let at = row;
  for (const part of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined;
    at = Reflect.get(at, part);
  }
  return at;
}

/** JSON.stringify fails for a value that is nested too deeply, which must only reject one row. */
function shown(value: unknown): string {
  try {
    const text = JSON.stringify(value) ?? String(value);
    return text.length > 60 ? `${text.slice(0, 60)}…` : text;
  } catch (error) {
    if (error instanceof RangeError) return 'nested too deeply to be shown';
    throw error;
  }
}

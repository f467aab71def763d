import type { z } from 'zod';
import type { RejectedRow, UnreadRegion } from '../source.ts';
import { label } from './fields.ts';
import { pathOf, problemText } from './problems.ts';

/** A row as its schema read it, or why it cannot be used. */
export type Row<T> =
  | { readonly value: T; readonly reason?: never }
  | { readonly value?: never; readonly reason: string };

/**
 * Reads one row of a list. The reason of a row that cannot be used names the field (below `at`), what it must be and
 * what it is.
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

/** One field of a row, which may be unusable as a whole; undefined where the field is unusable too. */
export function labelIn(row: unknown, field: string): string | undefined {
  const read = label.safeParse(valueAt(row, [field]));
  return read.success ? read.data : undefined;
}

/** What is known of a row that cannot be used. */
export interface KnownOfRow {
  readonly regionCode?: string | undefined;
  readonly name?: string | undefined;
  readonly organization?: string | undefined;
}

/** The item for a row that cannot be used. */
export function rejectedRow(key: string, reason: string, known: KnownOfRow): RejectedRow {
  const given = Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined));
  return { kind: 'rejected', key, reason, ...given };
}

/**
 * The item for a row of a list of regions that cannot be used. Without its code it is a rejected row: it may be any
 * region.
 */
export function unusableRegion(
  code: string | undefined,
  key: string,
  reason: string,
): RejectedRow | UnreadRegion {
  return code === undefined ? rejectedRow(key, reason, {}) : { kind: 'unread', regionCode: code, reason };
}

function valueAt(row: unknown, path: readonly PropertyKey[]): unknown {
  let at = row;
  for (const part of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined;
    at = Reflect.get(at, part);
  }
  return at;
}

function shown(value: unknown): string {
  const text = written(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** Reading JSON takes any depth, writing it does not: such a value is one bad row, and no reason to end the run. */
function written(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch (error) {
    if (error instanceof RangeError) return 'nested too deeply to be shown';
    throw error;
  }
}

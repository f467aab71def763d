import type { z } from 'zod';
import { label } from './fields.ts';

export type Row<T> =
  | { readonly value: T; readonly reason?: never; readonly waits?: never }
  | { readonly value?: never; readonly reason: string; readonly waits?: boolean };

class UnusableRow extends Error {
  readonly waits: boolean;

  constructor(reason: string, waits: boolean) {
    super(reason);
    this.waits = waits;
  }
}

/** @param waits whether the row waits for an operator, who has to configure or create something */
export function unusable(reason: string, waits = false): never {
  throw new UnusableRow(reason, waits);
}

/** Reads one row of a list. The reason of an unusable row names the field, its rule and its value. */
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

/** Returns the value of a row. An unusable one ends the surrounding `rowOf` or `orRejected`. */
export function valueIn<T>({ value, reason, waits }: Row<T>, place = ''): T {
  return reason === undefined ? (value as T) : unusable(place + reason, waits);
}

export function parseRow<T>(schema: z.ZodType<T>, row: unknown, at?: readonly PropertyKey[]): T {
  return valueIn(readRow(schema, row, at));
}

export function rowOf<T>(read: () => T): Row<T> {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof UnusableRow) return { reason: error.message, waits: error.waits };
    throw error;
  }
}

export function labelIn(row: unknown, ...fields: readonly string[]): string | undefined {
  return fields
    .map((field) => label.safeParse(valueAt(row, [field])).data)
    .find((found) => found !== undefined);
}

/** The latest of several prices; prices of the same time must agree. @param since the beginning of each, in milliseconds */
export function latestPrice(prices: readonly { readonly since: number; readonly amount: string }[]): string {
  const latest = Math.max(...prices.map(({ since }) => since));
  const amounts = new Set(prices.filter(({ since }) => since === latest).map(({ amount }) => amount));
  const [found] = amounts;
  if (found !== undefined && amounts.size === 1) return found;
  return unusable(`several prices are in force: ${[...amounts].join(', ')}`);
}

/** Contains no value of the input: an upstream may echo a secret, which must not be logged. */
export function problemsOf({ issues }: z.core.$ZodError): string {
  const named = issues.slice(0, 3).map(({ path, message }) => `${pathOf(path)} ${problemText(message)}`);
  const more = issues.length - named.length;
  return named.join('; ') + (more > 0 ? `; and ${more} more` : '');
}

/** `["prices", 0, "net"]` → `prices[0].net`; an empty path is the whole payload. */
function pathOf(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  return text === '' ? 'the payload' : text.replace(/^\./, '');
}

export function problemText(message: string): string {
  return message
    .replace(/^Invalid input: (expected .*), received undefined$/, 'is missing ($1)')
    .replace(/^Invalid input: /, '');
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

export interface Bar {
  readonly what: string;
  /** Absent if it could not be measured; `note` states the reason. */
  readonly found?: number;
  readonly unit: string;
  /** Absent for values without a goal. */
  readonly limit?: number;
  /** How `found` compares with the limit; default: `most`. */
  readonly bound?: 'most' | 'least' | 'exactly';
  /** The desired value beyond the limit. */
  readonly goal?: number;
  readonly note?: string;
  /** Why the value says nothing about the product. It is printed, and not judged. */
  readonly unsure?: string | undefined;
}

export type Verdict = 'PASS' | 'MISSED' | 'not measured' | 'not measurable' | '';

/** A value without a goal passes. A value that could not be measured neither passes nor fails. */
export function verdict({ found, limit, bound, unsure }: Bar): Verdict {
  if (found === undefined) return 'not measured';
  if (limit === undefined) return '';
  if (unsure !== undefined) return 'not measurable';
  if (bound === 'exactly') return found === limit ? 'PASS' : 'MISSED';
  return (bound === 'least' ? found >= limit : found <= limit) ? 'PASS' : 'MISSED';
}

const SIGN = { most: '≤', least: '≥', exactly: '=' } as const;

/** Lines of text, one a bar. */
export function table(bars: readonly Bar[]): string {
  const rows = bars.map((bar) => [
    bar.what,
    bar.found === undefined ? '' : `${shown(bar.found)} ${bar.unit}`.trim(),
    bar.limit === undefined ? '' : `${SIGN[bar.bound ?? 'most']} ${bar.limit} ${bar.unit}`.trim(),
    bar.goal === undefined ? verdict(bar) : `${verdict(bar)} (goal ${bar.goal})`,
    [bar.unsure, bar.note].filter((text) => text !== undefined).join('; '),
  ]);
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  return rows.map((row) => `${line(row).trimEnd()}\n`).join('');
}

/** Factor by which an unchanged peer may differ between rounds. */
const STEADY = 3;

/** Returns why rounds are not comparable; undefined if they are. @param peer one value a round of a server that does not change */
export function unsteady(name: string, peer: readonly number[]): string | undefined {
  const factor = Math.max(...peer) / Math.min(...peer);
  if (factor <= STEADY) return undefined;
  return `${name} itself differed ${factor.toFixed(1)} times between rounds, more than ${STEADY}`;
}

/** The lowest and the highest value. */
export function spread(values: readonly number[]): string {
  const digits = Math.max(...values) < 100 ? 2 : 0;
  return values.length < 2
    ? 'one round'
    : `${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)}`;
}

/** Three digits; whole numbers whole. */
export function shown(value: number): string {
  return Number.isInteger(value) ? String(value) : value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** NaN for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const upper = sorted[Math.floor(middle)] ?? Number.NaN;
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? Number.NaN) + upper) / 2 : upper;
}

/** The least value that at least this share of them does not exceed; NaN for an empty list. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

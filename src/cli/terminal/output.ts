/** Prints the output of commands. Escapes control characters, since names and reasons come from upstreams. */
import { harmlessJson, harmlessLines } from '../../domain/text/control-characters.ts';
import { noun } from '../../domain/text/quantities.ts';
import { span } from '../../domain/text/time-span.ts';
import type { Json } from './options.ts';

/** Prints lines on standard output, and ends the last one. */
export function print(lines: string): void {
  process.stdout.write(ended(harmlessLines(lines)));
}

export function printAside(lines: string): void {
  process.stderr.write(ended(harmlessLines(lines)));
}

const ended = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`);

export function show({ json }: Json, value: unknown, text: () => string): void {
  if (json) printJson(value);
  else print(text());
}

export function printJson(value: unknown): void {
  process.stdout.write(`${harmlessJson(JSON.stringify(value, null, 2))}\n`);
}

/** Returns the columns of the terminal; Infinity for a file or a pipe. */
export const terminalWidth = (): number => process.stdout.columns || Number.POSITIVE_INFINITY;

/**
 * Returns rows below their heads in aligned columns. A table that is too wide for the terminal gets cells of several lines,
 * and then its last columns as lines below each row. No word is broken.
 */
export function alignedTable(
  head: readonly string[],
  given: readonly (readonly string[])[],
  width = terminalWidth(),
): string {
  const rows = given.map(oneLined);
  for (let columns = head.length; columns > 1; columns--) {
    const parts = [head, ...rows].map((row) => row.slice(0, columns));
    const widths = fittingWidths(parts, width);
    if (widths === undefined) continue;
    const below = head.slice(columns);
    return parts
      .map((part, index) => {
        const rest = index === 0 ? [] : (rows[index - 1]?.slice(columns) ?? []);
        return cellLines(part, widths) + labelledLines(below, rest, width);
      })
      .join('');
  }
  return alignedLines([head, ...rows]).join('');
}

/** Joins the lines of each cell: upstreams may send any text. */
const oneLined = (row: readonly string[]): string[] =>
  row.map((cell) => harmlessLines(cell.replaceAll(/[\r\n\t]+/g, ' ')));

const GAP = 2;

/** Returns widths that fit without a broken word: the widest columns shrink. Undefined if they cannot. */
function fittingWidths(rows: readonly (readonly string[])[], width: number): number[] | undefined {
  const longest = (measure: (cell: string) => number) =>
    (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => measure(row[column] ?? ''))));
  const widths = longest((cell) => cell.length);
  const least = longest((cell) => Math.max(...cell.split(/\s+/).map((word) => word.length)));
  let excess = widths.reduce((sum, each) => sum + each + GAP, -GAP) - width;
  for (; excess > 0; excess--) {
    const shrinkable = widths.map((each, column) => (each > (least[column] ?? 0) ? each : 0));
    const column = shrinkable.indexOf(Math.max(...shrinkable));
    if ((shrinkable[column] ?? 0) === 0) return undefined;
    widths[column] = (widths[column] ?? 0) - 1;
  }
  return widths;
}

function cellLines(row: readonly string[], widths: readonly number[]): string {
  const cells = row.map((cell, column) =>
    wrapped(cell, widths[column] ?? 0, '')
      .trimEnd()
      .split('\n'),
  );
  const height = Math.max(...cells.map((lines) => lines.length));
  return Array.from({ length: height }, (_, line) => {
    const parts = cells.map((lines, column) => (lines[line] ?? '').padEnd(widths[column] ?? 0));
    return `${parts.join(' '.repeat(GAP)).trimEnd()}\n`;
  }).join('');
}

/** Returns columns as lines below a row, e.g. `  reason: …`, without empty ones. */
function labelledLines(heads: readonly string[], cells: readonly string[], width: number): string {
  return cells
    .flatMap((cell, index) =>
      cell === '' || cell === '-' ? [] : [`  ${(heads[index] ?? '').toLowerCase()}: ${cell}`],
    )
    .flatMap((line) => fitted([line], width))
    .map((line) => `${line}\n`)
    .join('');
}

/** Returns rows without heads in aligned columns, a line each. */
export function alignedLines(given: readonly (readonly string[])[]): string[] {
  const rows = given.map(oneLined);
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows.map((row) => {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    return `${cells.join('  ').trimEnd()}\n`;
  });
}

/** Returns a line with the number of rows that are not shown; empty if all are. */
export function moreLine(shown: number, total: number, what = ''): string {
  const more = total - shown;
  if (more <= 0) return '';
  return `  … ${more} more${what && ` ${what}`}; see --all, or --limit <count>\n`;
}

export const updatedLater = (published: boolean) =>
  published ? '' : '; the cache cannot be reached and is updated later';

/** Returns memory as text, e.g. `16 GiB`. */
export const memoryText = ({ ram, ramUnit }: { readonly ram: number; readonly ramUnit: string }) =>
  `${ram} ${ramUnit === 'Binary' ? 'GiB' : 'GB'}`;

export const count = (n: number, what: string): string => `${n} ${noun(n, what)}`;

/** Returns how long ago an instant (RFC 3339) was; `-` for none. */
export function ago(instant: string | null | undefined, now: Date): string {
  return instant ? `${age(instant, now)} ago` : '-';
}

/** Returns the same without `ago`. */
export function age(instant: string | null | undefined, now: Date): string {
  if (!instant) return '-';
  return span(Math.max(0, Math.round((now.getTime() - Date.parse(instant)) / 1000)));
}

/** Wraps text at `width` characters and indents further lines. A longer word has a line alone. */
export function wrapped(text: string, width: number, indent = '  '): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = indent + word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return `${[...lines, line].join('\n')}\n`;
}

export function fitted(lines: readonly string[], width: number): string[] {
  return lines.flatMap((line) => {
    const indent = ' '.repeat(line.length - line.trimStart().length);
    const parts = wrapped(line.trim(), width - indent.length)
      .trimEnd()
      .split('\n');
    return parts.map((part) => indent + part);
  });
}

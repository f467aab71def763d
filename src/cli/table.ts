import { harmlessLines } from '../domain/harmless.ts';
import { span } from '../domain/span.ts';

/** Rows under their heads, in aligned columns, each line with its end. */
export function alignedTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return alignedLines([head, ...rows]).join('');
}

/** The same without heads, a line each. A cell is one line, whatever an upstream has put into it. */
export function alignedLines(given: readonly (readonly string[])[]): string[] {
  const rows = given.map((row) => row.map((cell) => harmlessLines(cell.replaceAll(/[\r\n\t]+/g, ' '))));
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows.map((row) => {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    return `${cells.join('  ').trimEnd()}\n`;
  });
}

/** The line that stands for what is not shown, with its end; nothing where all is. */
export function moreLine(shown: number, total: number, what = ''): string {
  const more = total - shown;
  if (more <= 0) return '';
  return `  … ${more} more${what && ` ${what}`}; see --all, or --limit <count>\n`;
}

/** `1 machine`, `2 machines`. */
export const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;

/** How long ago an instant (RFC 3339) was, for people; `-` for none. */
export function ago(instant: string | null | undefined, now: Date): string {
  return instant ? `${age(instant, now)} ago` : '-';
}

/** As `ago`, where the column's head says that it is in the past. */
export function age(instant: string | null | undefined, now: Date): string {
  if (!instant) return '-';
  return span(Math.max(0, Math.round((now.getTime() - Date.parse(instant)) / 1000)));
}

/** At most so many characters, with `…` for those left out of the middle: ids differ at their ends. */
export function shortened(text: string, length: number): string {
  if (text.length <= length) return text;
  const kept = length - 1;
  return `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
}

/** Lines of at most so many characters, those after the first one indented; a longer word has a line of its own. */
export function wrapped(text: string, width: number): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = `  ${word}`;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return `${[...lines, line].join('\n')}\n`;
}

/** Each line in lines of at most so many characters, which keep how far it is indented. */
export function fitted(lines: readonly string[], width: number): string[] {
  return lines.flatMap((line) => {
    const indent = ' '.repeat(line.length - line.trimStart().length);
    const parts = wrapped(line.trim(), width - indent.length)
      .trimEnd()
      .split('\n');
    return parts.map((part) => indent + part);
  });
}

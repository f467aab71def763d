import type { Column, Row } from '../columns.ts';
import type { TableWriter } from './table-writer.ts';
import { textWriter } from './text-file.ts';

/**
 * CSV by RFC 4180: a header, lines that end in CRLF, UTF-8 without a byte order mark. A null is nothing at all, an empty
 * text is `""`. A text that a spreadsheet would take for a formula has an apostrophe in front. Numbers do not change.
 */
export function csvWriter(path: string, columns: readonly Column[]): TableWriter {
  return textWriter(path, csvLine(columns.map(({ name }) => name)), csvLine);
}

/** Also behind apostrophes, so that taking one away gives back every text. */
const FORMULA = /^'*[=+\-@\t\r]/;

export function csvLine(row: Row): string {
  return `${row.map(csvField).join(',')}\r\n`;
}

function csvField(value: Row[number]): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

import { closeSync, openSync, writeSync } from 'node:fs';
import type { Column, Row, TableWriter } from '../tables.ts';

/**
 * CSV by RFC 4180: a header, lines that end in CRLF, UTF-8 without a byte order mark. A null is an empty field, an empty
 * text is `""`. An apostrophe precedes each formula of a spreadsheet. Numbers do not change.
 */
export function csvWriter(path: string, columns: readonly Column[]): TableWriter {
  return lineWriter(path, csvLine(columns.map(({ name }) => name)), csvLine);
}

/** One JSON object a line, with every column by name. */
export function ndjsonWriter(path: string, columns: readonly Column[]): TableWriter {
  const keys = columns.map(({ name }, index) => `${index === 0 ? '{' : ','}${JSON.stringify(name)}:`);
  return lineWriter(path, '', (row) => {
    let line = '';
    for (const [index, key] of keys.entries()) line += key + JSON.stringify(row[index]);
    return `${line}}\n`;
  });
}

export function csvLine(row: Row): string {
  return `${row.map(csvField).join(',')}\r\n`;
}

/**
 * Spreadsheets of East Asia read the wide signs too. Where the comma separates decimals, a spreadsheet begins a new cell after
 * each semicolon, also within quotes. Matches behind apostrophes, so that a client that removes one gets every text back.
 */
const FORMULA = /(^|;)(?=['"]*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])/g;

function csvField(value: Row[number]): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = value.replace(FORMULA, "$1'");
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function lineWriter(path: string, head: string, lineOf: (row: Row) => string): TableWriter {
  const file = openSync(path, 'wx');
  const write = (text: string) => {
    const bytes = Buffer.from(text);
    // One call may write only some of the bytes.
    for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
  };
  write(head);
  return {
    write: (rows) => write(rows.map(lineOf).join('')),
    finish: () => closeSync(file),
  };
}

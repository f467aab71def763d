/** Lines of CSV. Readers need no other format. */
import type { Row } from './tables.ts';

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

import type { Column } from '../columns.ts';
import type { TableWriter } from './table-writer.ts';
import { textWriter } from './text-file.ts';

/** One JSON object a line, with every column by name. */
export function ndjsonWriter(path: string, columns: readonly Column[]): TableWriter {
  const keys = columns.map(({ name }, index) => `${index === 0 ? '{' : ','}${JSON.stringify(name)}:`);
  return textWriter(path, '', (row) => {
    let line = '';
    for (const [index, key] of keys.entries()) line += key + JSON.stringify(row[index]);
    return `${line}}\n`;
  });
}

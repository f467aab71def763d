import { closeSync, openSync, writeSync } from 'node:fs';
import type { Row } from '../columns.ts';
import type { TableWriter } from './table-writer.ts';

/** A new file of lines. @param lineOf a row as a line, its end included */
export function textWriter(path: string, head: string, lineOf: (row: Row) => string): TableWriter {
  const file = openSync(path, 'wx');
  write(file, Buffer.from(head));
  return {
    write: (rows) => write(file, Buffer.from(rows.map(lineOf).join(''))),
    finish: () => closeSync(file),
  };
}

/** Writes all of the bytes: one call may take only some of them. */
export function write(file: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
}

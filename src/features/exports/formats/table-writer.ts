import type { Row } from '../columns.ts';

/** Writes one table into one file, rows as they come. It blocks: it runs in a thread of its own. */
export interface TableWriter {
  write(rows: readonly Row[]): void;
  /** Ends the file. Nothing is whole before. */
  finish(): void;
}

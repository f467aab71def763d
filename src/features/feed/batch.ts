import type { Change } from './feed-reads.ts';

/** What came at once, shared by all who get it. */
export class Batch {
  readonly changes: readonly Change[];
  #encoded: Buffer | undefined;

  constructor(changes: readonly Change[]) {
    this.changes = changes;
  }

  /** The changes as they are sent: made once, however many get it. @param encode always the same */
  encoded(encode: (changes: readonly Change[]) => Buffer): Buffer {
    this.#encoded ??= encode(this.changes);
    return this.#encoded;
  }
}

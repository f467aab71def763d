/** Gives readers the stored files, a chunk at a time: no file is ever in memory as a whole. */

import type { PostgresReads } from '../../snapshot/read/postgres/postgres-reads.ts';
import type { ExportReader, StoredExport } from './files.ts';
import { exportChunk, newestExports } from './queries.ts';

export interface StoredExportsOptions {
  /** Connections of its own: what is read for answers does not wait behind downloads. */
  readonly reads: Pick<PostgresReads, 'run'>;
  /** Milliseconds. */
  readonly now: () => number;
}

/** Milliseconds for which it is not asked again which files are the newest. */
const KNOWN_FOR_MS = 1000;

export function exportReader({ reads, now }: StoredExportsOptions): ExportReader {
  let newest: Promise<readonly StoredExport[]> | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  return {
    current() {
      if (newest && now() - askedAt < KNOWN_FOR_MS) return newest;
      askedAt = now();
      const asked = reads.run(newestExports);
      newest = asked;
      asked.catch(() => {
        if (newest === asked) newest = undefined;
      });
      return asked;
    },
    async *read({ id, file, chunkBytes }, start, end) {
      for (let at = start; at < end; ) {
        const position = Math.floor(at / chunkBytes);
        const chunk = await reads.run((sql) => exportChunk(sql, id, position));
        const from = at - position * chunkBytes;
        const part = chunk?.subarray(from, from + end - at);
        if (!part || part.length === 0)
          throw new Error(
            `chunk ${position} of ${file} is no longer stored: two newer versions were made meanwhile`,
          );
        yield part;
        at += part.length;
      }
    },
  };
}

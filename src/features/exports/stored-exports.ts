import { shared } from '../../ops/shared-reads.ts';
import type { PostgresReads } from '../../snapshot/read/postgres/postgres-reads.ts';
import type { StoredExport } from './files.ts';
import { exportChunk, newestExports } from './queries.ts';

const LIST_MS = 1000;

export type ExportReader = ReturnType<typeof exportReader>;

/** Reads stored files in chunks: no file is ever in memory as a whole. Its methods may reject with `Unavailable`. */
export function exportReader(reads: Pick<PostgresReads, 'run'>, now: () => number) {
  const current: () => Promise<StoredExport[]> = shared(() => reads.run(newestExports), LIST_MS, now);
  return {
    /** Returns all files of the newest version, in every coding; empty before the first version. */
    current,

    /** @throws Error if the file is no longer stored: the earlier chunks are only a part of it */
    async *read(
      { id, file, chunkBytes }: StoredExport,
      start: number,
      end: number,
    ): AsyncGenerator<Buffer, void, undefined> {
      for (let at = start; at < end; ) {
        const position = Math.floor(at / chunkBytes);
        const chunk = await reads.run((sql) => exportChunk(sql, id, position));
        const from = at - position * chunkBytes;
        const part = chunk?.subarray(from, from + end - at);
        if (!part || part.length === 0)
          throw new Error(`chunk ${position} of ${file} was deleted: two newer versions are stored`);
        yield part;
        at += part.length;
      }
    },
  };
}

/** Reads the built program of the reference page: `scalar-<hash>.js.br`. */
import { createReadStream, readdirSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliDecompress, createBrotliDecompress, gzip } from 'node:zlib';
import { inPackage } from '../../config/package.ts';
import type { Coding } from '../protocol/negotiate.ts';

const FOLDER = inPackage('dist', 'reference');

/** Returns the name of the page's program, which contains its hash; undefined if it is not built. */
export function programName(folder = FOLDER): string | undefined {
  try {
    return readdirSync(folder)
      .find((name) => name.endsWith('.js.br'))
      ?.slice(0, -'.br'.length);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Returns the file in a coding. `bytes` is undefined if it is unpacked for the client. */
export async function programFile(name: string, coding: Coding) {
  const path = join(FOLDER, `${name}.br`);
  if (coding === 'identity')
    return { bytes: undefined, open: () => createReadStream(path).pipe(createBrotliDecompress()) };
  if (coding === 'gzip') {
    const packed = await gzipOf(path);
    return { bytes: packed.length, open: () => Readable.from([packed]) };
  }
  const { size } = await stat(path);
  return { bytes: size, open: () => createReadStream(path) };
}

const gzips = new Map<string, Promise<Buffer>>();

/**
 * Browsers accept Brotli only over TLS and on this machine. A file in gzip would be half of the npm package, so it is made at
 * its first use.
 */
function gzipOf(path: string): Promise<Buffer> {
  const made = gzips.get(path) ?? pack(path);
  gzips.set(path, made);
  made.catch(() => gzips.delete(path));
  return made;
}

async function pack(path: string): Promise<Buffer> {
  return await promisify(gzip)(await promisify(brotliDecompress)(await readFile(path)));
}

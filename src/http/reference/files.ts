/** Reads the built program of the reference page: `scalar-<hash>.js.br`. */
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress, gzip } from 'node:zlib';
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

const made = new Map<string, Promise<Buffer>>();

/**
 * Returns the bytes of the file in a coding. All answers share them: a stream or a decompressor for each slow client would use
 * up memory and files. Browsers accept Brotli only over TLS and on this machine, and a file in gzip would be half of the npm
 * package, so the other codings are made at their first use.
 */
export function programBytes(name: string, coding: Coding): Promise<Buffer> {
  const key = `${name} ${coding}`;
  const bytes = made.get(key) ?? make(name, coding);
  made.set(key, bytes);
  bytes.catch(() => made.delete(key));
  return bytes;
}

async function make(name: string, coding: Coding): Promise<Buffer> {
  if (coding === 'br') return readFile(join(FOLDER, `${name}.br`));
  if (coding === 'gzip') return promisify(gzip)(await programBytes(name, 'identity'));
  return promisify(brotliDecompress)(await programBytes(name, 'br'));
}

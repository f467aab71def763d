/** Reads the built files of the reference page: `scalar-<hash>.js.br` and `.gz`. */
import { createReadStream, readdirSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
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

export interface ProgramFile {
  /** Undefined if the file is unpacked for the client. */
  readonly bytes: number | undefined;
  open(): Readable;
}

export async function programFile(name: string, coding: Coding): Promise<ProgramFile> {
  const path = join(FOLDER, `${name}.${coding === 'br' ? 'br' : 'gz'}`);
  if (coding === 'identity')
    return { bytes: undefined, open: () => createReadStream(path).pipe(createGunzip()) };
  const { size } = await stat(path);
  return { bytes: size, open: () => createReadStream(path) };
}

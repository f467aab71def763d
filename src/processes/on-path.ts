import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

// Not on everybody's PATH: Debian keeps administration commands in sbin, Homebrew has places of its own.
const ALSO = [
  '/usr/local/bin',
  '/usr/bin',
  '/bin',
  '/usr/sbin',
  '/sbin',
  '/opt/homebrew/bin',
  '/usr/local/sbin',
];

/**
 * The absolute path of a program, or undefined.
 * @param path where to look, as in PATH; unless given, PATH itself and the usual places beside it
 */
export function onPath(program: string, path?: string): string | undefined {
  const folders = path === undefined ? [...split(process.env.PATH ?? ''), ...ALSO] : split(path);
  for (const folder of folders) {
    const candidate = join(folder, program);
    try {
      accessSync(candidate, constants.X_OK);
      if (statSync(candidate).isFile()) return candidate;
    } catch {
      // not there
    }
  }
  return undefined;
}

function split(path: string): string[] {
  return path.split(delimiter).filter((part) => part !== '');
}

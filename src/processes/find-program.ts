import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Folders that a PATH may lack: Debian's sbin, and Homebrew's. */
const COMMON_FOLDERS = [
  '/usr/local/bin',
  '/usr/bin',
  '/bin',
  '/usr/sbin',
  '/sbin',
  '/opt/homebrew/bin',
  '/usr/local/sbin',
];

/** Returns the absolute path of a program. @param path in the form of PATH; by default PATH and common folders */
export function findProgram(program: string, path?: string): string | undefined {
  const folders = path === undefined ? [...split(process.env.PATH ?? ''), ...COMMON_FOLDERS] : split(path);
  for (const folder of folders) {
    const candidate = join(folder, program);
    try {
      accessSync(candidate, constants.X_OK);
      if (statSync(candidate).isFile()) return candidate;
    } catch {}
  }
  return undefined;
}

function split(path: string): string[] {
  return path.split(delimiter).filter((part) => part !== '');
}

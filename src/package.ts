import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  // The same file runs from src/ and, when published, from dist/src/.
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error('fleetbook: its own package.json is missing; install it again');
    folder = parent;
  }
  return folder;
}

const ROOT = packageRoot();

/** Absolute path of something that ships in the package, e.g. `inPackage('drizzle')`. */
export function inPackage(...segments: string[]): string {
  return join(ROOT, ...segments);
}

/** The release, as package.json has it. */
export const VERSION = (JSON.parse(readFileSync(inPackage('package.json'), 'utf8')) as { version: string })
  .version;

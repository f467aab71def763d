import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  // It runs from src/config/ and, when published, from dist/chunks/.
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

/** Absolute path of an own script: `ownScript('src/cli')` is `src/cli.ts` or, when published, `dist/src/cli.js`. */
export function ownScript(path: string): string {
  return import.meta.url.endsWith('.ts') ? inPackage(`${path}.ts`) : inPackage('dist', `${path}.js`);
}

/** The program itself, as it was started: `src/cli.ts` or, when published, `dist/src/cli.js`. */
export const programScript = (): string => process.argv[1] ?? ownScript('src/cli');

const MANIFEST = JSON.parse(readFileSync(inPackage('package.json'), 'utf8')) as {
  readonly version: string;
  readonly engines: { readonly node: string };
};

/** The release, as package.json has it. */
export const VERSION = MANIFEST.version;

/** On which releases of Node.js the published package runs: `>=22.22`. */
export const NODE_RANGE = MANIFEST.engines.node;

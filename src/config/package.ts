import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** This file is in src/config/, or in dist/chunks/ of the published package. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Returns the absolute path of a file or folder of the package, e.g. `inPackage('drizzle')`. */
export function inPackage(...segments: string[]): string {
  return join(ROOT, ...segments);
}

/** Returns the absolute path of a script: for `src/cli` it is `src/cli.ts`, or `dist/src/cli.js` in the published package. */
export function ownScript(path: string): string {
  return import.meta.url.endsWith('.ts') ? inPackage(`${path}.ts`) : inPackage('dist', `${path}.js`);
}

export const programScript = (): string => process.argv[1] ?? ownScript('src/cli');

const MANIFEST = JSON.parse(readFileSync(inPackage('package.json'), 'utf8')) as {
  readonly version: string;
  readonly engines: { readonly node: string };
};

export const VERSION = MANIFEST.version;

/** Supported releases of Node.js: `>=22.22`. */
export const NODE_RANGE = MANIFEST.engines.node;

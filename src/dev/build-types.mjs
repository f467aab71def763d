/**
 * Writes the declarations of `@fleetbook/fleetbook` into `dist`, or into the folder given: `src/index.d.ts` and the files that it
 * refers to. TypeScript alone would write one for each module of the server. The published package does not use this script.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RELATIVE_MODULE = /\b(?:from|import)\s*(?:\(\s*)?['"](\.[^'"]+)['"]/g;

/** Returns the declaration and all that it refers to. */
function reachable(entry) {
  const found = new Set([entry]);
  for (const file of found) {
    for (const [, module] of readFileSync(file, 'utf8').matchAll(RELATIVE_MODULE))
      found.add(join(dirname(file), module.replace(/\.[jt]s$/, '.d.ts')));
  }
  return found;
}

const target = process.argv[2] ?? join(ROOT, 'dist');
const all = mkdtempSync(join(tmpdir(), 'fleetbook-types-'));
try {
  // `npm run check` checks the types. Without that the declarations take a quarter of the time.
  const { status } = spawnSync(
    join(ROOT, 'node_modules/.bin/tsc'),
    ['-p', 'tsconfig.build.json', '--noCheck', '--checkers', '1', '--outDir', all],
    { cwd: ROOT, stdio: 'inherit' },
  );
  if (status !== 0) process.exit(status ?? 1);
  for (const file of reachable(join(all, 'src/index.d.ts'))) {
    const copy = join(target, relative(all, file));
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(file, copy);
  }
} finally {
  rmSync(all, { recursive: true, force: true });
}

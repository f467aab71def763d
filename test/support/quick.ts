/** Which tests `npm run test:quick` runs: found out by what they import, so that there is no list to keep. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Set where only these tests are to run. */
export const QUICK = 'FLEETBOOK_TEST_QUICK';

const ROOT = join(import.meta.dirname, '../..');
/** What starts a server or a process, or needs one. */
const SLOW = ['support/postgres.ts', 'support/redis.ts', 'support/program.ts', 'dev/programs/'];
const SLOW_MODULES = ['node:child_process', 'node:worker_threads', 'vitest/node', 'testcontainers'];

export interface QuickFiles {
  /** Paths from the root of the repository. */
  readonly quick: readonly string[];
  readonly left: readonly string[];
}

export function quickFiles(): QuickFiles {
  const known = new Map<string, boolean>();
  const all = globSync('test/**/*.test.ts', { cwd: ROOT }).sort();
  const isLeft = (path: string) =>
    path.startsWith('test/containers/') || path.startsWith('test/faults/') || isSlow(join(ROOT, path), known);
  return { quick: all.filter((path) => !isLeft(path)), left: all.filter(isLeft) };
}

/** Whether this file of the tests, or one of them that it imports, is of the slow kind. */
function isSlow(file: string, known: Map<string, boolean>): boolean {
  const path = relative(join(ROOT, 'test'), file);
  // What the product imports is the product's: a test that uses it says so by its own imports.
  if (path.startsWith('..')) return false;
  const found = known.get(file);
  if (found !== undefined) return found;
  // Files that import each other are looked at once.
  known.set(file, false);
  const imports = [...readFileSync(file, 'utf8').matchAll(/\bfrom '([^']+)'|\bimport\('([^']+)'\)/g)].map(
    ([, named, loaded]) => named ?? loaded ?? '',
  );
  const slow =
    SLOW.some((each) => path.startsWith(each)) ||
    imports.some((name) =>
      name.startsWith('.') ? isSlow(join(dirname(file), name), known) : SLOW_MODULES.includes(name),
    );
  known.set(file, slow);
  return slow;
}

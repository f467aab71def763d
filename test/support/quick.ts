/** Selects the tests of `npm run test:quick` by their imports. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Set if only these tests are to run. */
export const QUICK = 'FLEETBOOK_TEST_QUICK';

const ROOT = join(import.meta.dirname, '../..');
/** Modules that start or need a server or process. */
const SLOW = ['support/postgres.ts', 'support/redis.ts', 'support/program.ts', 'dev/programs/'];
const SLOW_MODULES = ['node:child_process', 'node:worker_threads', 'vitest/node', 'testcontainers'];

export interface QuickFiles {
  /** Paths relative to the repository's root. */
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

/** Whether this test file, directly or indirectly, imports a slow module. */
function isSlow(file: string, known: Map<string, boolean>): boolean {
  const path = relative(join(ROOT, 'test'), file);
  // Imports inside of the product do not count: a test that needs a server imports a helper for it.
  if (path.startsWith('..')) return false;
  const found = known.get(file);
  if (found !== undefined) return found;
  // Each file is visited once, also in an import cycle.
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

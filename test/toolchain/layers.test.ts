/**
 * `npm test` starts no program, browser or second PostgreSQL: its tests run in vitest's processes, on one PostgreSQL and on
 * small Redis servers. A file that imports what starts one, itself or through a file of `test`, is a system test.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';

const STARTERS = ['node:child_process', 'playwright-core', 'testcontainers', 'src/dev/postgres.ts'];
/** It asks git, which takes some milliseconds. */
const ALLOWED = 'test/support/tracked-files.ts';

it('a test that starts a program, a browser or PostgreSQL is named *.system.test.ts', () => {
  const files = globSync('test/**/*.test.ts', { cwd: inPackage(), exclude: ['test/faults/**'] });
  const fast = files.filter((file) => !/\.(?:system|tool)\.test\.ts$/.test(file));
  expect(fast.length).toBeGreaterThan(100);
  expect(fast.flatMap((file) => startersOf(file, new Set()))).toEqual([]);
  // The rule finds what it is about.
  expect(startersOf('test/toolchain/package.system.test.ts', new Set())).not.toEqual([]);
  expect(startersOf('test/features/console/browser.system.test.ts', new Set())).not.toEqual([]);
});

/** Returns a line for each way to a starter. */
function startersOf(file: string, seen: Set<string>): string[] {
  if (seen.has(file) || file === ALLOWED) return [];
  seen.add(file);
  const code = readFileSync(inPackage(file), 'utf8').replaceAll(/^import type .*?;$/gms, '');
  const names = [...code.matchAll(/\bfrom '([^']+)'|\bimport\('([^']+)'\)/g)].map(
    ([, named, loaded]) => named ?? loaded ?? '',
  );
  return names.flatMap((name) => {
    const path = name.startsWith('.') ? join(dirname(file), name) : name;
    if (STARTERS.includes(path)) return [`${file} imports ${path}`];
    // The product starts commands and Redis servers itself: imports of `src` do not count.
    return path.startsWith('test/') && path.endsWith('.ts')
      ? startersOf(path, seen).map((way) => `${file}: ${way}`)
      : [];
  });
}

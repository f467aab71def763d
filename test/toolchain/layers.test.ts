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

it('docs/ARCHITECTURE.md has the imports that the rules allow to each folder', () => {
  const page = readFileSync(inPackage('docs/ARCHITECTURE.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `(src\/\w+)` \|.*\| (.+) \|$/gm)];
  const stated = new Map(rows.map(([, folder, imports = '']) => [folder, imports.replaceAll('`', '')]));
  const allowed = allowedImports();
  expect(allowed.size).toBeGreaterThan(10);
  expect([...allowed].map(([folder]) => [folder, stated.get(folder)?.split(', ').sort()])).toEqual([
    ...allowed,
  ]);
});

/** Returns what each folder of `src` may import, of the rules that list it. */
function allowedImports(): Map<string, string[]> {
  const { forbidden } = JSON.parse(readFileSync(inPackage('.dependency-cruiser.json'), 'utf8')) as {
    forbidden: { from: { path?: string }; to: { path?: string; pathNot?: string } }[];
  };
  const found = new Map<string, string[]>();
  for (const { from, to } of forbidden) {
    const [, folder] = /^\^(src\/\w+)\/$/.exec(from.path ?? '') ?? [];
    if (folder === undefined || to.path !== '^(src|workers|test|bench)/') continue;
    const [, list = ''] = /^\^src\/(?:\((.*)\)|\w+\/)$/.exec(to.pathNot ?? '') ?? [];
    const others = list
      .replaceAll(/([^|]*)\(([^)]*)\)([^|]*)/g, (_, before, files: string, after) =>
        files
          .split('|')
          .map((file) => `${before}${file}${after}`)
          .join('|'),
      )
      .split('|')
      .map((path) => path.replace(/\/$|\$$/, '').replaceAll('\\', ''))
      .filter((path) => path !== '' && `src/${path}` !== folder && path !== 'config/package.ts');
    found.set(folder, others.length === 0 ? ['nothing'] : others.sort());
  }
  return found;
}

import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const LIST = 'src/app/features.ts';
const BUILD_INFO = 'tsconfig.tsbuildinfo';
const list = await readFile(join(ROOT, LIST), 'utf8');
/** Maps each folder to the line that imports the feature, and the imported name. */
const imported = new Map(
  [...list.matchAll(/^import \{ (\w+) \} from '\.\.\/features\/([\w-]+)\/index\.ts';\n/gm)].map(
    ([line, name = '', folder = '']) => [folder, { line, name }],
  ),
);

interface Config {
  readonly compilerOptions: object;
  readonly include: readonly string[];
}

/** With three, six groups serve twenty features. */
const GROUPS_OF_EACH = 3;
/** For one run of the compiler on a busy machine. */
const CHECKS_WITHIN_MS = 480_000;

/** The product without its tests. */
let copy: string;
/** The state of the compiler after it checked the whole product. A compilation without features starts from it. */
let buildInfo: Buffer;

beforeAll(async () => {
  copy = await mkdtemp(join(tmpdir(), 'fleetbook-features-'));
  for (const name of ['src', 'workers', 'packages', 'package.json'])
    await cp(join(ROOT, name), join(copy, name), {
      recursive: true,
      filter: (path) => !/\/(?:node_modules|dist)$/.test(path),
    });
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const { compilerOptions } = JSON.parse(await readFile(join(ROOT, 'tsconfig.json'), 'utf8')) as Config;
  const config: Config = {
    // Packages outside of the folder would be checked each time.
    compilerOptions: { ...compilerOptions, preserveSymlinks: true },
    include: ['src', 'workers', 'packages/mcp', 'packages/client'],
  };
  await writeFile(join(copy, 'tsconfig.json'), JSON.stringify(config));
  expect(await typeErrors()).toBe('');
  buildInfo = await readFile(join(copy, BUILD_INFO));
}, CHECKS_WITHIN_MS);
afterAll(() => rm(copy, { recursive: true }));

async function typeErrors(): Promise<string> {
  // Several checkers would each check the types of the packages.
  const tsc = run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', copy, '--checkers', '1'], {
    cwd: copy,
    env: { ...process.env, GOGC: '300' },
  });
  const { stdout } = await tsc.catch((error: { stdout: string }) => error);
  return stdout;
}

/** Returns the type errors without the folders of features. @param lines of the list of features */
async function errorsWithout(folders: readonly string[], lines: string): Promise<string> {
  const moves = folders.map((folder) => ({
    from: join(copy, 'src/features', folder),
    to: join(copy, `deleted-${folder}`),
  }));
  for (const { from, to } of moves) await rename(from, to);
  await writeFile(join(copy, LIST), lines);
  await writeFile(join(copy, BUILD_INFO), buildInfo);
  try {
    return await typeErrors();
  } finally {
    for (const { from, to } of moves) await rename(to, from);
    await writeFile(join(copy, LIST), list);
  }
}

function linesWithout(folders: readonly string[]): string {
  return folders.reduce((lines, folder) => {
    const { line, name } = imported.get(folder) ?? expect.unreachable();
    const without = lines.replace(line, '').replace(new RegExp(`\\b${name},?\\s*`), '');
    expect(without).not.toContain(name);
    return without;
  }, list);
}

/** Groups of features: for any two, one group has the first without the second. So one compilation serves many features. */
function groups(folders: readonly string[]): string[][] {
  const found = Array.from({ length: folders.length }, (): string[] => []);
  // Every feature is in the same number of groups, and no two are in the same groups.
  let mask = 0;
  for (const folder of folders) {
    do mask++;
    while (mask.toString(2).replaceAll('0', '').length !== GROUPS_OF_EACH);
    for (const [group, members] of found.entries()) if (mask & (1 << group)) members.push(folder);
  }
  return found.filter((members) => members.length > 0);
}

describe('a feature', () => {
  it('is a folder with an index, and has a line in the list', async () => {
    const folders = await readdir(join(ROOT, 'src/features'));
    expect([...imported.keys()].sort()).toEqual(folders.sort());
  });

  it.each(groups([...imported.keys()]).map((folders) => ({ folders })))(
    'can be deleted with its line, while other features stay: $folders',
    { timeout: CHECKS_WITHIN_MS },
    async ({ folders }) => {
      expect(await errorsWithout(folders, linesWithout(folders))).toBe('');
    },
  );

  it('cannot be deleted without its line', { timeout: CHECKS_WITHIN_MS }, async () => {
    expect(await errorsWithout(['search'], list)).toContain(LIST);
  });
});

import { execFile } from 'node:child_process';
import { cp, mkdtempDisposable, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

it('the migrations match the schema: drizzle-kit finds no missing migration', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-schema-'));
  await cp(join(ROOT, 'drizzle'), folder.path, { recursive: true });
  const before = await readdir(folder.path);
  // drizzle-kit resolves its folder below the working directory.
  const out = relative(ROOT, folder.path);
  const options = ['--dialect', 'postgresql', '--schema', 'src/db/schema.ts', '--out', out];
  const { stdout } = await promisify(execFile)(
    join(ROOT, 'node_modules/.bin/drizzle-kit'),
    ['generate', ...options],
    { cwd: ROOT },
  );
  expect(stdout).toContain('No schema changes');
  expect(await readdir(folder.path)).toEqual(before);
});

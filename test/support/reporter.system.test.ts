import { execFile } from 'node:child_process';
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';

/** Runs vitest on these files with the reporter. Below node_modules/.cache, so that they can import vitest. */
async function linesOf(files: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const cache = inPackage('node_modules/.cache');
  await mkdir(cache, { recursive: true });
  await using folder = await mkdtempDisposable(join(cache, 'reporter-'));
  const all = {
    'vitest.config.ts': `export default { test: { exclude: [], retry: 1, reporters: ['${inPackage('test/support/reporter.ts')}'] } };`,
    ...files,
  };
  for (const [name, content] of Object.entries(all)) await writeFile(join(folder.path, name), content);
  const vitest = [inPackage('node_modules/vitest/vitest.mjs'), 'run', `--root=${folder.path}`, ...args];
  return await new Promise<{ code: number; lines: string[] }>((resolve) => {
    execFile(process.execPath, vitest, { cwd: folder.path }, (error, stdout) =>
      resolve({
        code: Number(error?.code ?? 0),
        lines: stdout
          .trimEnd()
          .split('\n')
          .filter((line) => /^(failed|flaky|skipped|\d+ passed)/.test(line)),
      }),
    );
  });
}

const HEAD = "import { beforeAll, describe, expect, it } from 'vitest';\n";
/** Passes when it is repeated. */
const UNLUCKY = `${HEAD} let tries = 0; it('shines', () => expect(++tries).toBe(2));`;

it('counts tests, and says why one was skipped, failed or repeated', async () => {
  const { code, lines } = await linesOf({
    'a.test.ts': `${HEAD} it('glows', { skip: true, meta: { skipped: 'needs a moon' } }, () => {}); it.todo('sets'); it('waxes', (test) => test.skip('too early'));
      it('rises', () => {}); describe('at night', () => { it('shines', () => expect(1).toBe(2)); });`,
    'b.test.ts': UNLUCKY,
    'c.test.ts': `${HEAD} beforeAll(() => { throw new Error('no server'); }); it('shines', () => {});`,
    'd.test.ts': `throw new Error('broken');`,
  });
  expect(lines.slice(0, -1).sort()).toEqual(
    [
      'failed: a.test.ts > at night > shines: expected 1 to be 2 // Object.is equality',
      'failed: c.test.ts',
      'failed: d.test.ts',
      'flaky: b.test.ts > shines: passed when repeated, failed before: expected 1 to be 2 // Object.is equality',
      'skipped: 1 of a.test.ts: needs a moon',
      'skipped: 1 of a.test.ts: still to be written',
      'skipped: 1 of a.test.ts: too early',
    ].sort(),
  );
  expect(lines.at(-1)).toBe('2 passed, 3 failed, 4 skipped');
  expect(code).toBe(1);
});

it('fails a run whose tests of more than two files passed only when repeated', async () => {
  const two = { 'a.test.ts': UNLUCKY, 'b.test.ts': UNLUCKY };
  expect((await linesOf(two)).code).toBe(0);
  const { code, lines } = await linesOf({ ...two, 'c.test.ts': UNLUCKY });
  expect(lines.slice(-2)).toEqual([
    'failed: tests of 3 files passed only when repeated; 2 may',
    '3 passed, 1 failed',
  ]);
  expect(code).toBe(1);
});

it('fails a run without a test, and one whose set-up or tear-down fails', async () => {
  const none = await linesOf({});
  expect(none.lines.at(-1)).toBe('0 passed, 1 failed');
  expect(none.code).toBe(1);
  const config = `export default { test: { globalSetup: './setup.ts', reporters: ['${inPackage('test/support/reporter.ts')}'] } };`;
  const late = await linesOf({
    'vitest.config.ts': config,
    'setup.ts': 'export default () => () => { process.exitCode = 1; };',
    'a.test.ts': `${HEAD} it('shines', () => {});`,
  });
  expect(late.lines.slice(-2)).toEqual(['failed outside of the tests, see above', '1 passed, 1 failed']);
  expect(late.code).toBe(1);
  const unready = await linesOf({
    'vitest.config.ts': config,
    'setup.ts': "export default () => { throw new Error('no server'); };",
    'a.test.ts': `${HEAD} it('shines', () => {});`,
  });
  expect(unready.lines.at(-1)).toBe('0 passed, 1 failed');
  expect(unready.code).toBe(1);
});

it('does not explain tests that -t leaves out', async () => {
  const files = { 'a.test.ts': `${HEAD} it('shines', () => {}); it('glows', () => {});` };
  const { lines } = await linesOf(files, '-t', 'shines');
  expect(lines).toEqual(['1 passed, 0 failed, 1 skipped']);
});

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

/** What `npm test -- <args>` runs. */
function run(...args: string[]): Promise<{ code: number; lines: string[] }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [join(ROOT, 'test/run.ts'), ...args], { cwd: ROOT }, (error, stdout) => {
      resolve({ code: Number(error?.code ?? 0), lines: stdout.trimEnd().split('\n') });
    });
  });
}

it('passes its arguments on, names what is skipped, and ends with the plain count', async () => {
  const { code, lines } = await run('test/local/until.test.ts', '-t', 'asks again');
  expect(lines.slice(-3)).toEqual([
    'skipped: test/local/until.test.ts > returns the first truthy answer',
    'skipped: test/local/until.test.ts > says what it waited for, how long, and what came last',
    '1 passed, 0 failed, 2 skipped',
  ]);
  expect(code).toBe(0);
});

it('fails when no test ran', async () => {
  const { code, lines } = await run('test/local/no-such-file.test.ts');
  expect(lines.slice(-2)).toEqual([
    'failed outside of the tests: vitest ended with code 1, see above',
    '0 passed, 1 failed',
  ]);
  expect(code).toBe(1);
});

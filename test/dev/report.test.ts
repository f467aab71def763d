import { execFile } from 'node:child_process';
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { type ReportOptions, readReport } from '../support/report.ts';

const ROOT = join(import.meta.dirname, '../..');

/**
 * Runs these test files in vitest and reads its report. Below node_modules/.cache, so that they can import vitest.
 */
async function reportOf(files: Readonly<Record<string, string>>, options: ReportOptions = {}) {
  const cache = join(ROOT, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  await using folder = await mkdtempDisposable(join(cache, 'report-'));
  const write = async (name: string, content: string) => {
    await mkdir(dirname(join(folder.path, name)), { recursive: true });
    await writeFile(join(folder.path, name), content);
  };
  await write(
    'vitest.config.ts',
    `export default { test: { exclude: [], include: ['${folder.path}/**/*.test.ts'] } };`,
  );
  for (const [name, content] of Object.entries(files)) {
    await write(name, `import { beforeAll, describe, it, expect } from 'vitest';\n${content}`);
  }
  const report = join(folder.path, 'report.json');
  const args = ['run', `--root=${folder.path}`, '--reporter=json', `--outputFile.json=${report}`];
  const code = await new Promise<number>((resolve) => {
    const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
    execFile(process.execPath, [vitest, ...args], { cwd: folder.path }, (error) =>
      resolve(Number(error?.code ?? 0)),
    );
  });
  const { passed, failed, skipped } = await readReport([report], options);
  const name = (file: string) => file.slice(folder.path.length + 1);
  return {
    code,
    passed,
    failed,
    skipped: skipped.map((test) => `${name(test.file)}: ${test.name}: ${test.reason}`),
  };
}

it('counts passed and failed tests, and names skipped and pending ones with the reason', async () => {
  const files = {
    'a.test.ts': `it('one', () => {}); it('two', () => {}); it('three', () => { expect(1).toBe(2); });`,
    'b.test.ts': `describe('b', () => { it.skip('later', () => {}); it.todo('some day'); it('now', (t) => t.skip('why')); it('elsewhere', { skip: true, meta: { skipped: 'needs a moon' } }, () => {}); });`,
  };
  expect(await reportOf(files)).toEqual({
    code: 1,
    passed: 2,
    failed: 1,
    skipped: [
      'b.test.ts: b > later: its file says so',
      'b.test.ts: b > some day: it is still to be written',
      'b.test.ts: b > now: its file says so',
      'b.test.ts: b > elsewhere: needs a moon',
    ],
  });
});

it('counts a file that cannot be loaded as failed, though it has no test', async () => {
  const files = { 'a.test.ts': `it('one', () => {});`, 'b.test.ts': `throw new Error('broken');` };
  expect(await reportOf(files)).toEqual({ code: 1, passed: 1, failed: 1, skipped: [] });
});

it('counts a file whose set-up fails as failed', async () => {
  const { failed, passed } = await reportOf({
    'a.test.ts': `beforeAll(() => { throw new Error('no server'); }); it('one', () => {});`,
  });
  expect({ passed, failed: failed > 0 }).toEqual({ passed: 0, failed: true });
});

it('counts nothing without a report', async () => {
  expect(await readReport([join(ROOT, 'no-such-report.json')])).toEqual({
    passed: 0,
    failed: 0,
    loaded: [],
    failedFiles: [],
    skipped: [],
    leftOut: 0,
    cancelled: 0,
    files: 0,
  });
});

/** `npm test`: gets the servers that the tests need, runs them, and says what came out. Arguments go to vitest. */
import { spawn } from 'node:child_process';
import { mkdtempDisposable } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { acquireRedisServer } from '../src/local/acquire-redis.ts';
import { readReport } from './support/report.ts';

const ROOT = join(import.meta.dirname, '..');
const say = (line: string) => process.stdout.write(`${line}\n`);

await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-report-'));
const reportFile = join(folder.path, 'vitest.json');
const problem = await run(process.argv.slice(2));
const report = await readReport(reportFile);

for (const test of report.skipped) say(`skipped: ${relative(ROOT, test.file)} > ${test.name}`);
// What fails outside of every test, such as a server that does not start, is a failure too.
const outside = problem !== undefined && report.failed === 0 ? 1 : 0;
if (outside > 0) say(`failed outside of the tests: ${problem}`);
const failed = report.failed + outside;
const skipped = report.skipped.length === 0 ? '' : `, ${report.skipped.length} skipped`;
say(`${report.passed} passed, ${failed} failed${skipped}`);
process.exitCode = failed > 0 || report.passed === 0 ? 1 : 0;

/** Resolves with what went wrong, if anything did. */
async function run(args: readonly string[]): Promise<string | undefined> {
  try {
    await acquireRedisServer();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const code = await runVitest(args);
  return code === 0 ? undefined : `vitest ended with code ${code}, see above`;
}

function runVitest(args: readonly string[]): Promise<number> {
  const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
  const child = spawn(process.execPath, [vitest, 'run', ...reporters, ...args], {
    cwd: ROOT,
    stdio: 'inherit',
  });
  // Ctrl-C reaches vitest as well: it stops its servers, and what ran is still counted.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? 1));
  });
}

/**
 * `npm test`: gets the servers that the tests need, runs them, and says what came out. Arguments go to vitest, but for
 * `--quick`: only tests that need no server and start no process.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { acquireRedisServer } from '../src/dev/acquire-redis.ts';
import { QUICK, quickFiles } from './support/quick.ts';
import {
  type FlakyTest,
  REPORT_FILE,
  readReport,
  type TestRunStarted,
  type UnhandledError,
} from './support/report.ts';

const ROOT = join(import.meta.dirname, '..');
/** The test under way may take so long to end after Ctrl-C, with the servers; then all of it is killed. */
const END_WITHIN_MS = 60_000;
const say = (line: string) => process.stdout.write(`${line}\n`);

interface Outcome {
  /** What went wrong, if anything did. */
  readonly problem?: string;
  /** Test files that were to run. */
  readonly files?: number;
  readonly signal?: 'SIGINT' | 'SIGTERM';
}

const args = process.argv.slice(2);
const isQuick = args.includes('--quick');
const filters = args.filter((arg) => arg !== '--quick');
await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-report-'));
const flaky: FlakyTest['flaky'][] = [];
const unhandled: string[] = [];
const reportFile = join(folder.path, 'vitest.json');
const { problem, files = 0, signal } = await run();
const report = await readReport(reportFile, {
  isInterrupted: signal !== undefined,
  isFiltered: filters.some((arg) => /^(-t|--testNamePattern)/.test(arg)),
});

for (const test of report.skipped)
  say(`skipped: ${relative(ROOT, test.file)} > ${test.name}: ${test.reason}`);
for (const test of flaky)
  say(
    `flaky: ${relative(ROOT, test.file)} > ${test.name}: passed when repeated, failed before: ${test.error}`,
  );
if (isQuick) {
  const { quick, left } = quickFiles();
  say(
    `left out: ${left.length} of ${quick.length + left.length} test files, which need PostgreSQL, Redis or processes; npm test runs them`,
  );
}
if (signal) say(`interrupted by ${signal}: ${report.files} of ${files} test files ran to their end`);
// What fails outside of every test, such as a server that does not start, is a failure too.
const outside = problem !== undefined && report.failed === 0 && !signal ? 1 : 0;
for (const error of unhandled) say(`an error that no test caught: ${error}`);
if (outside > 0) say(`failed outside of the tests: ${problem}`);
const failed = report.failed + outside;
const skipped = report.skipped.length + report.cancelled;
say(`${report.passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`);
if (signal) process.exitCode = 128 + constants.signals[signal];
else process.exitCode = failed > 0 || report.passed === 0 ? 1 : 0;

async function run(): Promise<Outcome> {
  if (!isQuick) {
    try {
      // The tests stop, kill and flush servers of their own: one that runs already is of no use to them.
      await acquireRedisServer({ isUrlUseful: false });
    } catch (error) {
      return { problem: error instanceof Error ? error.message : String(error) };
    }
  }
  const child = spawn(process.execPath, [join(ROOT, 'test/support/vitest-process.ts'), ...filters], {
    cwd: ROOT,
    env: { ...process.env, [REPORT_FILE]: reportFile, ...(isQuick ? { [QUICK]: '1' } : {}) },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true,
  });
  let told: TestRunStarted | undefined;
  child.on('message', (message: TestRunStarted | FlakyTest | UnhandledError) => {
    if ('flaky' in message) flaky.push(message.flaky);
    else if ('unhandled' in message) unhandled.push(message.unhandled);
    else told = message;
  });
  const interruption = interruptible(child);
  const [code] = (await once(child, 'close')) as [number | null];
  return {
    ...(code === 0 ? {} : { problem: `vitest ended with code ${code ?? 'none'}, see above` }),
    ...(told === undefined ? {} : { files: told.files }),
    ...(interruption.signal === undefined ? {} : { signal: interruption.signal }),
  };
}

/** Has the first Ctrl-C end the tests, with what they started, and the second one kill them. */
function interruptible(child: ChildProcess): { readonly signal: Outcome['signal'] } {
  let signal: Outcome['signal'];
  const kill = () => {
    // The whole group: workers, and what they started that has not got a group of its own.
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  };
  const end = (received: NonNullable<Outcome['signal']>) => {
    if (signal !== undefined) {
      kill();
      return;
    }
    signal = received;
    say(`${received}: the test under way ends, the rest is left out; once more kills it`);
    if (child.connected) child.send('interrupt');
    setTimeout(kill, END_WITHIN_MS).unref();
  };
  process.on('SIGINT', end);
  process.on('SIGTERM', end);
  return {
    get signal() {
      return signal;
    },
  };
}

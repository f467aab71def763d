/**
 * `npm test`: prepares the servers that the tests need, runs the tests, and prints the results. Arguments go to
 * vitest, except `--quick`: only tests that need no server and start no process.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { join, relative } from 'node:path';
import { acquireRedisServer } from '../src/dev/install-redis.ts';
import { installer } from '../src/dev/system-package.ts';
import { findProgram } from '../src/processes/find-program.ts';
import { TEST_PROGRAM } from './support/program.ts';
import { QUICK, quickFiles } from './support/quick.ts';
import {
  type FailedTest,
  type FlakyTest,
  REPORT_FILE,
  readReport,
  type TestReport,
  type TestRunStarted,
  type UnhandledError,
} from './support/report.ts';
import { type RunSummary, SUMMARY_FILE } from './support/run-summary.ts';
import { scratchFolder } from './support/scratch.ts';
import { type StockPostgres, stockPostgres } from './support/stock-postgres-binaries.ts';
import { STOCK_POSTGRES } from './support/stock-postgres-setting.ts';

const ROOT = join(import.meta.dirname, '..');
/** The active test and the servers may take this long to end after Ctrl-C; then all processes are killed. */
const END_WITHIN_MS = 60_000;
/** At most this many test files are repeated in CI: more failures are not chance. */
const REPEATED_FILES = 5;
const say = (line: string) => process.stdout.write(`${line}\n`);

/** The messages of vitest's process. */
interface Messages {
  readonly flaky: FlakyTest['flaky'][];
  readonly failures: FailedTest['failed'][];
  readonly unhandled: string[];
}

interface Outcome extends Messages {
  readonly problem?: string;
  readonly files?: number;
  /** The regular expression that selected tests. */
  readonly names?: string;
  readonly signal?: 'SIGINT' | 'SIGTERM';
  /** Of this run and of those before. */
  readonly report: TestReport;
}

const args = process.argv.slice(2);
const isQuick = args.includes('--quick');
const filters = args.filter((arg) => arg !== '--quick');
await using folder = await scratchFolder();
const reportFiles: string[] = [];
let stock: StockPostgres | undefined;
let bundle: string | undefined;
let redis: string | undefined;
const first = await run(filters);
let { report } = first;
let last = first;
const unlucky = report.failedFiles;
const isBadLuck = unlucky.length > 0 && unlucky.length <= REPEATED_FILES;
if (process.env.CI && isBadLuck && first.names === undefined && !first.signal) {
  for (const failure of first.failures) say(described('failed once', failure));
  say(`running again, one after the other: ${unlucky.map((file) => relative(ROOT, file)).join(' ')}`);
  const flags = filters.filter((arg) => arg.startsWith('--'));
  last = await run([...flags, ...unlucky, '--maxWorkers=1']);
  ({ report } = last);
}
const { signal } = last;
const all = last === first ? [first] : [first, last];

for (const test of report.skipped)
  say(`skipped: ${relative(ROOT, test.file)} > ${test.name}: ${test.reason}`);
for (const test of all.flatMap(({ flaky }) => flaky))
  say(described('flaky', test, 'passed when repeated, failed before: '));
for (const file of unlucky)
  if (!report.failedFiles.includes(file))
    say(`flaky: ${relative(ROOT, file)}: passed when it was run again, see "failed once" above`);
if (stock) say(stock.line);
if (redis) say(`the tests ran on ${redis}`);
const summaryFile = process.env[SUMMARY_FILE];
// Tests that `-t` leaves out are not skipped, so such a run says nothing about them.
if (summaryFile && first.names === undefined) await writeFile(summaryFile, JSON.stringify(summaryOf(report)));
if (isQuick) {
  const { quick, left } = quickFiles();
  say(
    `left out: ${left.length} of ${quick.length + left.length} test files, which need PostgreSQL, Redis or processes; npm test runs them`,
  );
}
if (signal)
  say(`interrupted by ${signal}: ${report.files} of ${first.files ?? 0} test files ran to their end`);
const unhandled = all.flatMap((outcome) => outcome.unhandled);
for (const error of unhandled) say(`an error that no test caught: ${error}`);
// Failures outside of all tests, such as a server that does not start, count too.
const problem = last.problem ?? (unhandled.length > 0 ? first.problem : undefined);
const outside = problem !== undefined && report.failed === 0 && !signal ? 1 : 0;
if (outside > 0) say(`failed outside of the tests: ${problem}`);
for (const failure of last.failures) say(described('failed', failure));
const failed = report.failed + outside;
const skipped = report.skipped.length + report.leftOut + report.cancelled;
say(`${report.passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`);
if (signal) process.exitCode = 128 + constants.signals[signal];
else process.exitCode = failed > 0 || report.passed === 0 ? 1 : 0;

function described(word: string, test: FailedTest['failed'], before = ''): string {
  return `${word}: ${relative(ROOT, test.file)} > ${test.name}: ${before}${test.error}`;
}

function summaryOf({ loaded, skipped }: TestReport): RunSummary {
  return {
    at: new Date().toISOString(),
    files: loaded.map((file) => relative(ROOT, file)),
    skipped: skipped.map((test) => ({ ...test, file: relative(ROOT, test.file) })),
  };
}

async function run(args: readonly string[]): Promise<Outcome> {
  const messages: Messages = { flaky: [], failures: [], unhandled: [] };
  if (!isQuick) {
    try {
      // The tests stop, kill and flush their servers, so a running one cannot be used.
      const { name, version } = await acquireRedisServer({ isUrlUseful: false });
      redis = `${name} ${version}`;
      // Without it the tests through a pooler are skipped. Only CI installs programs for tests.
      if (process.env.CI && !findProgram('pgbouncer')) await installer(findProgram)?.('pgbouncer');
      stock ??= await stockPostgres();
      // A run within a test must not replace the bundle that other tests execute.
      if (process.env.CI) bundle ??= process.env[TEST_PROGRAM] ?? builtProgram();
    } catch (error) {
      const report = await readReport([]);
      return { ...messages, report, problem: error instanceof Error ? error.message : String(error) };
    }
  }
  const reportFile = join(folder.path, `vitest-${reportFiles.length}.json`);
  reportFiles.push(reportFile);
  const child = spawn(process.execPath, [join(ROOT, 'test/support/vitest-process.ts'), ...args], {
    cwd: ROOT,
    env: {
      ...process.env,
      TMPDIR: folder.path,
      [REPORT_FILE]: reportFile,
      ...(isQuick ? { [QUICK]: '1' } : {}),
      ...(bundle === undefined ? {} : { [TEST_PROGRAM]: bundle }),
      ...(stock?.bin === undefined ? {} : { [STOCK_POSTGRES]: stock.bin }),
    },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true,
  });
  let started: TestRunStarted | undefined;
  child.on('message', (message: TestRunStarted | FlakyTest | FailedTest | UnhandledError) => {
    if ('flaky' in message) messages.flaky.push(message.flaky);
    else if ('failed' in message) messages.failures.push(message.failed);
    else if ('unhandled' in message) messages.unhandled.push(message.unhandled);
    else started = message;
  });
  const interruption = interruptible(child);
  const [code] = (await once(child, 'close')) as [number | null];
  const isInterrupted = interruption.signal !== undefined;
  return {
    ...messages,
    report: await readReport(reportFiles, { isInterrupted, names: started?.names }),
    ...(code === 0 ? {} : { problem: `vitest ended with code ${code ?? 'none'}, see above` }),
    ...started,
    ...(interruption.signal === undefined ? {} : { signal: interruption.signal }),
  };
}

/** Bundles the sources into `dist`, and returns the path of the program. */
function builtProgram(): string {
  // The names of chunks depend on their code, so those of an earlier bundle would stay.
  for (const name of ['chunks', 'src']) rmSync(join(ROOT, 'dist', name), { recursive: true, force: true });
  execFileSync(process.execPath, [join(ROOT, 'node_modules/rolldown/bin/cli.mjs'), '-c'], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return join(ROOT, 'dist/src/cli.js');
}

/** The first Ctrl-C ends the tests with their processes, and the second one kills them. */
function interruptible(child: ChildProcess): { readonly signal: Outcome['signal'] } {
  let signal: Outcome['signal'];
  const kill = () => {
    // The whole group: workers, and all of their processes without separate groups.
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

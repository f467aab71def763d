/**
 * Runs vitest as `vitest run <arguments>` does, in a process that can end early: `interrupt` finishes the current
 * test, skips the rest, writes the report and stops the servers. It has a separate process group, since Ctrl-C in a
 * terminal would kill vitest, its workers and the servers of the tests at once.
 */
import type { TestError } from 'vitest';
import {
  createVitest,
  type InlineConfig,
  parseCLI,
  type Reporter,
  type TestModule,
  type Vitest,
} from 'vitest/node';
import {
  type FailedTest,
  type FlakyTest,
  REPORT_FILE,
  type TestRunStarted,
  type UnhandledError,
} from './report.ts';

let vitest: Vitest | undefined;
let isInterrupted = false;
function interrupt(): void {
  isInterrupted = true;
  void vitest?.cancelCurrentRun('keyboard-input');
}
process.on('message', interrupt);
// The parent process has ended.
process.on('disconnect', interrupt);

const reporter: Reporter = {
  onTestRunStart(specifications) {
    const names = options.testNamePattern;
    const started: TestRunStarted = {
      files: specifications.length,
      ...(names === undefined ? {} : { names: new RegExp(names).source }),
    };
    process.send?.(started);
    // No run had started that could be cancelled.
    if (isInterrupted) interrupt();
  },
  onTestCaseResult(test) {
    if (!test.diagnostic()?.flaky) return;
    const [error] = test.result().errors ?? [];
    const flaky = { file: test.module.moduleId, name: test.fullName, error: messageOf(error) };
    process.send?.({ flaky } satisfies FlakyTest);
  },
  onTestRunEnd(modules, errors) {
    for (const module of modules)
      for (const failed of failuresOf(module)) process.send?.({ failed } satisfies FailedTest);
    for (const { message, stack } of errors)
      process.send?.({
        unhandled: (stack ?? message).split('\n').slice(0, 4).join('\n'),
      } satisfies UnhandledError);
  },
};
/** Failed tests, and set-ups and files that failed outside of them. */
function* failuresOf(module: TestModule): Generator<FailedTest['failed']> {
  const file = module.moduleId;
  for (const { message } of module.errors()) yield { file, name: 'the file', error: message };
  for (const suite of module.children.allSuites())
    for (const { message } of suite.errors()) yield { file, name: suite.fullName, error: message };
  for (const test of module.children.allTests('failed'))
    yield { file, name: test.fullName, error: messageOf(test.result().errors?.[0]) };
}

/** Returns the message of an error; a suppressed error's message is included. */
function messageOf(error: TestError | undefined): string {
  if (error?.name !== 'SuppressedError') return error?.message ?? 'no error';
  const { suppressed, error: released } = error as { suppressed?: TestError; error?: TestError };
  return `${messageOf(suppressed)}; ${messageOf(released)}`;
}

const { filter, options } = parseCLI(['vitest', 'run', ...process.argv.slice(2)]);
const outputFile = process.env[REPORT_FILE];
if (outputFile === undefined) throw new Error('it is started by test/run.ts');
const reporters: InlineConfig['reporters'] = ['default', ['json', { outputFile }], reporter];
vitest = await createVitest({ ...options, watch: false, run: true, reporters });
try {
  if (!isInterrupted) await vitest.start(filter);
} catch (error) {
  process.exitCode = 1;
  console.error(error instanceof Error ? error.message : error);
} finally {
  await vitest.close();
  process.off('disconnect', interrupt);
  if (process.connected) process.disconnect?.();
}

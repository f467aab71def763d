/**
 * vitest's reporter of the last lines: why tests were skipped, which tests passed only when they were repeated, and as the very
 * last line `N passed, N failed, N skipped`, which CI reads.
 */
import { relative } from 'node:path';
import type { TestError } from 'vitest';
import type { Reporter, SerializedError, TestCase, TestModule, TestRunEndReason, Vitest } from 'vitest/node';

/** More files whose tests had to be repeated are no bad luck, and fail the run. */
const MOST_RETRIED_FILES = 2;

export default class ClosingLine implements Reporter {
  #vitest: Vitest | undefined;
  #passed = 0;
  #failed = 0;
  #skipped = 0;
  readonly #lines: string[] = [];

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
    // Tear-downs print and can fail, so nothing is printed before them.
    if (!vitest.config.watch) process.once('exit', () => this.#close());
  }

  onTestRunEnd(
    modules: readonly TestModule[],
    errors: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    const isPart = this.#vitest?.config.testNamePattern !== undefined || reason === 'interrupted';
    const retried = new Set<string>();
    for (const module of modules) {
      const failedBefore = this.#failed;
      for (const test of module.children.allTests()) {
        const { state, errors: [error] = [] } = test.result();
        if (state === 'passed') this.#passed++;
        else if (state === 'failed') {
          this.#failed++;
          this.#say('failed', test, messageOf(error));
        } else {
          this.#skipped++;
          // Tests that `-t` or Ctrl-C left out have no reason of their own.
          if (!isPart) this.#say('skipped', test, reasonOf(test));
        }
        if (test.diagnostic()?.flaky) {
          retried.add(module.moduleId);
          this.#say('flaky', test, `passed when repeated, failed before: ${messageOf(error)}`);
        }
      }
      // Such as a file that cannot be loaded, or a set-up that fails.
      if (module.state() === 'failed' && this.#failed === failedBefore)
        this.#fail(`failed: ${nameOf(module)}`);
    }
    if (retried.size > MOST_RETRIED_FILES)
      this.#fail(
        `failed: tests of ${retried.size} files passed only when repeated; ${MOST_RETRIED_FILES} may`,
      );
    for (const { message } of errors) this.#lines.push(`an error that no test caught: ${message}`);
    if (reason === 'interrupted') this.#lines.push('interrupted: the rest of the tests did not run');
  }

  #say(word: string, test: TestCase, what: string): void {
    this.#lines.push(`${word}: ${nameOf(test.module)} > ${test.fullName}: ${what}`);
  }

  #fail(line: string): void {
    this.#failed++;
    this.#lines.push(line);
    process.exitCode = 1;
  }

  #close(): void {
    if (this.#passed + this.#failed === 0)
      this.#fail('failed: no test ran; a file that ends with .system.test.ts runs with npm run test:system');
    // A failure outside of all tests, such as a server that does not start.
    else if (process.exitCode && this.#failed === 0) this.#fail('failed outside of the tests, see above');
    const counts = [`${this.#passed} passed`, `${this.#failed} failed`];
    if (this.#skipped > 0) counts.push(`${this.#skipped} skipped`);
    process.stdout.write(`${[...this.#lines, counts.join(', ')].join('\n')}\n`);
  }
}

const nameOf = (module: TestModule) => relative(process.cwd(), module.moduleId);

function reasonOf(test: TestCase): string {
  if (test.options.mode === 'todo') return 'it is still to be written';
  const result = test.result();
  const note = result.state === 'skipped' ? result.note : undefined;
  return test.meta().skipped ?? note ?? 'its file says so';
}

/** Returns the message of an error; a suppressed error's message is included. */
function messageOf(error: TestError | undefined): string {
  if (error?.name !== 'SuppressedError') return error?.message ?? 'no error';
  const { suppressed, error: released } = error as { suppressed?: TestError; error?: TestError };
  return `${messageOf(suppressed)}; ${messageOf(released)}`;
}

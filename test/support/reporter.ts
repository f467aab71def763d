/**
 * vitest's reporter without a line for each file that passed, and with last lines: why tests were skipped, which tests passed only
 * when they were repeated, and at the very end `N passed, N failed, N skipped`, which CI reads.
 */
import { relative } from 'node:path';
import type { TestError } from 'vitest';
import {
  DefaultReporter,
  type SerializedError,
  type TestCase,
  type TestModule,
  type TestRunEndReason,
  type Vitest,
} from 'vitest/node';

/** More files whose tests had to be repeated are no bad luck, and fail the run. */
const MOST_RETRIED_FILES = 2;

export default class LastLines extends DefaultReporter {
  #passed = 0;
  #failed = 0;
  #skipped = 0;
  #hasEnded = false;
  readonly #lines: string[] = [];

  override onInit(vitest: Vitest): void {
    super.onInit(vitest);
    // Tear-downs print and can fail, so nothing is printed before them.
    if (!vitest.config.watch) process.once('exit', () => this.#close());
  }

  /** A person reads what failed. The log of CI also has the time of each file. */
  protected override printTestModule(module: TestModule): void {
    if (process.env.CI || module.state() === 'failed') super.printTestModule(module);
  }

  override onTestRunEnd(
    modules: readonly TestModule[],
    errors: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    super.onTestRunEnd(modules, errors, reason);
    this.#hasEnded = true;
    const isPart = this.ctx.config.testNamePattern !== undefined || reason === 'interrupted';
    const retried = modules.filter((module) => this.#count(module, isPart));
    if (retried.length > MOST_RETRIED_FILES)
      this.#fail(
        `failed: tests of ${retried.length} files passed only when repeated; ${MOST_RETRIED_FILES} may`,
      );
    for (const { message } of errors) this.#lines.push(`an error that no test caught: ${message}`);
    if (reason === 'interrupted') this.#lines.push('interrupted: the rest of the tests did not run');
  }

  /** Returns whether a test passed only when it was repeated. */
  #count(module: TestModule, isPart: boolean): boolean {
    const file = relative(process.cwd(), module.moduleId);
    const failedBefore = this.#failed;
    const reasons = new Map<string, number>();
    let isRetried = false;
    for (const test of module.children.allTests()) {
      const { state, errors: [error] = [] } = test.result();
      if (state === 'passed') this.#passed++;
      else if (state === 'failed') {
        this.#failed++;
        this.#lines.push(`failed: ${file} > ${test.fullName}: ${messageOf(error)}`);
      } else {
        this.#skipped++;
        reasons.set(reasonOf(test), (reasons.get(reasonOf(test)) ?? 0) + 1);
      }
      if (test.diagnostic()?.flaky) {
        isRetried = true;
        this.#lines.push(
          `flaky: ${file} > ${test.fullName}: passed when repeated, failed before: ${messageOf(error)}`,
        );
      }
    }
    // Such as a file that cannot be loaded, or a set-up that fails.
    if (module.state() === 'failed' && this.#failed === failedBefore) this.#fail(`failed: ${file}`);
    // Tests that `-t` or Ctrl-C left out have no reason of their own.
    else if (!isPart)
      for (const [reason, count] of reasons) this.#lines.push(`skipped: ${count} of ${file}: ${reason}`);
    return isRetried;
  }

  #fail(line: string): void {
    this.#failed++;
    this.#lines.push(line);
    process.exitCode = 1;
  }

  #close(): void {
    // A signal ends vitest at once.
    if (!this.#hasEnded) this.#fail('failed: the run was ended from outside, or could not begin');
    else if (this.#passed + this.#failed === 0)
      this.#fail('failed: no test ran; a file that ends with .system.test.ts runs with npm run test:system');
    // A failure outside of all tests, such as a server that does not start.
    else if (process.exitCode && this.#failed === 0) this.#fail('failed outside of the tests, see above');
    const counts = [`${this.#passed} passed`, `${this.#failed} failed`];
    if (this.#skipped > 0) counts.push(`${this.#skipped} skipped`);
    process.stdout.write(`${[...this.#lines, counts.join(', ')].join('\n')}\n`);
  }
}

function reasonOf(test: TestCase): string {
  if (test.options.mode === 'todo') return 'still to be written';
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

import { readFile } from 'node:fs/promises';

/** Names the report file of the process that runs vitest. */
export const REPORT_FILE = 'FLEETBOOK_TEST_REPORT';

/** A message from the process that runs vitest to the one that started it. */
export interface TestRunStarted {
  readonly files: number;
  readonly names?: string;
}

/** A test that failed and passed when repeated, which only happens in CI. */
export interface FlakyTest {
  readonly flaky: { readonly file: string; readonly name: string; readonly error: string };
}

/** A failed test, or a failure outside of tests such as a set-up, at the end. */
export interface FailedTest {
  readonly failed: { readonly file: string; readonly name: string; readonly error: string };
}

/** An error that no test caught, e.g. a promise that was rejected after its test. */
export interface UnhandledError {
  readonly unhandled: string;
}

export interface TestReport {
  readonly passed: number;
  /** A file that could not be loaded counts as one failure. */
  readonly failed: number;
  /** Paths of the files that did not pass. */
  readonly failedFiles: readonly string[];
  readonly skipped: readonly { readonly file: string; readonly name: string; readonly reason: string }[];
  /** Tests that `-t` excluded. */
  readonly leftOut: number;
  /** Tests that were pending when the run was interrupted. */
  readonly cancelled: number;
  /** Paths of the files that were loaded. */
  readonly loaded: readonly string[];
  /** Files whose tests have all run or were skipped for a reason. */
  readonly files: number;
}

interface JsonReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
      readonly meta?: { readonly skipped?: string };
    }[];
  }[];
}

export interface ReportOptions {
  /** The run ended early. */
  readonly isInterrupted?: boolean;
  /** The regular expression that selected tests. */
  readonly names?: string | undefined;
}

/** Sums vitest's JSON reports. A missing report counts nothing; the later report of a repeated file counts. */
export async function readReport(
  paths: readonly string[],
  { isInterrupted = false, names = '' }: ReportOptions = {},
): Promise<TestReport> {
  let passed = 0;
  let failed = 0;
  let cancelled = 0;
  let leftOut = 0;
  let files = 0;
  const failedFiles: string[] = [];
  const loaded: string[] = [];
  const skipped: { file: string; name: string; reason: string }[] = [];
  const chosen = new RegExp(names);
  const results = new Map<string, JsonReport['testResults'][number]>();
  for (const path of paths) for (const file of (await parse(path)).testResults) results.set(file.name, file);
  for (const file of results.values()) {
    const failedBefore = failed;
    const cancelledBefore = cancelled;
    for (const test of file.assertionResults) {
      const name = [...test.ancestorTitles, test.title].join(' > ');
      if (test.status === 'passed') passed++;
      else if (test.status === 'failed') failed++;
      else if (!chosen.test(name)) leftOut++;
      else if (isInterrupted && test.meta?.skipped === undefined && test.status !== 'todo') cancelled++;
      else {
        const reason =
          test.meta?.skipped ?? (test.status === 'todo' ? 'it is still to be written' : 'its file says so');
        skipped.push({ file: file.name, name, reason });
      }
    }
    if (file.status === 'failed' && failed === failedBefore && !isInterrupted) failed++;
    if (failed > failedBefore) failedFiles.push(file.name);
    if (file.assertionResults.length > 0) loaded.push(file.name);
    if (cancelled === cancelledBefore && file.assertionResults.length > 0) files++;
  }
  return { passed, failed, failedFiles, loaded, skipped, leftOut, cancelled, files };
}

async function parse(path: string): Promise<JsonReport> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as JsonReport;
  } catch {
    return { testResults: [] };
  }
}

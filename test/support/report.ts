import { readFile } from 'node:fs/promises';

/** Names the file to which the process that runs vitest writes its report. */
export const REPORT_FILE = 'FLEETBOOK_TEST_REPORT';

/** What that process tells the one that started it. */
export interface TestRunStarted {
  readonly files: number;
  /** The regular expression of `-t`. */
  readonly names?: string;
}

/** It also tells of each test that failed and passed when it was repeated, which only happens in CI. */
export interface FlakyTest {
  readonly flaky: { readonly file: string; readonly name: string; readonly error: string };
}

/** At the end it tells of each test that failed, and of what failed outside of tests, such as a set-up. */
export interface FailedTest {
  readonly failed: { readonly file: string; readonly name: string; readonly error: string };
}

/** And of each error that no test caught: a promise that was rejected after its test had ended, for instance. */
export interface UnhandledError {
  readonly unhandled: string;
}

export interface TestReport {
  readonly passed: number;
  /** A file that could not even be loaded counts as one. */
  readonly failed: number;
  /** Paths of the files that did not pass. */
  readonly failedFiles: readonly string[];
  readonly skipped: readonly { readonly file: string; readonly name: string; readonly reason: string }[];
  /** Tests that `-t` left out. */
  readonly leftOut: number;
  /** Tests of an interrupted run that were about to run. */
  readonly cancelled: number;
  /** Files of which every test has run, or was skipped for a reason of its own. */
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
  /** The run was ended early. */
  readonly isInterrupted?: boolean;
  /** The regular expression by which tests were chosen. */
  readonly names?: string | undefined;
}

/**
 * Counts vitest's JSON reports. One that was never written counts nothing; where a file of tests was run again, the later
 * report counts.
 */
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
    if (cancelled === cancelledBefore && file.assertionResults.length > 0) files++;
  }
  return { passed, failed, failedFiles, skipped, leftOut, cancelled, files };
}

async function parse(path: string): Promise<JsonReport> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as JsonReport;
  } catch {
    return { testResults: [] };
  }
}

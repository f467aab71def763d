import { readFile } from 'node:fs/promises';

export interface TestReport {
  readonly passed: number;
  /** A file that could not even be loaded counts as one. */
  readonly failed: number;
  readonly skipped: readonly { readonly file: string; readonly name: string }[];
}

interface JsonReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
    }[];
  }[];
}

/** Counts vitest's JSON report. One that was never written counts nothing. */
export async function readReport(path: string): Promise<TestReport> {
  let passed = 0;
  let failed = 0;
  const skipped: { file: string; name: string }[] = [];
  for (const file of (await parse(path)).testResults) {
    const failedBefore = failed;
    for (const test of file.assertionResults) {
      if (test.status === 'passed') passed++;
      else if (test.status === 'failed') failed++;
      else skipped.push({ file: file.name, name: [...test.ancestorTitles, test.title].join(' > ') });
    }
    if (file.status === 'failed' && failed === failedBefore) failed++;
  }
  return { passed, failed, skipped };
}

async function parse(path: string): Promise<JsonReport> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as JsonReport;
  } catch {
    return { testResults: [] };
  }
}

/** Summaries of `npm test`, which show whether a test ran in any of several runs. */

/** Names the file for the summary of a run. */
export const SUMMARY_FILE = 'TEST_SUMMARY';

export interface RunSummary {
  /** End of the run, RFC 3339. */
  readonly at: string;
  /** Paths of the loaded test files, relative to the repository. */
  readonly files: readonly string[];
  readonly skipped: readonly { readonly file: string; readonly name: string; readonly reason: string }[];
}

/**
 * Returns a line for each test that no run executed, and for each file that no run loaded.
 * @param files paths of all test files, relative to the repository
 */
export function unrunTests(runs: readonly RunSummary[], files: readonly string[]): string[] {
  const lines: string[] = [];
  for (const file of files) {
    const loading = runs.filter((run) => run.files.includes(file));
    if (loading.length === 0) {
      lines.push(`${file}: no run loaded it`);
      continue;
    }
    const skippedIn = new Map<string, string[]>();
    for (const { skipped } of loading)
      for (const test of skipped)
        if (test.file === file) skippedIn.set(test.name, [...(skippedIn.get(test.name) ?? []), test.reason]);
    for (const [name, reasons] of skippedIn)
      if (reasons.length === loading.length)
        lines.push(`${file} > ${name}: ${[...new Set(reasons)].join('; ')}`);
  }
  return lines;
}

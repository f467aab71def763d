/**
 * `npm run test:runs -- <summary>…`: lists the tests that none of these runs executed, before a release. A run of
 * `npm test` writes its summary to the file of TEST_SUMMARY. The exit code is 1 if there is such a test.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RunSummary, unrunTests } from './support/run-summary.ts';

const paths = process.argv.slice(2);
if (paths.length === 0) {
  console.error('name the summaries, e.g. npm run test:runs -- summaries/*.json');
  process.exit(2);
}
const runs = paths.map((path) => JSON.parse(readFileSync(path, 'utf8')) as RunSummary);
const files = globSync('test/**/*.test.ts', { cwd: join(import.meta.dirname, '..') }).sort();
const lines = unrunTests(runs, files);
for (const line of lines) console.log(`has not run: ${line}`);
const last = runs
  .map(({ at }) => at)
  .sort()
  .at(-1);
console.log(`${lines.length} tests have not run in ${runs.length} runs, the last one of ${last}`);
process.exitCode = lines.length > 0 ? 1 : 0;

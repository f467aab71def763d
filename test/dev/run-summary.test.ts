import { expect, it } from 'vitest';
import { type RunSummary, unrunTests } from '../support/run-summary.ts';

const run = (files: readonly string[], ...skipped: RunSummary['skipped']): RunSummary => ({
  at: '2026-11-25T00:00:00Z',
  files,
  skipped,
});
const test = (name: string, reason: string) => ({ file: 'a.test.ts', name, reason });

it('lists tests that every run skipped, with the reasons', () => {
  const runs = [
    run(['a.test.ts'], test('one', 'needs a moon'), test('two', 'needs a moon')),
    run(['a.test.ts', 'b.test.ts'], test('one', 'needs a sun')),
  ];
  expect(unrunTests(runs, ['a.test.ts', 'b.test.ts'])).toEqual([
    'a.test.ts > one: needs a moon; needs a sun',
  ]);
});

it('ignores runs that did not load the file', () => {
  const runs = [run(['a.test.ts'], test('one', 'needs a moon')), run(['b.test.ts'])];
  expect(unrunTests(runs, ['a.test.ts'])).toEqual(['a.test.ts > one: needs a moon']);
});

it('lists files that no run loaded', () => {
  expect(unrunTests([run(['a.test.ts'])], ['a.test.ts', 'new.test.ts'])).toEqual([
    'new.test.ts: no run loaded it',
  ]);
});

import { expect, it } from 'vitest';
import { openFilesProblem } from '../../src/app/open-files.ts';

it.each([
  ['enough files', 10_000, 20_000, undefined],
  ['the fewest that are enough', 10_000, 10_144, undefined],
  ['one file too few', 10_000, 10_143, 9_999],
  ['the usual limit of a container', 10_000, 1024, 880],
  ['hardly any files', 10_000, 100, 50],
  ['no limit of connections', 0, 1024, undefined],
])('with %s: %i connections, %i files', (_, max, files, connections) => {
  const found = openFilesProblem({ MAX_CONNECTIONS: max, POSTGRES_READS: 16 }, files);
  expect(found?.connections).toBe(connections);
  if (found) expect(found.remedy).toContain(`MAX_CONNECTIONS to ${connections}`);
});

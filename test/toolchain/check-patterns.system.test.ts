import { expect, it } from 'vitest';
import { findings } from './check-patterns.ts';

it.each([
  ['exponential', '/^(a+)+$/'],
  ['polynomial', String.raw`/^(\d+\.?\d*|\.\d+)$/`],
  ['polynomial from each start', String.raw`/\/+$/`],
])('a pattern with %s backtracking is a finding, with its place', (_, pattern) => {
  const code = `type A = string;\n\nexport const B = (a: A) => ${pattern}.test(a);\n`;
  expect(findings({ 'src/a.ts': code, 'src/b.ts': 'export const C = /^a+b$/;\n' })).toEqual([
    expect.stringMatching(/^src\/a\.ts:3 \//),
  ]);
});

it('reads TSX, and no comment switches it off', () => {
  const code =
    '/* eslint-disable */\nexport const A = () => <p title={String(/^(a+)+$/.test(""))}>{1}</p>;\n';
  expect(findings({ 'packages/console/src/a.tsx': code })).toHaveLength(1);
});

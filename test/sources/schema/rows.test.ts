import { expect, it } from 'vitest';
import { z } from 'zod';
import { readRow } from '../../../src/sources/schema/rows.ts';

const Row = z.object({ name: z.string() });

it('an unusable row states the field, the expected and the actual value', () => {
  expect(readRow(Row, { name: [1] }, ['rows', 3])).toEqual({
    reason: 'rows[3].name expected string, received array; it is [1]',
  });
});

it.each(['{"0":', '{"toJSON":', '['])('a value of ten thousand levels of %s is one bad row', (level) => {
  const depth = 10_000;
  const end = level === '[' ? ']' : '}';
  const name = JSON.parse(`${level.repeat(depth)}1${end.repeat(depth)}`);
  expect(readRow(Row, { name }).reason).toMatch(/^name expected string, received (object|array); it is /);
});

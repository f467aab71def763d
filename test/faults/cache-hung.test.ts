import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';

it('PostgreSQL and memory answer while the cache hangs', async () => {
  const outcome = await underLoad({
    fault: 'The Redis of the cache hangs for {seconds}',
    strike: ({ cache }) => cache.pause(),
    heal: ({ cache }) => cache.resume(),
  });
  expect(troubles(outcome.measured)).toEqual({});
});

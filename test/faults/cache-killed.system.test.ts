import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';

it('PostgreSQL and memory answer while the cache is killed', async () => {
  const outcome = await underLoad({
    fault: 'The Redis of the cache is killed for {seconds}',
    strike: ({ cache }) => cache.kill(),
    heal: ({ cache }) => cache.restart(),
  });
  expect(troubles(outcome.measured)).toEqual({});
});

import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';

it('PostgreSQL and memory answer while every byte to and from the cache takes two seconds', async () => {
  const outcome = await underLoad({
    fault: 'The Redis of the cache answers after 4 s, for {seconds}',
    strike: ({ cacheWay }) => cacheWay.delay(2000),
    heal: ({ cacheWay }) => cacheWay.heal(),
  });
  expect(troubles(outcome.measured)).toEqual({});
});

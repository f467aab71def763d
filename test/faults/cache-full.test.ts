import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';

it('readers answer with what has changed while the cache takes no writes', async () => {
  const outcome = await underLoad({
    fault: 'The Redis of the cache is full for {seconds}',
    strike: async ({ cacheClient }) => void (await cacheClient.config('SET', 'maxmemory', 1)),
    heal: async ({ cacheClient }) => void (await cacheClient.config('SET', 'maxmemory', 0)),
  });
  expect(troubles(outcome.asked)).toEqual({});
  // A change is told at the next round of publishing, which comes after every write here.
  expect(Math.max(...outcome.asked.map(({ behindMs }) => behindMs))).toBeLessThan(10_000);
});

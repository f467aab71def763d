import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';

it('readers answer with changed data while the cache rejects writes', async () => {
  const outcome = await underLoad({
    fault: 'The Redis of the cache is full for {seconds}',
    strike: async ({ cacheClient }) => void (await cacheClient.config('SET', 'maxmemory', 1)),
    heal: async ({ cacheClient }) => void (await cacheClient.config('SET', 'maxmemory', 0)),
  });
  expect(troubles(outcome.measured)).toEqual({});
  // The next publication announces a change. Here it follows every write.
  expect(Math.max(...outcome.measured.map(({ behindMs }) => behindMs))).toBeLessThan(10_000);
});

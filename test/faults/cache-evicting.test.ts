import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';

it('readers answer while the cache evicts most of its keys at random', async () => {
  const outcome = await underLoad({
    fault: 'The Redis of the cache evicts at random for {seconds}',
    async strike({ cacheClient }) {
      const used = /used_memory:(\d+)/.exec(await cacheClient.info('memory'))?.[1];
      await cacheClient.config('SET', 'maxmemory-policy', 'allkeys-random');
      await cacheClient.config('SET', 'maxmemory', Math.floor(Number(used) * 0.9));
    },
    async heal({ cacheClient }) {
      expect(await cacheClient.info('stats')).toMatch(/evicted_keys:[1-9]/);
      await cacheClient.config('SET', 'maxmemory', 0);
    },
  });
  expect(troubles(outcome.measured)).toEqual({});
});

import { expect, it } from 'vitest';
import { again } from './support/again.ts';
import { troubles, underLoad } from './support/row.ts';

it('readers answer, and the cache is filled again, during repeated flushes', async () => {
  const outcome = await underLoad({
    fault: 'The Redis of the cache is flushed every second for {seconds}',
    ...again(1000, ({ cacheClient }) => cacheClient.flushall()),
  });
  expect(troubles(outcome.measured)).toEqual({});
});

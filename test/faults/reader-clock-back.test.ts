import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';

it('readers whose wall clock goes back an hour show every change while the cache is away', async () => {
  const preload = new URL('./support/clock-back.mjs', import.meta.url).href;
  const outcome = await underLoad({
    fault:
      'The wall clock of the readers goes back an hour, and the Redis of the cache is killed for {seconds}',
    stack: { settings: { NODE_OPTIONS: `--import=${preload}` } },
    async strike({ readers, cache }) {
      for (const { program } of readers) program.child.kill('SIGUSR2');
      await cache.kill();
    },
    heal: ({ cache }) => cache.restart(),
  });
  expect(troubles(outcome.measured)).toEqual({});
});

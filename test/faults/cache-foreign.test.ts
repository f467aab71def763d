import { expect, it } from 'vitest';
import { again } from './support/again.ts';
import { forget, untrue, valuesOf } from './support/planted.ts';
import { underLoad } from './support/row.ts';

it('values of another organization, region or token under every key of the cache are never served', async () => {
  const outcome = await underLoad({
    fault:
      'The Redis of the cache holds another organization’s values, moved each half second, for {seconds}',
    ...again(500, async ({ cacheClient }) => {
      for (const kind of [/:region:/, /:clusters:/, /:token:/]) {
        const entries = [...(await valuesOf(cacheClient, kind))];
        for (const [i, [key]] of entries.entries())
          await cacheClient.set(key, entries[(i + 1) % entries.length]?.[1] ?? '');
      }
      await forget(cacheClient);
    }),
  });
  expect(untrue(outcome.measured)).toEqual([]);
});

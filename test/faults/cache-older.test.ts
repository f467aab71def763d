import { expect, it } from 'vitest';
import { again } from './support/again.ts';
import { forget, untrue, valuesOf } from './support/planted.ts';
import { underLoad } from './support/row.ts';

const KINDS = /:(providers|region:|clusters:)/;

it('older versions under every key of the cache are never served after newer ones', async () => {
  let older: Map<string, Buffer> | undefined;
  const { strike, heal } = again(500, async ({ cacheClient }) => {
    older ??= await valuesOf(cacheClient, KINDS);
    for (const [key, value] of older) await cacheClient.set(key, value);
    await forget(cacheClient);
  });
  const outcome = await underLoad({
    fault: 'The Redis of the cache holds older versions, set back each half second, for {seconds}',
    strike,
    heal,
  });
  expect(untrue(outcome.measured)).toEqual([]);
});

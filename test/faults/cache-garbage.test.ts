import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { again } from './support/again.ts';
import { documentKeys, forget, untrue } from './support/planted.ts';
import { underLoad } from './support/row.ts';

const GARBAGE: readonly ((value: Buffer) => Buffer)[] = [
  () => randomBytes(200),
  () => Buffer.alloc(0),
  (value) => value.subarray(0, value.length >> 1),
  (value) => Buffer.concat([value.subarray(0, 60), randomBytes(value.length)]),
  (value) => Buffer.from(value.toString('latin1').replaceAll('"', "'"), 'latin1'),
];

it('garbage under every key of the cache is never served', async () => {
  let round = 0;
  const outcome = await underLoad({
    fault: 'The Redis of the cache holds garbage under every key, new each half second, for {seconds}',
    ...again(500, async ({ cacheClient }) => {
      for (const key of await documentKeys(cacheClient, /:(providers|region:|clusters:|token:)/)) {
        const value = (await cacheClient.getBuffer(key)) ?? Buffer.alloc(0);
        const damage = GARBAGE[round++ % GARBAGE.length] ?? expect.unreachable('there is one');
        await cacheClient.set(key, damage(value));
      }
      await forget(cacheClient);
    }),
  });
  expect(untrue(outcome.measured)).toEqual([]);
});

import { expect, it } from 'vitest';
import { openRedis, redisReady } from '../../../src/redis/redis.ts';
import { LoopDeadline } from '../../../src/snapshot/read/cache.ts';
import { startTestRedis } from '../../support/redis.ts';

/** Blocks the event loop. */
function stall(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

it('a reply that arrived while the process stalled is in time', async () => {
  await using redis = await startTestRedis();
  const client = openRedis(redis.url, 'publisher', () => {});
  await redisReady(client, 10_000);
  const reply = new LoopDeadline(50).within(client.ping());
  // The command is sent at the end of this turn, and the next turn comes after the deadline.
  setImmediate(() => stall(300));
  expect(await reply).toBe('PONG');
  client.disconnect();
});

it('a server that does not answer is late, and only its own commands are', async () => {
  const deadline = new LoopDeadline(50);
  const late = deadline.within(new Promise(() => {}));
  const inTime = deadline.within(Promise.resolve(1));
  expect(await inTime).toBe(1);
  await expect(late).rejects.toThrow('no answer in time');
  // The next one has the whole time.
  expect(await deadline.within(Promise.resolve(2))).toBe(2);
});

it('a failed command fails at once', async () => {
  const failed = new LoopDeadline(60_000).within(Promise.reject(new Error('READONLY')));
  await expect(failed).rejects.toThrow('READONLY');
});

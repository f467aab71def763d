import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { openRedis, type RedisClient, redisReady } from '../../../src/redis/redis.ts';
import { CacheCommands, LoopDeadline, type OnReply } from '../../../src/snapshot/read/cache.ts';
import { startTestRedis } from '../../support/redis.ts';

/** Blocks the event loop. */
function stall(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

function within<T>(deadline: LoopDeadline, reply: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const waiting = deadline.begin(() => reject(new Error('no answer in time')));
    reply.then(
      (value) => deadline.end(waiting) && resolve(value),
      (error: Error) => deadline.end(waiting) && reject(error),
    );
  });
}

it('a reply that arrived while the process stalled is in time', async () => {
  await using redis = await startTestRedis();
  const client = openRedis(redis.url, 'publisher', () => {});
  await redisReady(client, 10_000);
  const reply = within(new LoopDeadline(50), client.ping());
  // The command is sent at the end of this turn, and the next turn comes after the deadline.
  setImmediate(() => stall(300));
  expect(await reply).toBe('PONG');
  client.disconnect();
});

it('a server that does not answer is late, and only its own commands are', async () => {
  const deadline = new LoopDeadline(50);
  const late = within(deadline, new Promise(() => {}));
  const inTime = within(deadline, Promise.resolve(1));
  expect(await inTime).toBe(1);
  await expect(late).rejects.toThrow('no answer in time');
  // The next one has the whole time.
  expect(await within(deadline, Promise.resolve(2))).toBe(2);
});

it('a failed command fails at once', async () => {
  const failed = within(new LoopDeadline(60_000), Promise.reject(new Error('READONLY')));
  await expect(failed).rejects.toThrow('READONLY');
});

it.each([
  ['has no value', 'ready', async (keys: string[]) => keys.map(() => null)],
  ['is late', 'ready', () => pause(200, [])],
  ['is away', 'reconnecting', async () => []],
])(
  'each read of a batch goes on in the context of its request: the cache %s',
  async (_, status, mgetBuffer) => {
    const redis = { status, mgetBuffer } as unknown as RedisClient;
    const commands = new CacheCommands(redis, pino({ level: 'silent' }), () => 0);
    const context = new AsyncLocalStorage<number>();
    const read = (request: number) =>
      context.run(request, () =>
        commands.hedge(
          (onReply: OnReply<Buffer | null>) => commands.get(`key ${request}`, onReply),
          (value) => (value ? -1 : undefined),
          async () => context.getStore(),
        ),
      );
    const requests = Array.from({ length: 40 }, (_, request) => request);
    expect(await Promise.all(requests.map(read))).toEqual(requests);
  },
);

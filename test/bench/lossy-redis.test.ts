import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { lossyRedis } from '../../bench/read/lossy-redis.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

it('a proxy to Redis loses only published messages', async () => {
  await using server = await startTestRedis();
  await using way = await lossyRedis(server.url);
  const publisher = new Redis(server.url);
  const subscriber = new Redis(way.url, { protocol: 2 });
  const reader = new Redis(way.url);
  try {
    const received: string[] = [];
    subscriber.on('message', (_, message: string) => received.push(message));
    await subscriber.subscribe('news');
    await publisher.publish('news', 'first');
    await until(() => received.length === 1);

    way.losesMessages = true;
    await publisher.publish('news', 'lost');
    await until(() => way.lost === 1);
    await subscriber.ping();
    await publisher.set('key', 'value');
    expect(await reader.get('key')).toBe('value');

    way.losesMessages = false;
    await publisher.publish('news', 'last');
    await until(() => received.length === 2);
    expect(received).toEqual(['first', 'last']);
  } finally {
    for (const client of [publisher, subscriber, reader]) client.disconnect();
  }
});

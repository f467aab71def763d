/**
 * Uses the Redis of a URL in each way of the product, and prints the results as JSON. Only a process that was started
 * with NODE_EXTRA_CA_CERTS trusts its authority.
 */
import { Queue, Worker } from 'bullmq';
import { openRedis, type RedisUse, redisReady } from '../../../src/redis/redis.ts';

const [url = '', withinMs] = process.argv.slice(2);
const open = async (use: RedisUse) => {
  const redis = openRedis(url, use, () => {}, 'CACHE_REDIS_URL');
  await redisReady(redis, Number(withinMs));
  return redis;
};

try {
  const [publisher, reader, producer, blocking] = await Promise.all(
    (['publisher', 'reader', 'producer', 'worker'] as const).map(open),
  );
  if (!publisher || !reader || !producer || !blocking)
    throw new Error('unreachable: all of them were opened');
  const stream = await open('stream');
  // Of a cluster, keys of each master.
  const keys = Array.from({ length: 50 }, (_, i) => `key ${i}`);
  await Promise.all(keys.map((key) => publisher.set(key, key)));
  await publisher.xadd('news', '*', 'what', 'of all');
  const received = await stream.xread('COUNT', 1, 'BLOCK', 1000, 'STREAMS', 'news', '0');
  const read = await Promise.all(keys.map((key) => reader.get(key)));
  const queue = new Queue('jobs', { connection: producer as never, prefix: '{of-the-test}' });
  const done = Promise.withResolvers<unknown>();
  const worker = new Worker('jobs', async ({ data }) => done.resolve(data), {
    connection: blocking as never,
    prefix: '{of-the-test}',
  });
  await queue.add('job', { of: 'the queue' });
  const output = {
    received: received?.[0]?.[1][0]?.[1][1],
    read: read.filter((value, i) => value === keys[i]).length,
    job: await done.promise,
  };
  process.stdout.write(`${JSON.stringify(output)}\n`);
  await worker.close();
} catch (error) {
  process.stdout.write(
    `${JSON.stringify({ error: error instanceof Error ? error.message : String(error) })}\n`,
  );
}
process.exit();

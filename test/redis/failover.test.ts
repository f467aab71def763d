/** A master that becomes a replica while connections to it are open: each finds the new master. */
import { Queue, Worker } from 'bullmq';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openRedis, type RedisClient, type RedisUse, redisReady } from '../../src/redis/redis.ts';
import { CacheKeys } from '../../src/snapshot/document/keys.ts';
import { setIfNewer, withFence } from '../../src/snapshot/publish/fence.ts';
import { CacheLink } from '../../src/snapshot/read/link.ts';
import { until } from '../support/until.ts';
import { type ReplicatedRedis, startReplicatedRedis } from './replicated-redis.ts';

let servers: ReplicatedRedis;
let opened: AsyncDisposableStack;
beforeAll(async () => {
  servers = await startReplicatedRedis();
});
afterAll(() => servers[Symbol.asyncDispose]());
beforeEach(() => {
  opened = new AsyncDisposableStack();
});
afterEach(() => opened.disposeAsync());

async function open(use: RedisUse, url = servers.url): Promise<RedisClient> {
  const redis = withFence(openRedis(url, use, () => {}));
  opened.defer(() => redis.disconnect());
  await redisReady(redis, 5000);
  return redis;
}

const keys = new CacheKeys('a-lineage');
const providers = { kind: 'providers' } as const;
let version = 0;
/** Ways to write; all fail in the same way. */
const WRITES: Record<string, (redis: RedisClient) => Promise<unknown>> = {
  'a command': (redis) => redis.set('a', 'b'),
  'a script': (redis) => {
    version += 1;
    return setIfNewer(redis, keys, providers, version, Buffer.from('FB2 '));
  },
  'a pipeline': async (redis) => {
    const replies = (await redis.pipeline().get('a').set('a', 'b').hset('h', 'f', 'v').exec()) ?? [];
    for (const [error] of replies) if (error) throw error;
  },
  'a transaction': (redis) => redis.multi().set('a', 'b').get('a').exec(),
  'several commands of one turn': (redis) =>
    Promise.all([redis.get('a'), redis.set('a', 'b'), redis.hset('h', 'f', 'v'), redis.get('b')]),
};

const USES = ['publisher', 'producer', 'worker', 'reader'] as const;
const cases = USES.flatMap((use) => Object.keys(WRITES).map((way) => [use, way] as const));

it.each(cases)('the connection of a %s that is rejected %s finds the new master', async (use, way) => {
  const write = WRITES[way] ?? expect.unreachable();
  const redis = await open(use);
  // A reader waits 50 ms for an answer, which a busy machine may exceed.
  const refusal = use === 'reader' ? /READONLY|EXECABORT|Command timed out/ : /READONLY|EXECABORT/;
  await until(() => write(redis).then(() => true), { timeoutMs: 5000, what: 'it is written' });
  await servers.failOver();
  await expect(write(redis)).rejects.toThrow(refusal);
  await until(() => write(redis).then(() => true), { timeoutMs: 5000, what: 'it is written' });
  expect(await redis.info('replication')).toContain('role:master');
});

describe('a reader', () => {
  it('that always reads from a replica continues, and searches for a master ever less often', async () => {
    const redis = await open('reader', servers.replicaUrl);
    let connections = 0;
    redis.on('connect', () => {
      connections += 1;
    });
    let refused = 0;
    await until(async () => {
      await redis.set('a', 'b').catch((error: Error) => {
        if (error.message.startsWith('READONLY')) refused += 1;
      });
      return refused === 200;
    });
    await until(() => redis.status === 'ready');
    expect(await redis.exists('nothing')).toBe(0);
    expect(connections).toBeLessThan(5);
  });

  it('writes the data that it read from Postgres to the new master', async () => {
    const link = opened.use(
      new CacheLink({
        commands: await open('reader'),
        stream: openRedis(servers.url, 'stream', () => {}),
        logger: pino({ level: 'silent' }),
      }),
    );
    const value = async () => Buffer.from('FB2 ');
    await servers.failOver();
    const there = await open('publisher', servers.proxy.url);
    await there.del(keys.document(providers));
    const arrived = until(async () => {
      link.commands.writeBack(keys, providers, 7, value);
      return there.exists(keys.document(providers));
    });
    await expect(arrived).resolves.toBe(1);
  });
});

it('a queue accepts jobs, and a waiting consumer runs them, after a failover', async () => {
  const ran: unknown[] = [];
  const queue = new Queue('q', { connection: await open('producer'), prefix: '{fleetbook}' });
  const consumer = await open('worker');
  const worker = new Worker('q', async (job) => void ran.push(job.data), {
    connection: consumer,
    prefix: '{fleetbook}',
  });
  queue.on('error', () => {});
  worker.on('error', () => {});
  opened.defer(async () => {
    await worker.close(true);
    await queue.close();
  });
  await queue.add('job', 1);
  await until(() => ran.length === 1);
  await servers.failOver();
  await until(() => queue.add('job', 2), { timeoutMs: 5000 });
  await until(() => ran.length > 1);
  expect(ran).toEqual([1, 2]);
});

import { once } from 'node:events';
import type { StartedRedisContainer } from '@testcontainers/redis';
import { Worker } from 'bullmq';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import type { SyncJob } from '../../src/app/actions/source.ts';
import { openRedis, type RedisUse, redisReady } from '../../src/redis/redis.ts';
import { encodeDocument, parseHeader } from '../../src/snapshot/document/format.ts';
import { CacheKeys } from '../../src/snapshot/document/keys.ts';
import { setIfNewer, withFence } from '../../src/snapshot/publish/fence.ts';
import { jobId, openQueues, QUEUE_PREFIX, SYNC_QUEUE } from '../../workers/queues.ts';
import { DOCKER, needs } from '../support/needs.ts';
import { startRedisContainer } from './images.ts';

const NAME = { kind: 'region', regionId: 7 } as const;
const KEYS = new CacheKeys('00000000-0000-4000-8000-000000000000');

async function document(version: number): Promise<Buffer> {
  const body = Buffer.from(JSON.stringify([{ version }]));
  return await encodeDocument({ name: NAME, version, body, index: new Map(), sources: [] });
}

describe('Redis from its official image', needs(inject('docker'), DOCKER), () => {
  const cleanUp = new AsyncDisposableStack();
  afterAll(() => cleanUp.disposeAsync());
  let server: StartedRedisContainer;
  const open = async (use: RedisUse) => {
    const redis = openRedis(server.getConnectionUrl(), use, () => {});
    cleanUp.defer(() => redis.disconnect());
    await redisReady(redis, 10_000);
    return redis;
  };

  beforeAll(async () => {
    server = cleanUp.use(await startRedisContainer());
  });
  beforeEach(async () => {
    await (await open('publisher')).flushall();
  });

  it('accepts a slot’s job once, however often it is enqueued, and gives it to a worker', async () => {
    const queues = openQueues(await open('producer'), QUEUE_PREFIX, pino({ level: 'silent' }));
    for (const queue of queues.all) cleanUp.defer(() => queue.close());
    const data: SyncJob = { sourceId: 'hetzner', slot: '2026-11-20T12:17:00Z', attempt: 0 };
    const options = { jobId: jobId({ ...data, schedule: data.sourceId }, 'lineage') };
    for (let times = 0; times < 3; times++) await queues.sync.add('sync', data, options);
    expect(await queues.sync.getJobCountByTypes('waiting', 'prioritized', 'delayed')).toBe(1);

    const seen: SyncJob[] = [];
    const worker = new Worker<SyncJob>(SYNC_QUEUE, async (job) => seen.push(job.data), {
      connection: await open('worker'),
      prefix: QUEUE_PREFIX,
    });
    cleanUp.defer(() => worker.close());
    await once(worker, 'completed');
    expect(seen).toEqual([data]);
    expect(await queues.sync.getJobCountByTypes('completed')).toBe(1);
  });

  it('keeps the newest version for any order of any number of writers', async () => {
    const writers = await Promise.all([open('publisher'), open('publisher'), open('reader')]);
    for (const writer of writers) withFence(writer);
    // 7 and 40 have no common divisor: each version from 1 to 40, in a mixed order.
    const versions = Array.from({ length: 40 }, (_, index) => ((index * 7) % 40) + 1);
    const values = await Promise.all(versions.map(document));
    const set = await Promise.all(
      versions.map((version, index) => {
        const writer = writers[index % writers.length];
        const value = values[index];
        if (!writer || !value) throw new Error('every version has a writer and a value');
        return setIfNewer(writer, KEYS, NAME, version, value, writer === writers[2] ? 60 : undefined);
      }),
    );
    const [redis] = writers;
    const stored = await redis?.getBuffer(KEYS.document(NAME));
    expect(stored && parseHeader(stored)?.version).toBe(40);
    expect(await redis?.xlen(KEYS.stream)).toBe(set.filter(Boolean).length);
  });

  it('rejects an older or equal version, and reports it', async () => {
    const redis = withFence(await open('publisher'));
    const write = async (version: number, seconds?: number) =>
      setIfNewer(redis, KEYS, NAME, version, await document(version), seconds);
    expect(await write(5)).toBe(true);
    expect(await write(4)).toBe(false);
    expect(await write(5)).toBe(false);
    expect(await write(6)).toBe(true);
  });

  it('lets a write-back expire until its version is published', async () => {
    const redis = withFence(await open('publisher'));
    const value = await document(5);
    await setIfNewer(redis, KEYS, NAME, 5, value, 60);
    expect(await redis.ttl(KEYS.document(NAME))).toBeGreaterThan(50);
    await setIfNewer(redis, KEYS, NAME, 5, value);
    expect(await redis.ttl(KEYS.document(NAME))).toBe(-1);
  });

  it('announces only written values', async () => {
    const reader = await open('stream');
    const received = reader.xread('COUNT', 10, 'BLOCK', 5000, 'STREAMS', KEYS.stream, '0');
    const redis = withFence(await open('publisher'));
    for (const version of [2, 1, 3]) await setIfNewer(redis, KEYS, NAME, version, await document(version));
    const ofEntry = ([, fields]: [string, string[]]) => [fields[5], fields[7]];
    expect((await received)?.[0]?.[1].map(ofEntry)).toEqual([['region:7', '2']]);
    expect((await reader.xrange(KEYS.stream, '-', '+')).map(ofEntry)).toEqual([
      ['region:7', '2'],
      ['region:7', '3'],
    ]);
  });
});

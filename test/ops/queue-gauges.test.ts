import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { Registry } from 'prom-client';
import { afterAll, afterEach, expect, it } from 'vitest';
import { addQueueGauges } from '../../src/ops/queue-gauges.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const redis = await startTestRedis();
const prefix = '{test}';
const quiet = { enableOfflineQueue: false, retryStrategy: () => 50 };
const producer = new Redis(redis.url, { ...quiet, maxRetriesPerRequest: 1 });
producer.on('error', () => {});
const consumer = new Redis(redis.url, { maxRetriesPerRequest: null });
consumer.on('error', () => {});
await until(() => producer.status === 'ready');
const queue = new Queue('sync', { connection: producer, prefix });
queue.on('error', () => {});
let stopping: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stopping) await stop();
  stopping = [];
});
afterAll(async () => {
  await queue.close();
  for (const connection of [producer, consumer]) connection.disconnect();
  await redis[Symbol.asyncDispose]();
});

/** Reads the metrics at a chosen time. */
function gaugeReader(waitMs?: number) {
  const registry = new Registry();
  let at = 0;
  addQueueGauges(registry, [queue], { now: () => at, ...(waitMs !== undefined && { waitMs }) });
  return async (now: number) => {
    at = now;
    const text = await registry.metrics();
    const value = (name: string, state = '') => {
      const line = text.split('\n').find((each) => each.startsWith(`${name}{`) && each.includes(state));
      return line === undefined ? undefined : Number(line.split(' ').at(-1));
    };
    return {
      jobs: (state: string) => value('fleetbook_queue_jobs', `state="${state}"`),
      oldest: (state: string) => value('fleetbook_queue_oldest_job_seconds', `state="${state}"`),
      paused: value('fleetbook_queue_paused'),
      reachable: Number(/^fleetbook_queue_reachable (\d)$/m.exec(text)?.[1]),
    };
  };
}

it('has the number of jobs in each state, and the time of the oldest one', async () => {
  const gauges = gaugeReader();
  const empty = await gauges(Date.now());
  expect([empty.jobs('waiting'), empty.oldest('waiting'), empty.oldest('active')]).toEqual([0, 0, 0]);
  expect([empty.paused, empty.reachable]).toEqual([0, 1]);

  const first = await queue.add('one', {}, { timestamp: 1_000_000 });
  await queue.add('two', {}, { timestamp: 1_060_000 });
  await queue.add('later', {}, { delay: 3_600_000 });
  const waiting = await gauges(1_090_000);
  expect([waiting.jobs('waiting'), waiting.jobs('delayed'), waiting.jobs('active')]).toEqual([2, 1, 0]);
  expect(waiting.oldest('waiting')).toBe(90);

  const { promise, resolve } = Promise.withResolvers<void>();
  const worker = new Worker('sync', () => promise, { connection: consumer, prefix });
  stopping.push(() => worker.close(), resolve);
  await until(async () => (await queue.getActiveCount()) === 1);
  const processedOn = (await queue.getJob(first.id ?? ''))?.processedOn ?? 0;
  const running = await gauges(processedOn + 5000);
  expect([running.jobs('waiting'), running.jobs('active')]).toEqual([1, 1]);
  expect(running.oldest('active')).toBe(5);
  resolve();
  await until(async () => (await queue.getCompletedCount()) === 2);
  const done = await gauges(Date.now());
  expect([done.jobs('completed'), done.jobs('waiting'), done.oldest('waiting')]).toEqual([2, 0, 0]);
});

it('counts the time of a retried job from the first scrape that finds it waiting', async () => {
  const gauges = gaugeReader();
  const job = await queue.add('again', {}, { timestamp: 1_000_000, attempts: 2, backoff: 3_600_000 });
  const worker = new Worker('sync', () => Promise.reject(new Error('not yet')), {
    connection: consumer,
    prefix,
  });
  worker.on('error', () => {});
  await until(async () => (await job.getState()) === 'delayed');
  await worker.close();
  await job.promote();
  const found = Date.now();
  expect((await gauges(found)).oldest('waiting')).toBe(0);
  expect((await gauges(found + 30_000)).oldest('waiting')).toBe(30);
});

it('has the state of a paused queue', async () => {
  await queue.pause();
  stopping.push(() => queue.resume());
  expect((await gaugeReader()(Date.now())).paused).toBe(1);
});

it('has no series of jobs while Redis does not answer, and fails no scrape', async () => {
  const gauges = gaugeReader(200);
  expect((await gauges(Date.now())).reachable).toBe(1);
  await redis.kill();
  await until(() => producer.status !== 'ready');
  const away = await gauges(Date.now());
  expect([away.reachable, away.jobs('waiting'), away.paused]).toEqual([0, undefined, undefined]);
  await redis.restart();
  await until(async () => (await gauges(Date.now())).reachable === 1);
});

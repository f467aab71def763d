/** Jobs whose workers die: none is given up, however often that happens. */
import { Worker } from 'bullmq';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { openRedis, redisReady } from '../../src/db/redis.ts';
import { NEVER_GIVEN_UP, openQueues, QUEUE_PREFIX, SYNC_QUEUE, type SyncJob } from '../../workers/queues.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

it('a job whose worker died again and again is run by the next one', async () => {
  await using opened = new AsyncDisposableStack();
  const redis = opened.use(await startTestRedis());
  const connect = async (use: 'producer' | 'worker') => {
    const connection = openRedis(redis.url, use, () => {});
    opened.defer(() => connection.disconnect());
    await redisReady(connection, 5000);
    return connection;
  };
  const queues = openQueues(await connect('producer'), pino({ level: 'silent' }));
  for (const queue of queues.all) opened.defer(() => queue.close());
  // Locks that run out soon, and are looked at often: only that is another one than in production.
  const soon = { ...NEVER_GIVEN_UP, lockDuration: 100, stalledInterval: 50, skipLockRenewal: true };
  const work = async (process: () => Promise<unknown>) => {
    const worker = new Worker<SyncJob>(SYNC_QUEUE, process, {
      connection: await connect('worker'),
      prefix: QUEUE_PREFIX,
      ...soon,
    });
    worker.on('error', () => {});
    return worker;
  };
  const job = await queues.sync.add('sync', { sourceId: 'cloud', slot: '2026-01-01T00:00:00Z' });
  let begun = 0;
  for (let deaths = 0; deaths < 4; deaths++) {
    const worker = await work(() => {
      begun += 1;
      return new Promise(() => {});
    });
    await until(() => begun > deaths);
    await worker.close(true);
  }
  const last = await work(async () => 'done');
  await until(async () => (await job.getState()) === 'completed' || (await job.getState()) === 'failed');
  await last.close();
  expect([await job.getState(), begun]).toEqual(['completed', 4]);
});

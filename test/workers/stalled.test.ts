/** Jobs whose workers die or hang: none is lost, and none is done twice. */
import { Worker } from 'bullmq';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import type { SyncJob } from '../../src/app/actions/source.ts';
import { composeWorker } from '../../src/app/worker.ts';
import { dirtyDocuments } from '../../src/db/versions.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { beginRun, finishRun, NO_COUNTS } from '../../src/sync/runs/run.ts';
import { beginAttempt, claimSlot, endAttempt, retryAttempt } from '../../src/sync/runs/slots.ts';
import { ALWAYS_REPEATED, openQueues, QUEUE_PREFIX, SYNC_QUEUE } from '../../workers/queues.ts';
import { syncProcessor } from '../../workers/sync-job.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import {
  config,
  dueIn,
  jobOf,
  opened as openedForTest,
  requestNow,
  runs,
  settled,
  silent,
  start,
  store,
  upstream,
  useServers,
} from './scene.ts';

useServers();

it('a job whose workers died repeatedly is run by the next one', async () => {
  await using opened = new AsyncDisposableStack();
  const redis = opened.use(await startTestRedis());
  const connect = async (use: 'producer' | 'worker') => {
    const connection = openRedis(redis.url, use, () => {});
    opened.defer(() => connection.disconnect());
    await redisReady(connection, 5000);
    return connection;
  };
  const queues = openQueues(await connect('producer'), QUEUE_PREFIX, pino({ level: 'silent' }));
  for (const queue of queues.all) opened.defer(() => queue.close());
  // Locks that expire soon and are checked often; all else is as in production.
  const soon = { ...ALWAYS_REPEATED, lockDuration: 100, stalledInterval: 50, skipLockRenewal: true };
  const work = async (process: () => Promise<unknown>) => {
    const worker = new Worker<SyncJob>(SYNC_QUEUE, process, {
      connection: await connect('worker'),
      prefix: QUEUE_PREFIX,
      ...soon,
    });
    worker.on('error', () => {});
    return worker;
  };
  const job = await queues.sync.add('sync', { sourceId: 'cloud', slot: '2026-01-01T00:00:00Z', attempt: 0 });
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

it('a slot that a worker read before it died is not read again, but its later steps are done', async () => {
  const first = await start();
  await settled(first);
  const job = await jobOf(first, 'hetzner');
  await first[Symbol.asyncDispose]();
  // As if a worker died before it published and before it recorded its end.
  await store.sql`update regions set version = version + 1 where organization_id is null`;
  await store.sql`update schedule_slots set due_at = now(), begun_at = claimed_at where schedule = 'hetzner'`;
  await store.sql`update schedule_slots set due_at = null where schedule = 'clusters'`;
  const [calls, before] = [{ ...upstream.calls }, await runs()];
  const worker = openedForTest.use(composeWorker(config(), silent));
  await until(() => worker.cache.status === 'ready');
  const process = syncProcessor({ config: config(), worker, logger: silent });

  await process(job, 'token', new AbortController().signal);
  expect([await runs(), upstream.calls]).toEqual([before, calls]);
  expect(await dirtyDocuments(store.db, 10)).toEqual([]);
  expect(await dueIn('hetzner')).toBeNull();
  expect(await dueIn('clusters')).toBeLessThanOrEqual(0);
  // The same job again: its attempt is over.
  await process(job, 'token', new AbortController().signal);
  expect([await runs(), upstream.calls]).toEqual([before, calls]);
  // Another attempt, which no worker has read.
  await requestNow('hetzner');
  const next = Object.assign(job, { data: { ...job.data, attempt: 1 } });
  await process(next, 'token', new AbortController().signal);
  expect(await runs()).toHaveLength(before.length + 1);
});

it('an attempt that fails late, after another worker read its slot, does not make it due again', async () => {
  await store.sql`insert into sources (id, kind, adapter) values ('late', 'catalogue', 'price-list')`;
  const slot = { schedule: 'late', slot: '2026-01-01T00:00:00Z', attempt: 0 };
  await claimSlot(store.db, slot);
  const begin = async () => (await beginAttempt(store.db, slot)) ?? expect.unreachable();
  const first = await begin();
  const hung = await beginRun(store.db, 'late', slot.slot, { origin: { cause: 'slot' } });
  const second = await begin();
  const next = await beginRun(store.db, 'late', slot.slot, { origin: { cause: 'slot' } });
  await finishRun(store.db, next, 'changed', NO_COUNTS, new Date().toISOString());
  await endAttempt(store.db, second);
  await retryAttempt(store.db, first, { due: new Date(Date.now() + 60_000), failures: 1 });
  expect(await dueIn('late')).toBeNull();

  // Without its lock's mark the live job counted as dead.
  expect((await runs()).map(({ outcome }) => outcome)).toEqual(['interrupted', 'changed']);
  await finishRun(store.db, hung, 'failed', undefined, new Date().toISOString(), 'too late');
  expect((await runs()).map(({ outcome }) => outcome)).toEqual(['interrupted', 'changed']);
  await finishRun(store.db, hung, 'superseded', undefined, new Date().toISOString());
  expect((await runs()).map(({ outcome }) => outcome)).toEqual(['superseded', 'changed']);
});

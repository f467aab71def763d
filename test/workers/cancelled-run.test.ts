/** Runs that an operator cancels, with real workers. */
import { expect, it } from 'vitest';
import { composeWorker } from '../../src/app/worker.ts';
import { sourceStatus } from '../../src/db/sources.ts';
import type { Decider } from '../../src/domain/operator.ts';
import { cancelRun } from '../../src/sync/runs/live.ts';
import { beginAttempt } from '../../src/sync/runs/slots.ts';
import { syncProcessor } from '../../workers/sync-job.ts';
import { until } from '../support/until.ts';
import {
  attemptOf,
  config,
  dueIn,
  jobOf,
  opened,
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

const ADA: Decider = { by: 'ada@desk', how: 'cli', address: 'ada@desk', reason: 'the upstream hangs' };
const statusOf = async (id: string) => (await sourceStatus(store.db)).find((status) => status.id === id);
const isRunning = async () => (await statusOf('hetzner'))?.lastRun?.outcome === 'running';
it('the worker stops the active work, does not retry, and runs the source normally afterwards', async () => {
  upstream.behaviours.hetzner = { until: new Promise(() => {}) };
  const worker = await start();
  await until(async () => (upstream.calls.hetzner ?? 0) > 0 && (await isRunning()));
  const job = await jobOf(worker, 'hetzner');
  expect(await cancelRun(store.db, 'hetzner', undefined, ADA)).toMatchObject({ outcome: 'cancelled' });
  await until(async () => (await job.getState()) === 'completed');
  const { returnvalue } = await jobOf(worker, 'hetzner');
  expect(returnvalue).toEqual({ outcome: 'cancelled', stored: false });
  expect(await dueIn('hetzner')).toBeNull();
  expect(await statusOf('hetzner')).toMatchObject({
    published: 0,
    lastRun: { outcome: 'cancelled', error: 'cancelled by ada@desk: the upstream hangs' },
  });
  expect((await sourceStatus(store.db)).filter(({ failedRuns }) => failedRuns > 0)).toEqual([]);

  upstream.behaviours.hetzner = 'well';
  await requestNow('hetzner');
  await settled(worker);
  expect((await runs()).filter(({ source }) => source === 'hetzner').map(({ outcome }) => outcome)).toEqual([
    'cancelled',
    'changed',
  ]);
});

it('a job whose run was cancelled is not restarted after its worker died', async () => {
  const first = await start();
  await settled(first);
  const worker = opened.use(composeWorker(config(), silent));
  await until(() => worker.cache.status === 'ready');
  const job = await jobOf(first, 'hetzner');
  await first[Symbol.asyncDispose]();
  const process = syncProcessor({ config: config(), worker, logger: silent });
  for (const cause of ['slot', 'hand'] as const) {
    // As if a worker died after its run was cancelled.
    await store.sql`update schedule_slots set due_at = now() where schedule = 'hetzner'`;
    if (cause === 'hand') await requestNow('hetzner');
    const begun = await beginAttempt(store.db, await attemptOf('hetzner'));
    const live = await worker.liveRuns.begin('hetzner', undefined, { origin: { cause } });
    await cancelRun(store.db, 'hetzner', undefined, ADA);
    await live[Symbol.asyncDispose]();
    // The cancellation ended the attempt; as if it had come before the attempt was stored.
    await store.sql`update schedule_slots set due_at = now() where schedule = 'hetzner'`;
    const [calls, before] = [{ ...upstream.calls }, await runs()];
    const again = Object.assign(job, { data: { ...job.data, attempt: begun?.attempt ?? -1 } });
    expect(await process(again, 'token', new AbortController().signal)).toEqual({
      outcome: 'cancelled',
      stored: false,
    });
    expect([await runs(), upstream.calls]).toEqual([before, calls]);
  }
});

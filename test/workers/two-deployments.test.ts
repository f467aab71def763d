/** Two deployments with the same queues' Redis: each worker runs the jobs of its own database only. */
import { expect, it } from 'vitest';
import { checkQueues } from '../../src/cli/doctor/redis.ts';
import { openStore } from '../../src/db/connection/connect.ts';
import { databaseName } from '../../src/db/lineage.ts';
import { requestAttempt } from '../../src/sync/runs/slots.ts';
import { createDatabase } from '../support/postgres.ts';
import { until } from '../support/until.ts';
import { config, opened, settled, start, store, upstream, useServers } from './scene.ts';

useServers();

it('a worker runs no job of another database, and doctor names both databases', async () => {
  const other = opened.use(await createDatabase());
  const otherStore = opened.use(openStore({ url: other.url, role: 'worker', connections: 2 }));
  const ofOther = { DATABASE_URL: other.url, DIRECT_DATABASE_URL: other.url };
  const own = await start();
  await settled(own);
  const calls = { ...upstream.calls };

  // The other deployment has a slot whose job is in the queue, and no worker that takes it.
  const its = await start(ofOther);
  const ran = async () =>
    (
      await otherStore.sql<
        { n: number }[]
      >`select count(*)::int as n from sync_runs where finished_at is not null`
    )[0]?.n ?? 0;
  await until(async () => (await ran()) >= 2);
  await until(async () => (await its.queues.sync.getJobCountByTypes('active', 'waiting', 'delayed')) === 0);
  await its.queues.sync.pause();
  await requestAttempt(
    otherStore.db,
    { schedule: 'hetzner', slot: '2026-01-01T00:00:00Z' },
    { cause: 'hand' },
  );
  await until(async () => (await its.queues.sync.getWaiting()).length === 1);
  const before = await ran();
  // Its job is of no concern to the first worker, whose own request runs.
  const runsOfOwn = async () =>
    (await store.sql`select from sync_runs where source_id = 'hetzner' and finished_at is not null`).length;
  const hand = { schedule: 'hetzner', slot: '2026-01-01T00:00:00Z' };
  const ownBefore = await runsOfOwn();
  await requestAttempt(store.db, hand, { cause: 'hand' });
  await until(async () => (await runsOfOwn()) > ownBefore);
  expect([await ran(), await its.queues.sync.getWaitingCount()]).toEqual([before, 1]);
  expect(upstream.calls.hetzner).toBeGreaterThan(calls.hetzner ?? 0);
  await its.queues.sync.resume();
  await until(async () => (await ran()) > before);

  const [name, otherName] = [await databaseName(store.db), await databaseName(otherStore.db)];
  expect(otherName).not.toBe(name);
  const [finding] = await checkQueues(config(), () => new Date());
  expect(finding).toMatchObject({
    check: 'queues',
    verdict: 'ok',
    found: expect.stringMatching(
      new RegExp(
        `^the queues of this database are {fleetbook}:${name}; 1 other database has queues in this Redis`,
      ),
    ),
  });
});

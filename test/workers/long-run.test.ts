/** Runs that are still live when their source is due again, with real workers: a source has one run at a time. */
import { expect, it } from 'vitest';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { claimSlot } from '../../src/sync/runs/slots.ts';
import { until } from '../support/until.ts';
import { dueIn, queueRedis, start, store, upstream, useServers } from './scene.ts';

useServers();

const LATER = '2999-01-01T00:00:00Z';

const runsOfHetzner = async () =>
  (
    await store.sql<{ cause: string; outcome: string }[]>`
      select cause, outcome from sync_runs where source_id = 'hetzner' order by id`
  ).map(({ cause, outcome }) => `${cause} ${outcome}`);

/** Starts a worker whose run of hetzner ends when the returned gate opens. */
async function startLongRun() {
  const gate = Promise.withResolvers<void>();
  upstream.behaviours.hetzner = { until: gate.promise };
  const worker = await start();
  await until(() => upstream.calls.hetzner > 0);
  return { gate, worker };
}

/** Claims the later slot as another worker does, which has died before it enqueued the slot. */
async function claimLaterSlot() {
  const isEnqueued = await claimSlot(store.db, { schedule: 'hetzner', slot: LATER });
  await store.sql`update schedule_slots set claimed_at = now() - interval '1 minute' where slot = ${LATER}`;
  return isEnqueued;
}

/** Waits until the schedulers of all workers have checked for due attempts. Slots of `checks` are due in the same check. */
async function untilChecked() {
  await store.sql`
    insert into schedule_slots (schedule, slot, due_at, claimed_at)
    values ('linode', ${LATER}, now(), now() - interval '1 minute')`;
  await until(
    async () =>
      (
        await store.sql`
    select from sync_runs where source_id = 'linode' and slot = ${LATER} and finished_at is not null`
      ).length === 1,
  );
}

it('the next slot waits for a run that outlasts its interval, and then runs', async () => {
  const { gate } = await startLongRun();
  expect(await claimLaterSlot()).toBe(false);
  await untilChecked();
  expect(await runsOfHetzner()).toEqual(['first running']);
  upstream.behaviours.hetzner = 'well';
  gate.resolve();
  await until(async () => (await runsOfHetzner()).at(1) === 'slot unchanged');
  expect(await runsOfHetzner()).toEqual(['first changed', 'slot unchanged']);
});

it('a run goes on alone if the queue loses its job', async () => {
  const { gate } = await startLongRun();
  const redis = openRedis(queueRedis.url, 'publisher', () => {});
  await redisReady(redis, 5000);
  await redis.flushall();
  redis.disconnect();
  await store.sql`
    update schedule_slots set enqueued_at = now() - interval '2 minutes' where schedule = 'hetzner'`;
  await untilChecked();
  expect(await runsOfHetzner()).toEqual(['first running']);
  gate.resolve();
  await until(async () => (await dueIn('hetzner')) === null);
  expect(await runsOfHetzner()).toEqual(['first changed']);
});

it('the next slot does not wait for a run that may hang', async () => {
  const { gate } = await startLongRun();
  await store.sql`
    update sync_runs set started_at = now() - interval '61 minutes' where source_id = 'hetzner'`;
  upstream.behaviours.hetzner = 'well';
  expect(await claimLaterSlot()).toBe(true);
  await until(async () => (await runsOfHetzner()).at(1) === 'slot changed');
  expect((await runsOfHetzner())[0]).toBe('first superseded');
  gate.resolve();
});

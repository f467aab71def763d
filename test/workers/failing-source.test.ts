import { describe, expect, it } from 'vitest';
import { SAMPLE_HETZNER_TOKEN } from '../../src/dev/sample/upstream.ts';
import { attemptEnqueued, attemptsToEnqueue, claimSlot } from '../../src/sync/runs/slots.ts';
import { until } from '../support/until.ts';
import {
  dueIn,
  jobOf,
  queueRedis,
  retryIsDue,
  retryNow,
  runs,
  start,
  stateOf,
  store,
  succeeded,
  upstream,
  useServers,
} from './scene.ts';

useServers();

describe('a failing source', () => {
  it('is retried, and delays no other', async () => {
    upstream.behaviours.hetzner = { status: 500 };
    await start();
    await until(() => succeeded('linode'));
    const pauses: number[] = [];
    // More often than the former limit of attempts.
    for (let failures = 1; failures <= 7; failures++) {
      const ms = await until(async () => {
        const [slot] = await store.sql<{ failures: number }[]>`
          select failures from schedule_slots where schedule = 'hetzner'`;
        return slot?.failures === failures && (await retryIsDue('hetzner'));
      });
      pauses.push(ms / 1000);
      if (failures === 7) upstream.behaviours.hetzner = 'well';
      await retryNow('hetzner');
    }
    for (const [index, pause] of pauses.entries()) {
      // Randomly up to half less than computed, which is at most 15 minutes.
      // Some time has passed since the failure.
      expect(pause).toBeGreaterThanOrEqual(Math.min(15 * 2 ** index, 900) / 2 - 5);
      expect(pause).toBeLessThanOrEqual(15 * 2 ** index + 1);
    }
    await until(() => succeeded('hetzner'));
    expect((await runs()).filter(({ source }) => source === 'hetzner').map(({ outcome }) => outcome)).toEqual(
      [...Array.from({ length: 7 }, () => 'failed'), 'changed'],
    );
    await until(async () => (await dueIn('hetzner')) === null);
  });

  it('has one chain of attempts, also when new machines trigger another run', async () => {
    const gate = Promise.withResolvers<void>();
    upstream.behaviours.clusters = { status: 500 };
    upstream.behaviours.linode = { until: gate.promise };
    await start();
    await until(async () => (await runs()).some(({ source }) => source === 'hetzner'));
    upstream.behaviours.linode = 'well';
    gate.resolve();
    await until(() => succeeded('linode'));
    await retryIsDue('clusters');
    const failed = (await runs()).filter(({ source }) => source === 'clusters').length;
    const [slot] = await store.sql`select attempt, failures from schedule_slots where schedule = 'clusters'`;
    expect(slot).toEqual({ attempt: failed, failures: failed });
  });

  it('stops its retries as soon as its next slot is claimed', async () => {
    upstream.behaviours.hetzner = { status: 500 };
    const worker = await start();
    await retryIsDue('hetzner');
    await worker.queues.sync.pause();
    await retryNow('hetzner');
    const job = await until(async () => (await worker.queues.sync.getJobs('waiting'))[0]);
    const later = { schedule: 'hetzner', slot: '2999-01-01T00:00:00Z' };
    await claimSlot(store.db, later);
    await attemptEnqueued(store.db, { ...later, attempt: 0 });
    await worker.queues.sync.resume();
    await until(async () => (await job.getState()) === 'completed');
    expect(upstream.calls.hetzner).toBe(1);
  });

  it('is also retried after the queue lost all jobs', async () => {
    upstream.behaviours.hetzner = { status: 500 };
    await start();
    await until(() => succeeded('linode'));
    await retryIsDue('hetzner');
    upstream.behaviours.hetzner = 'well';
    await queueRedis.kill();
    await store.sql`update schedule_slots set due_at = now() - interval '2 minutes' where schedule = 'hetzner'`;
    await queueRedis.restart();
    await until(() => succeeded('hetzner'));
    expect((await runs()).filter(({ source }) => source === 'linode')).toHaveLength(1);
  });

  it('with 429 and Retry-After waits that long, and no other source does', async () => {
    upstream.behaviours.hetzner = { status: 429, headers: { 'retry-after': '3600' } };
    await start();
    await until(() => succeeded('linode'));
    const ms = await retryIsDue('hetzner');
    expect(ms).toBeGreaterThanOrEqual(3_590_000);
    expect(ms).toBeLessThan(3_602_000);
    await until(() => succeeded('clusters'));
    expect(upstream.calls.hetzner).toBe(1);
  });

  it('with a Retry-After beyond its next slot delays that slot', async () => {
    upstream.behaviours.hetzner = { status: 429, headers: { 'retry-after': '7200' } };
    const halfAnHourAway = (new Date().getUTCMinutes() + 30) % 60;
    const worker = await start({ HETZNER_SCHEDULE: `${halfAnHourAway} * * * *` });
    await until(async () => (await stateOf(worker, 'hetzner')) === 'failed');
    const waits = Number(await dueIn('hetzner'));
    expect(waits).toBeGreaterThan(7_190_000);
    const next = { schedule: 'hetzner', slot: '2999-01-01T00:00:00Z' };
    expect(await claimSlot(store.db, next)).toBe(false);
    await store.sql`update schedule_slots set claimed_at = now() - interval '1 hour' where slot = ${next.slot}`;
    expect(await dueIn('hetzner')).toBeGreaterThan(7_100_000);
    expect(await attemptsToEnqueue(store.db, 0)).not.toContainEqual({ ...next, attempt: 0 });
    await until(() => succeeded('clusters'));
    expect(upstream.calls.hetzner).toBe(1);
  });

  it.each([
    ['data that is not a catalogue', { status: 200, body: '<html>sorry</html>' }],
    ['that it does not exist any more', { status: 404 }],
  ] as const)('is retried rarely after the answer %s', async (_, behaviour) => {
    upstream.behaviours.hetzner = behaviour;
    await start();
    const ms = await retryIsDue('hetzner');
    expect(ms).toBeGreaterThanOrEqual(140_000);
    expect(ms).toBeLessThanOrEqual(301_000);
  });

  it('is not retried before its next slot after the answer that the token is wrong', async () => {
    upstream.behaviours.hetzner = { status: 401 };
    const worker = await start();
    await until(async () => (await stateOf(worker, 'hetzner')) === 'failed');
    const job = await jobOf(worker, 'hetzner');
    expect(job.attemptsMade).toBe(1);
    await until(async () => (await dueIn('hetzner')) === null);
    expect(job.failedReason).toContain(upstream.urls.hetzner);
    expect(job.failedReason).not.toContain(SAMPLE_HETZNER_TOKEN);
    const [row] = await store.sql<
      { machines: number }[]
    >`select count(*)::integer as machines from machines where source_id = 'hetzner'`;
    expect(row?.machines).toBe(0);
  });
});

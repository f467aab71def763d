/** Sources that an operator disables, with real workers. */

import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { sourceStatus } from '../../src/db/sources.ts';
import type { Decider } from '../../src/domain/operator.ts';
import { disableSource, enableSource } from '../../src/sync/runs/disabled.ts';
import { LiveRuns } from '../../src/sync/runs/live.ts';
import { registerSource } from '../../src/sync/runs/run.ts';
import { attemptsToEnqueue, claimSlot } from '../../src/sync/runs/slots.ts';
import { startWorker } from '../../workers/main.ts';
import { until } from '../support/until.ts';
import { clusters, planeSource, startPlane } from './plane.ts';
import {
  config,
  dueIn,
  opened,
  retryIsDue,
  retryNow,
  runs,
  settled,
  start,
  store,
  succeeded,
  upstream,
  useServers,
} from './scene.ts';

useServers();

const BY_ADA = { by: 'ada@desk', reason: 'prices are wrong' };
const ADA: Decider = { ...BY_ADA, how: 'cli', address: 'ada@desk' };
const disable = (id: string) => disableSource(store.db, id, ADA);
const statusOf = async (id: string) => (await sourceStatus(store.db)).find((status) => status.id === id);
const runsOf = async (id: string) => (await runs()).filter(({ source }) => source === id).length;

/** Returns a worker's log entries with this message. */
function listening() {
  const lines: { level: number; msg: string; sourceId?: string }[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { lines, logger };
}

describe('a disabled source', () => {
  it('is not run by its schedule, keeps its data, and runs the missed slot when it is enabled', async () => {
    await registerSource(store.db, { id: 'hetzner', kind: 'catalogue', adapter: 'hetzner' });
    expect(await disable('hetzner')).toMatchObject({ outcome: 'disabled', disabling: BY_ADA });
    const worker = await start();
    // Clusters wait for the first run of catalogues, but not of a disabled one.
    await until(() => succeeded('clusters'));
    expect(upstream.calls.hetzner ?? 0).toBe(0);
    expect(await dueIn('hetzner')).toBeNull();
    const [claimed] = await store.sql`select from schedule_slots where schedule = 'hetzner'`;
    expect(claimed).toBeUndefined();

    expect(await enableSource(store.db, 'hetzner', ADA)).toBe(true);
    await worker[Symbol.asyncDispose]();
    // A start claims the slots that a running worker claims at its next full minute.
    const next = await start();
    await settled(next);

    const before = await statusOf('hetzner');
    await disable('hetzner');
    const after = await statusOf('hetzner');
    expect(after).toMatchObject({
      published: before?.published,
      verifiedAt: before?.verifiedAt,
      disabled: { ...BY_ADA, at: expect.stringMatching(/Z$/) },
    });
    expect(before?.published).toBeGreaterThan(0);
  });

  it('has its waiting job skipped, and the log names the operator and the command that enables it', async () => {
    upstream.behaviours.hetzner = { status: 500 };
    const { lines, logger } = listening();
    const worker = opened.use(await startWorker(config(), logger));
    await retryIsDue('hetzner');
    upstream.behaviours.hetzner = 'well';
    const calls = upstream.calls.hetzner;
    await worker.queues.sync.pause();
    await retryNow('hetzner');
    const job = await until(async () =>
      (await worker.queues.sync.getJobs('waiting')).find(({ data }) => data.sourceId === 'hetzner'),
    );
    await disable('hetzner');
    await worker.queues.sync.resume();
    const skipped = () => lines.filter(({ msg }) => msg.startsWith('skipped: '));
    await until(async () => skipped().length > 0 && (await job.getState()) === 'completed');
    expect(upstream.calls.hetzner).toBe(calls);
    expect(await dueIn('hetzner')).toBeLessThanOrEqual(0);
    expect(skipped()).toEqual([
      expect.objectContaining({
        sourceId: 'hetzner',
        level: 30,
        msg: expect.stringMatching(
          /^skipped: source "hetzner" was disabled at \S+Z by ada@desk \(prices are wrong\); to read it again: fleetbook source enable hetzner$/,
        ),
      }),
    ]);
    expect(await statusOf('hetzner')).toMatchObject({ lastRun: { outcome: 'failed' } });

    // Enabled again, its slot is run at once.
    await enableSource(store.db, 'hetzner', ADA);
    await until(() => succeeded('hetzner'));
  });

  it('has an active run store nothing', async () => {
    const worker = await start();
    await settled(worker);
    const published = (await statusOf('hetzner'))?.published;
    await using liveRuns = new LiveRuns(store.connection);
    const run = await liveRuns.begin('hetzner', undefined);
    await disable('hetzner');
    const [row] = await store.sql<{ outcome: string; fence: number; held: number }[]>`
      select r.outcome, r.fence::int, s.fence::int as held from sync_runs r join sources s on s.id = r.source_id
      where r.id = ${run.run.id}`;
    expect(row).toMatchObject({ outcome: 'superseded', held: (row?.fence ?? 0) + 1 });
    await run[Symbol.asyncDispose]();
    await expect(liveRuns.begin('hetzner', undefined)).rejects.toMatchObject({
      name: 'SourceDisabled',
    });
    // A decision about earlier data is still stored.
    await using decision = await liveRuns.begin('hetzner', undefined, { evenIfDisabled: true });
    await expect(liveRuns.begin('hetzner', undefined)).rejects.toThrow('fleetbook source enable hetzner');
    const [decided] = await store.sql`select outcome from sync_runs where id = ${decision.run.id}`;
    expect(decided).toEqual({ outcome: 'running' });
    expect((await statusOf('hetzner'))?.published).toBe(published);
  });

  it('leaves overdue slots until it is enabled', async () => {
    await registerSource(store.db, { id: 's', kind: 'catalogue', adapter: 'x' });
    const slot = { schedule: 's', slot: '2026-03-01T10:00:00Z' };
    expect(await claimSlot(store.db, slot)).toBe(true);
    await store.sql`update schedule_slots set claimed_at = now() - interval '1 hour', due_at = now() - interval '1 hour'`;
    await disable('s');
    expect(await attemptsToEnqueue(store.db, 1000)).toEqual([]);
    expect(await claimSlot(store.db, { ...slot, slot: '2026-03-01T11:00:00Z' })).toBe(false);
    await enableSource(store.db, 's', ADA);
    expect(await attemptsToEnqueue(store.db, 1000)).toEqual([{ ...slot, attempt: 0 }]);
  });

  it('keeps the name of the operator who disabled it first, and is enabled once', async () => {
    await registerSource(store.db, { id: 's', kind: 'catalogue', adapter: 'x' });
    await disable('s');
    const again = await disableSource(store.db, 's', { ...ADA, by: 'bob', reason: undefined });
    expect(again).toMatchObject({ outcome: 'already', disabling: BY_ADA });
    expect(await disable('unknown')).toEqual({ outcome: 'unknown' });
    expect([await enableSource(store.db, 's', ADA), await enableSource(store.db, 's', ADA)]).toEqual([
      true,
      false,
    ]);
  });
});

describe('a disabled watched source', () => {
  it('stops being watched, and is watched again within seconds once it is enabled', async () => {
    await using plane = await startPlane(clusters(3, { organization: 'sample' }));
    const { lines, logger } = listening();
    opened.use(await startWorker({ ...config(), sources: [planeSource(plane.url)] }, logger));
    const stored = async () => (await statusOf('plane'))?.published;
    await until(async () => (await stored()) === 3 && plane.watching.now === 1);

    await disable('plane');
    await until(() => plane.watching.now === 0, { timeoutMs: 8000 });
    const ran = await runsOf('plane');
    plane.set(clusters(5, { organization: 'sample' }));
    const watchesBefore = plane.requests.watch;
    await until(() => lines.some(({ msg }) => msg.startsWith('the watch ends')));
    expect([await stored(), await runsOf('plane'), plane.requests.watch]).toEqual([3, ran, watchesBefore]);

    await enableSource(store.db, 'plane', ADA);
    const since = performance.now();
    await until(async () => (await stored()) === 5 && plane.watching.now === 1);
    expect(performance.now() - since).toBeLessThan(8000);
  });
});

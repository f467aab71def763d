/** Runs that a person requests, with real workers: each one takes place. */
import { expect, it } from 'vitest';
import { liveRunOf } from '../../src/sync/runs/live.ts';
import { until } from '../support/until.ts';
import {
  dueIn,
  queueRedis,
  requestNow,
  retryIsDue,
  runs,
  settled,
  start,
  store,
  succeeded,
  upstream,
  useServers,
} from './scene.ts';

useServers();

/** Returns the cause and the outcome of each ended run of hetzner, oldest first. */
const causes = async () =>
  (
    await store.sql<{ cause: string; outcome: string }[]>`
      select cause, outcome from sync_runs where source_id = 'hetzner' and outcome <> 'running' order by id`
  ).map(({ cause, outcome }) => `${cause} ${outcome}`);

it('a requested run begins when the current run has ended, however often it is requested, and the answer names that run', async () => {
  const gate = Promise.withResolvers<void>();
  upstream.behaviours.hetzner = { until: gate.promise };
  const worker = await start();
  await until(() => upstream.calls.hetzner > 0);
  const currentRun = (await liveRunOf(store.db, 'hetzner')) ?? null;
  expect(currentRun).not.toBeNull();
  for (let times = 0; times < 2; times++)
    expect(await requestNow('hetzner')).toEqual({ starts: 'after the current run', currentRun });
  upstream.behaviours.hetzner = 'well';
  gate.resolve();
  await until(async () => (await causes()).length === 2);
  await settled(worker);
  expect(await causes()).toEqual(['first changed', 'hand unchanged']);
});

it('a run that is requested during a requested run takes place too', async () => {
  const worker = await start();
  await settled(worker);
  const gate = Promise.withResolvers<void>();
  const calls = upstream.calls.hetzner;
  upstream.behaviours.hetzner = { until: gate.promise };
  await requestNow('hetzner');
  await until(() => upstream.calls.hetzner > calls);
  expect((await requestNow('hetzner')).starts).toBe('after the current run');
  upstream.behaviours.hetzner = 'well';
  gate.resolve();
  await until(async () => (await causes()).length === 3);
  await settled(worker);
  expect(await causes()).toEqual(['first changed', 'hand unchanged', 'hand unchanged']);
});

it.each([
  ['a passing failure', { status: 500 }],
  ['a rate limit', { status: 429, headers: { 'retry-after': '3600' } }],
  ['an unreadable answer', { status: 200, body: '<html>sorry</html>' }],
] as const)('during the pause after %s a requested run begins at once', async (_, behaviour) => {
  upstream.behaviours.hetzner = behaviour;
  await start();
  expect(await retryIsDue('hetzner')).toBeGreaterThan(0);
  upstream.behaviours.hetzner = 'well';
  expect(await requestNow('hetzner')).toEqual({ starts: 'now', currentRun: null });
  await until(() => succeeded('hetzner'));
  expect(await causes()).toEqual(['first failed', 'hand changed']);
  await until(async () => (await dueIn('hetzner')) === null);
});

it('a requested run that fails is retried like a run of the schedule', async () => {
  const worker = await start();
  await settled(worker);
  upstream.behaviours.hetzner = { status: 500 };
  await requestNow('hetzner');
  expect(await retryIsDue('hetzner')).toBeLessThanOrEqual(15_000);
  expect(await causes()).toEqual(['first changed', 'hand failed']);
});

it('a run that is requested while the queue is away takes place once the queue is back', async () => {
  const worker = await start();
  await settled(worker);
  const before = (await runs()).length;
  await queueRedis.kill();
  expect(await requestNow('hetzner')).toEqual({ starts: 'now', currentRun: null });
  await queueRedis.restart();
  await until(async () => (await runs()).length > before);
  expect((await causes()).at(-1)).toBe('hand unchanged');
});

import { expect, it } from 'vitest';
import { sourceStatus } from '../../../src/db/sources.ts';
import { finishRun, registerSource } from '../../../src/sync/runs/run.ts';
import { startProgram } from '../../support/program.ts';
import { until } from '../../support/until.ts';
import { openScene } from '../scene.ts';

it('a run is interrupted at once after a kill of its process, and the next run records that', async () => {
  await using scene = await openScene();
  const { db } = scene.store;
  await registerSource(db, { id: 's', kind: 'catalogue', adapter: 'x' });
  const statusOf = async (id: string) =>
    (await sourceStatus(db)).find((source) => source.id === id) ?? expect.unreachable(`no source ${id}`);
  await using program = await startProgram(new URL('programs/running.ts', import.meta.url).pathname, [
    scene.db.url,
  ]);
  await program.answer();
  expect((await statusOf('s')).lastRun?.outcome).toBe('running');
  program.child.kill('SIGKILL');
  const killed = performance.now();
  await until(async () => (await statusOf('s')).lastRun?.outcome === 'interrupted');
  expect(performance.now() - killed).toBeLessThan(5000);
  expect((await statusOf('s')).lastRun).toMatchObject({
    finishedAt: null,
    error: 'interrupted: the process that ran it ended before it was done',
  });
  await using next = await scene.liveRuns.begin('s', undefined);
  const during = await statusOf('s');
  expect(during.lastRun).toMatchObject({ outcome: 'running', error: null });
  expect(during.lastEnded).toMatchObject({
    outcome: 'interrupted',
    error: expect.stringContaining('process'),
  });
  await finishRun(db, next.run, 'failed', undefined, '2026-03-01T10:20:30.456Z', 'the upstream is away');
  expect((await statusOf('s')).lastEnded).toMatchObject({
    outcome: 'failed',
    error: 'the upstream is away',
  });
});

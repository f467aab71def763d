import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sourceStatus } from '../../../src/db/sources.ts';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import { runRecord } from '../../../src/features/console/queries/runs.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { cancelRun } from '../../../src/sync/runs/live.ts';
import { finishRun, NO_COUNTS, registerSource } from '../../../src/sync/runs/run.ts';
import { beginAttempt, claimSlot } from '../../../src/sync/runs/slots.ts';
import { until } from '../../support/until.ts';
import { untilWaiting } from '../../support/waiting.ts';
import { OPERATOR, offers, openScene, region, type Scene } from '../scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const NOW = '2026-03-01T10:20:30.456Z';
const cancel = (run?: number) => cancelRun(scene.store.db, 'acme', run, OPERATOR);
const status = async () => (await sourceStatus(scene.store.db))[0];
const trouble = async () => (await status())?.failedRuns;

describe('a cancelled run', () => {
  it('writes nothing any more, and is recorded with operator and reason', async () => {
    await scene.catalogue([region('a'), ...offers('a', 2)]);
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: requested, resolve: request } = Promise.withResolvers<void>();
    async function* items(): AsyncGenerator<CatalogueItem> {
      request();
      await released;
      yield* [region('a', 'New'), ...offers('a', 5)];
    }
    const late = scene.catalogue(items());
    await requested;
    expect(await cancel()).toEqual({ outcome: 'cancelled', run: 2 });
    const before = await scene.rows('machines', 'regions', 'sources', 'sync_runs', 'lineage');
    release();
    expect(await late).toMatchObject({ outcome: 'cancelled', counts: NO_COUNTS });
    expect(await scene.rows('machines', 'regions', 'sources', 'sync_runs', 'lineage')).toEqual(before);
    expect(await runRecord(scene.store.db, 2)).toMatchObject({
      outcome: 'cancelled',
      error: 'cancelled by ada@desk: it is right',
      finishedAt: expect.stringMatching(/Z$/),
      seen: null,
    });
    expect((await auditRecords(scene.store.db, {})).rows).toMatchObject([
      {
        action: 'source.cancel',
        by: 'ada@desk',
        reason: 'it is right',
        subject: { id: 'acme' },
        details: { run: 2 },
      },
    ]);
    expect(await scene.catalogue([region('a', 'New'), ...offers('a', 3)])).toMatchObject({
      outcome: 'changed',
    });
  });

  it('stays cancelled, whatever end its process records', async () => {
    const run = await scene.begin();
    await cancel(run.id);
    for (const outcome of ['failed', 'superseded', 'changed'] as const)
      await finishRun(scene.store.db, run, outcome, undefined, NOW, 'too late');
    await scene.begin();
    expect(await runRecord(scene.store.db, run.id)).toMatchObject({
      outcome: 'cancelled',
      error: 'cancelled by ada@desk: it is right',
    });
  });

  it('does not count as a failure, and does not hide one', async () => {
    const failed = await scene.begin();
    await finishRun(scene.store.db, failed, 'failed', undefined, NOW, 'the upstream is away');
    await scene.begin();
    await cancel();
    expect(await trouble()).toBe(1);
    expect(await status()).toMatchObject({
      lastRun: { outcome: 'cancelled' },
      lastEnded: { outcome: 'failed', error: 'the upstream is away' },
    });
  });

  it('finishes its slot, and no other', async () => {
    const slot = '2026-03-01T10:00:00Z';
    const later = '2026-03-01T11:00:00Z';
    await claimSlot(scene.store.db, { schedule: 'acme', slot });
    await beginAttempt(scene.store.db, { schedule: 'acme', slot, attempt: 0 });
    await scene.begin('acme', 'catalogue', slot);
    await claimSlot(scene.store.db, { schedule: 'acme', slot: later });
    await cancel();
    const due = await scene.sql`select due_at is null as done from schedule_slots order by slot`;
    expect(due).toEqual([{ done: true }, { done: false }]);
  });
});

describe('a cancellation does nothing', () => {
  it('for an unknown source, or one without a live run', async () => {
    expect(await cancel()).toEqual({ outcome: 'unknown' });
    await scene.catalogue([region('a'), ...offers('a', 2)]);
    const before = await scene.everything();
    expect(await cancel()).toEqual({ outcome: 'idle' });
    expect(await scene.everything()).toEqual(before);
  });

  it('if another run is live than the given one', async () => {
    const run = await scene.begin();
    expect(await cancel(run.id + 1)).toEqual({ outcome: 'idle' });
    expect(await runRecord(scene.store.db, run.id)).toMatchObject({ outcome: 'running' });
  });

  it('for a run that is committing', async () => {
    const run = await scene.begin();
    await using connection = scene.store.connection();
    await connection.sql`begin`;
    await connection.sql`select from sources where id = 'acme' for update`;
    await connection.sql`update sync_runs set outcome = 'changed', finished_at = now() where id = ${run.id}`;
    const cancelled = cancel();
    await untilWaiting(scene.sql, 1);
    await connection.sql`commit`;
    expect(await cancelled).toEqual({ outcome: 'idle' });
    expect(await runRecord(scene.store.db, run.id)).toMatchObject({ outcome: 'changed' });
  });
});

it('the process of a cancelled run aborts that run only', async () => {
  const { liveRuns } = scene;
  for (const id of ['acme', 'other'])
    await registerSource(scene.store.db, { id, kind: 'catalogue', adapter: 'test' });
  await using run = await liveRuns.begin('acme', undefined);
  await using other = await liveRuns.begin('other', undefined);
  await cancel(run.run.id);
  await until(() => run.signal.aborted);
  expect(other.signal.aborted).toBe(false);
  expect(run.signal.reason).toMatchObject({ message: 'an operator has cancelled the run' });
});

import { beforeAll, beforeEach, expect, it } from 'vitest';
import { causeInWords } from '../../../src/domain/run.ts';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import { sourceRuns } from '../../../src/features/console/queries/runs.ts';
import { disableSource } from '../../../src/sync/runs/disabled.ts';
import { beginRun, type RunOrigin, registerSource } from '../../../src/sync/runs/run.ts';
import { OPERATOR, openScene, type Scene } from '../scene.ts';

const SLOT = '2026-03-01T10:00:00Z';
const NEXT_SLOT = '2026-03-01T11:00:00Z';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await scene.reset();
  await registerSource(scene.store.db, { id: 's', kind: 'catalogue', adapter: 'x' });
});

const begin = (origin?: RunOrigin, slot?: string) => beginRun(scene.store.db, 's', slot, { origin });
/** The causes of all runs in words, the newest first. */
const causes = async () =>
  (await sourceRuns(scene.store.db, 's', { limit: undefined })).rows.map(causeInWords);
const audited = async () => (await auditRecords(scene.store.db, {})).rows;

it('a slot of a source that never ran is its first run, its second run a retry, and the next slot is by schedule', async () => {
  await begin({ cause: 'slot' }, SLOT);
  await begin({ cause: 'slot' }, SLOT);
  await begin({ cause: 'slot' }, NEXT_SLOT);
  await begin({ cause: 'watch' });
  await begin({ cause: 'follow' });
  await begin({ cause: 'decision', by: 'ada' });
  expect(await causes()).toEqual([
    'by a decision, by ada',
    'after new machines',
    'by a watch',
    'by schedule',
    'a retry',
    'the first run',
  ]);
  expect(await audited()).toEqual([]);
});

it('a run that a command requests is in the audit log with its id, once it begins', async () => {
  const { id } = await begin({ cause: 'hand', decider: OPERATOR });
  expect(await causes()).toEqual(['by hand, by ada@desk']);
  expect(await audited()).toMatchObject([
    {
      action: 'source.run',
      by: 'ada@desk',
      reason: 'it is right',
      subject: { kind: 'source', id: 's' },
      details: { run: id },
    },
  ]);
  await disableSource(scene.store.db, 's', OPERATOR);
  await expect(begin({ cause: 'hand', decider: OPERATOR })).rejects.toThrow('was disabled');
  expect((await audited()).map(({ action }) => action)).toEqual(['source.disable', 'source.run']);
});

it('a run that the console requests names the operator, and has one audit row only', async () => {
  await begin({ cause: 'hand', by: 'vera' });
  expect(await causes()).toEqual(['by hand, by vera']);
  expect(await audited()).toEqual([]);
});

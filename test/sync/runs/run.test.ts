import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ClientDatabase, Sql } from '../../../src/db/connection/connect.ts';
import { anyNeverRan, beginRun, finishRun, registerSource } from '../../../src/sync/runs/run.ts';
import { openScene, type Scene } from '../scene.ts';

let scene: Scene;
let db: ClientDatabase;
let sql: Sql;
beforeAll(async () => {
  scene = await openScene();
  ({ db, sql } = scene.store);
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const NOW = '2026-03-01T10:20:30.456Z';
const COUNTS = { seen: 5, added: 1, changed: 2, retired: 3, rejected: 4, withdrawn: 5 };

describe('a run', () => {
  it('of an unregistered source does not begin', async () => {
    await expect(beginRun(db, 'unknown', undefined)).rejects.toThrow('source unknown is not registered');
    expect(await sql`select from sync_runs`).toHaveLength(0);
  });

  it('has a unique fence, however many begin at once', async () => {
    await registerSource(db, { id: 's', kind: 'catalogue', adapter: 'x' });
    const runs = await Promise.all(Array.from({ length: 12 }, () => beginRun(db, 's', undefined)));
    const fences = runs.map(({ fence }) => fence).sort((a, b) => a - b);
    expect(fences).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
    expect(new Set(runs.map(({ id }) => id)).size).toBe(12);
  });

  it('whose process died is interrupted when the next run of its source begins, not of another one', async () => {
    for (const id of ['s', 't']) await registerSource(db, { id, kind: 'catalogue', adapter: 'x' });
    await beginRun(db, 's', undefined);
    await beginRun(db, 't', undefined);
    await beginRun(db, 's', '2026-03-01T10:20:00Z');
    expect(
      await sql`
        select source_id, outcome, finished_at is null as open, to_char(slot at time zone 'UTC', 'HH24:MI') as slot
        from sync_runs order by id`,
    ).toEqual([
      { source_id: 's', outcome: 'interrupted', open: false, slot: null },
      { source_id: 't', outcome: 'running', open: true, slot: null },
      { source_id: 's', outcome: 'running', open: true, slot: '10:20' },
    ]);
  });

  it.each([
    ['changed', true],
    ['unchanged', true],
    ['held', false],
    ['failed', false],
    ['superseded', false],
    ['cancelled', false],
  ] as const)('that ends as %s verifies its source: %s', async (outcome, verifies) => {
    await registerSource(db, { id: 's', kind: 'catalogue', adapter: 'x' });
    const run = await beginRun(db, 's', undefined);
    await finishRun(db, run, outcome, COUNTS, NOW, 'said');
    expect(
      await sql`select outcome, seen, added, changed, retired, rejected, withdrawn, error from sync_runs`,
    ).toEqual([{ outcome, ...COUNTS, error: 'said' }]);
    expect(await sql`select verified_at = ${NOW} as now from sources`).toEqual([
      { now: verifies ? true : null },
    ]);
  });

  it('ends once', async () => {
    await registerSource(db, { id: 's', kind: 'clusters', adapter: 'x' });
    const run = await beginRun(db, 's', undefined);
    await finishRun(db, run, 'superseded', undefined, NOW);
    await finishRun(db, run, 'failed', COUNTS, NOW, 'late');
    expect(await sql`select outcome, seen, error from sync_runs`).toEqual([
      { outcome: 'superseded', seen: null, error: null },
    ]);
  });

  it('changes the list of providers if it is the first good one of a catalogue', async () => {
    const version = async () => Number((await sql`select providers_version as v from lineage`)[0]?.v);
    const finished = async (id: string, kind: 'catalogue' | 'clusters', outcome: 'unchanged' | 'failed') => {
      await registerSource(db, { id, kind, adapter: 'x' });
      await finishRun(db, await beginRun(db, id, undefined), outcome, COUNTS, NOW);
      return version();
    };
    expect(await finished('s', 'catalogue', 'failed')).toBe(1);
    expect(await finished('s', 'catalogue', 'unchanged')).toBe(2);
    expect(await finished('s', 'catalogue', 'unchanged')).toBe(2);
    expect(await finished('plane', 'clusters', 'unchanged')).toBe(2);
    expect(await finished('t', 'catalogue', 'unchanged')).toBe(3);
  });

  it('counts as awaited until each source has a finished run, good or bad', async () => {
    for (const id of ['s', 't']) await registerSource(db, { id, kind: 'catalogue', adapter: 'x' });
    const never = (...ids: string[]) => anyNeverRan(db, ids);
    expect([await never(), await never('s', 't'), await never('unknown')]).toEqual([false, true, true]);
    const run = await beginRun(db, 's', undefined);
    expect(await never('s')).toBe(true);
    await finishRun(db, run, 'failed', undefined, NOW);
    expect([await never('s'), await never('s', 't')]).toEqual([false, true]);
  });

  it('finds its source as last registered', async () => {
    await registerSource(db, { id: 's', kind: 'catalogue', adapter: 'x' });
    await beginRun(db, 's', undefined);
    const before = await scene.rows('sources');
    await registerSource(db, { id: 's', kind: 'catalogue', adapter: 'x' });
    expect(await scene.rows('sources')).toEqual(before);
    await registerSource(db, { id: 's', kind: 'catalogue', adapter: 'y' });
    expect(await sql`select adapter, fence from sources`).toEqual([{ adapter: 'y', fence: '1' }]);
  });
});

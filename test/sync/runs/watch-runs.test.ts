import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ClientDatabase, Sql } from '../../../src/db/connection/connect.ts';
import { sourceStatus } from '../../../src/db/sources.ts';
import {
  beginRun,
  finishRun,
  foldUnchanged,
  pruneRuns,
  recordFailedWatch,
  registerSource,
} from '../../../src/sync/runs/run.ts';
import { openScene, type Scene } from '../scene.ts';

let scene: Scene;
let db: ClientDatabase;
let sql: Sql;
beforeAll(async () => {
  scene = await openScene();
  ({ db, sql } = scene.store);
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await scene.reset();
  for (const id of ['s', 't']) await registerSource(db, { id, kind: 'clusters', adapter: 'x' });
});

const NOW = '2026-03-01T10:20:30.456Z';
type Outcome = Parameters<typeof finishRun>[2];
async function ran(source: string, outcome: Outcome, slot?: string): Promise<void> {
  await finishRun(db, await beginRun(db, source, slot), outcome, undefined, NOW);
}
const outcomes = async (source = 's') =>
  (
    await sql<{ outcome: string }[]>`select outcome from sync_runs where source_id = ${source} order by id`
  ).map(({ outcome }) => outcome);

describe('the runs of a watched source', () => {
  it('that changed nothing leave one run, besides those of the schedule and those with changes', async () => {
    await ran('t', 'unchanged');
    await ran('s', 'unchanged', NOW);
    await ran('s', 'unchanged');
    await ran('s', 'changed');
    await ran('s', 'superseded');
    await ran('s', 'unchanged');
    await ran('s', 'unchanged');
    await foldUnchanged(db, 's');
    expect(await outcomes()).toEqual(['unchanged', 'changed', 'unchanged']);
    expect(await outcomes('t')).toEqual(['unchanged']);
  });

  it('include a failed watch, which does not raise the fence of a live run', async () => {
    const run = await beginRun(db, 's', undefined);
    await recordFailedWatch(db, 's', 'no answer');
    await recordFailedWatch(db, 'unknown', 'no answer');
    expect((await sourceStatus(db))[0]?.lastRun).toMatchObject({ outcome: 'failed', error: 'no answer' });
    const [row] = await sql<{ fence: string }[]>`select fence from sources where id = 's'`;
    expect(Number(row?.fence)).toBe(run.fence);
    await finishRun(db, run, 'changed', undefined, NOW);
    expect(await outcomes()).toEqual(['changed', 'failed']);
  });
});

describe('old runs', () => {
  it('are deleted beyond the latest two thousand of their source, except for those of a held batch', async () => {
    await sql`insert into sync_runs (source_id, fence, outcome) select 's', n, 'changed' from generate_series(1, 2003) n`;
    await ran('t', 'changed');
    const [oldest] = await sql<{ id: string }[]>`select min(id) as id from sync_runs where source_id = 's'`;
    await sql`insert into held_batches (source_id, run_id, broken, pattern, worst)
      values ('s', ${Number(oldest?.id)}, '[]', 'all prices × 100: a unit?', '{"rows": [], "total": 0}')`;
    await pruneRuns(db);
    expect(await outcomes()).toHaveLength(2001);
    expect(await outcomes('t')).toHaveLength(1);
    await sql`update held_batches set status = 'superseded', decided_at = now() - interval '8 days'`;
    await pruneRuns(db);
    expect(await outcomes()).toHaveLength(2000);
    expect(await sql`select from held_batches`).toHaveLength(0);
  });
});

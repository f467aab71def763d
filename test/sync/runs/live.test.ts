import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ClientDatabase, openStore, type Sql } from '../../../src/db/connection/connect.ts';
import { sourceStatus } from '../../../src/db/sources.ts';
import { LiveRuns } from '../../../src/sync/runs/live.ts';
import { finishRun, registerSource } from '../../../src/sync/runs/run.ts';
import { until } from '../../support/until.ts';
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
  for (const id of ['s', 't']) await registerSource(db, { id, kind: 'catalogue', adapter: 'x' });
});

const statusOf = async (id: string) =>
  (await sourceStatus(db)).find((source) => source.id === id) ?? expect.unreachable(`no source ${id}`);
const NOW = '2026-03-01T10:20:30.456Z';

describe('a live run', () => {
  it('is `running` from its begin to its end, while others begin and end', async () => {
    const one = await scene.liveRuns.begin('s', undefined);
    const other = await scene.liveRuns.begin('t', undefined);
    expect((await statusOf('s')).lastRun).toMatchObject({ outcome: 'running', error: null });
    expect((await statusOf('t')).lastRun).toMatchObject({ outcome: 'running', error: null });
    await finishRun(db, other.run, 'unchanged', undefined, NOW);
    await other[Symbol.asyncDispose]();
    expect((await statusOf('t')).lastRun?.outcome).toBe('unchanged');
    expect((await statusOf('s')).lastRun?.outcome).toBe('running');
    await one[Symbol.asyncDispose]();
    const again = await scene.liveRuns.begin('s', undefined);
    expect((await statusOf('s')).lastRun?.outcome).toBe('running');
    await again[Symbol.asyncDispose]();
  });

  it('is superseded by the next one of its source', async () => {
    await using one = await scene.liveRuns.begin('s', undefined);
    await using next = await scene.liveRuns.begin('s', undefined);
    const rows = await sql`select id::int, outcome, error from sync_runs order by id`;
    expect(rows).toEqual([
      { id: one.run.id, outcome: 'superseded', error: null },
      { id: next.run.id, outcome: 'running', error: null },
    ]);
  });

  it('stays live if the connection of its lock is lost while others begin', async () => {
    await using _one = await scene.liveRuns.begin('s', undefined);
    await scene.sql`
      select pg_terminate_backend(l.pid, 5000) from pg_locks l
      where l.locktype = 'advisory' and l.database = (select oid from pg_database where datname = current_database())`;
    expect((await statusOf('s')).lastRun?.outcome).toBe('interrupted');
    await using _other = await scene.liveRuns.begin('t', undefined);
    expect((await statusOf('s')).lastRun?.outcome).toBe('running');
    expect((await statusOf('t')).lastRun?.outcome).toBe('running');
  });

  it('does not begin for an unregistered source, and leaves no connection open', async () => {
    await expect(scene.liveRuns.begin('unknown', undefined)).rejects.toThrow('unknown is not registered');
    await using _run = await scene.liveRuns.begin('s', undefined);
    expect((await statusOf('s')).lastRun?.outcome).toBe('running');
  });
});

describe('a run whose process ended', () => {
  it('is interrupted as soon as its connection is closed', async () => {
    await using store = openStore({ url: scene.db.url, role: 'worker' });
    const liveRuns = new LiveRuns(store.connection);
    await liveRuns.begin('s', undefined);
    await liveRuns[Symbol.asyncDispose]();
    await until(async () => (await statusOf('s')).lastRun?.outcome === 'interrupted');
    expect((await statusOf('s')).lastEnded).toBeNull();
  });
});

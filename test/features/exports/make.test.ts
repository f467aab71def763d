/** When files are made, the state that they have, and what a dead maker leaves. */
import { access } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { readSettings } from '../../../src/config/settings.ts';
import { databaseOn, type Sql } from '../../../src/db/connection/client.ts';
import { openStore } from '../../../src/db/connection/connect.ts';
import { readLineage } from '../../../src/db/lineage.ts';
import { checkExports, exportState, findBehind } from '../../../src/features/exports/export-state.ts';
import { type ExportsOptions, makeInThread, runExports } from '../../../src/features/exports/job.ts';
import { newestExports } from '../../../src/features/exports/routes.ts';
import { run } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';
import {
  addCatalogue,
  addMany,
  download,
  type ExportScene,
  openExportScene,
  raise,
  storedBytes,
} from './scene.ts';

let scene: ExportScene;
let region: number;

beforeEach(async () => {
  scene = await openExportScene();
  region = await addCatalogue(scene.store.sql);
  return () => scene[Symbol.asyncDispose]();
});

const newestVersion = async () => (await newestExports(scene.store.db))[0]?.version;
const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

it('makes no files before a catalogue is read, and none twice of one state', async () => {
  await using empty = await openExportScene();
  expect(await empty.make()).toEqual({ outcome: 'unchanged' });
  expect(await scene.make()).toMatchObject({ outcome: 'made' });
  const version = await newestVersion();
  expect(await scene.make()).toEqual({ outcome: 'unchanged' });
  await raise(scene.store.sql, region);
  expect(await scene.make()).toMatchObject({ outcome: 'made' });
  expect(await newestVersion()).not.toBe(version);
});

it('stores two versions, and leaves no folder', async () => {
  for (let n = 0; n < 3; n += 1) {
    await raise(scene.store.sql, region);
    await scene.make();
  }
  const rows = await scene.store.sql`
    select count(distinct version)::int as versions, count(distinct export_id)::int as files
    from exports left join export_chunks on export_id = id`;
  expect(rows).toEqual([{ versions: 2, files: 24 }]);
  expect(await isThere(join(scene.folder, 'making'))).toBe(false);
});

it('all files are of one state while the catalogue changes', async () => {
  await addMany(scene.store.sql, region, 3000);
  let edition = 0;
  let isOver = false;
  // As a sync does: prices, their history and the version in one transaction.
  const change = () =>
    scene.store.sql.begin(async (sql) => {
      edition += 1;
      await sql`update machines set price = ${edition}, cpu = ${edition} where excluded_reason is null`;
      await sql`update machine_prices set price = ${edition} where price > 0`;
      await sql`update regions set version = version + 1 where id = ${region}`;
    });
  await change();
  const changing = (async () => {
    while (!isOver) await change();
  })();
  expect(await scene.make()).toMatchObject({ outcome: 'made' });
  isOver = true;
  await changing;
  expect(edition).toBeGreaterThan(2);
  const found = new Set<number>();
  for (const stored of await newestExports(scene.store.db)) {
    if (!stored.file.endsWith('.ndjson') || stored.coding !== 'identity') continue;
    const lines = (await storedBytes(scene.store.db, stored)).toString().trimEnd().split('\n');
    expect(lines.length).toBeGreaterThan(3000);
    for (const line of lines) found.add(JSON.parse(line).list_price);
  }
  expect(found.size).toBe(1);
});

it('a sold-out machine is in the files, and is not available', async () => {
  await scene.store.sql`update machines set excluded_reason = 'sold_out' where name = 'plain'`;
  await raise(scene.store.sql, region);
  await scene.make();
  const stored = await newestExports(scene.store.db);
  const rowsOf = async (name: string) => {
    const file = stored.find((each) => each.file === name && each.coding === 'identity') ?? expect.fail(name);
    const lines = (await storedBytes(scene.store.db, file)).toString().trimEnd().split('\n');
    expect(lines).toHaveLength(file.rows);
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  };
  const all = await rowsOf('machines.ndjson');
  expect(all).toHaveLength(10);
  expect(all.map(({ name, available }) => [name, available])).toContainEqual(['plain', 0]);
  expect(all.filter(({ available }) => available === 1)).toHaveLength(9);
  const plain = all.find(({ name }) => name === 'plain')?.id;
  expect((await rowsOf('prices.ndjson')).filter(({ machine_id }) => machine_id === plain)).toHaveLength(2);
});

describe('a maker that dies during its work', () => {
  /** Makes files in a thread, and ends it when all files are written and none is stored. */
  async function amid(end: (stop: AbortController, sql: Sql) => Promise<unknown>) {
    // Only the owner's role sees what a connection waits for.
    await using owner = openStore({ url: scene.url, role: 'owner', connections: 2 });
    const { sql } = owner;
    const folder = join(scene.folder, 'thread');
    await sql.begin(async (blocking) => {
      await blocking`lock table export_chunks in share mode`;
      const stop = new AbortController();
      const data = { url: scene.url, directUrl: scene.url, folder };
      const made = makeInThread(data, stop.signal);
      made.catch(() => {});
      await until(async () => {
        const rows = await sql`
          select from pg_stat_activity where application_name = 'fleetbook exports' and wait_event_type = 'Lock'
            and datname = current_database()`;
        return rows.length === 1;
      });
      expect(await isThere(join(folder, 'machines.parquet'))).toBe(true);
      await end(stop, sql);
      await expect(made).rejects.toThrow();
    });
    return folder;
  }

  it.each([
    ['its thread', async (stop: AbortController) => stop.abort()],
    [
      'its connection',
      (_stop: AbortController, sql: Sql) =>
        sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where application_name = 'fleetbook exports' and datname = current_database()`,
    ],
  ])('leaves the previous version, and the next maker makes a new one: %s', async (_, end) => {
    expect(await scene.make()).toMatchObject({ outcome: 'made' });
    const before = await newestVersion();
    await raise(scene.store.sql, region);
    const folder = await amid(end);
    expect(await newestVersion()).toBe(before);
    await download(scene);
    const data = { url: scene.url, directUrl: scene.url, folder };
    await until(async () => (await makeInThread(data, new AbortController().signal)).outcome === 'made');
    expect(await newestVersion()).not.toBe(before);
    expect(await isThere(folder)).toBe(false);
  });
});

describe('a worker', () => {
  const outcomes: string[] = [];
  const start = (more: Partial<ExportsOptions> = {}) =>
    runExports({
      db: scene.store.db,
      url: scene.url,
      directUrl: scene.url,
      everyMs: 0,
      checkEveryMs: 10,
      logger: pino({ level: 'silent' }),
      observe: (outcome) => outcomes.push(outcome),
      ...more,
    });
  beforeEach(() => {
    outcomes.length = 0;
  });

  it('makes the first files at once, and new ones after a change; two workers make each version once', async () => {
    await using _one = start();
    await using _other = start();
    await until(async () => (await newestVersion()) !== undefined);
    const first = await newestVersion();
    await raise(scene.store.sql, region);
    await until(async () => (await newestVersion()) !== first);
    await until(() => outcomes.filter((outcome) => outcome === 'made').length === 2);
    expect(outcomes).not.toContain('failed');
    const rows = await scene.store.sql`select count(*)::int as n from exports group by version`;
    expect(rows).toEqual([{ n: 12 }, { n: 12 }]);
    expect(await isThere(join(tmpdir(), `fleetbook-exports-${await readLineage(scene.store.sql)}`))).toBe(
      false,
    );
  });

  it('makes no new files within the interval', async () => {
    await scene.make();
    await raise(scene.store.sql, region);
    const first = await newestVersion();
    let checks = 0;
    const { sql } = scene.store;
    const counting = new Proxy(sql, {
      get(target, name) {
        if (name === 'unsafe') checks += 1;
        return Reflect.get(target, name);
      },
    });
    await using _ = start({ everyMs: 3_600_000, db: databaseOn(counting) });
    await until(() => checks > 5);
    expect(await newestVersion()).toBe(first);
    await sql`update exports set created_at = created_at - interval '1 hour'`;
    await until(async () => (await newestVersion()) !== first);
  });

  it('leaves the files if it cannot make new ones, and recovers', async () => {
    await scene.make();
    const first = await newestVersion();
    const { sql } = scene.store;
    await raise(sql, region);
    await sql`insert into sources (id, kind, adapter) values ('c', 'catalogue', 'json')`;
    await sql`insert into sync_runs (source_id, fence, changed_at) values ('c', 1, now() + interval '1 second')`;
    await run(scene.url, 'revoke insert on export_chunks from fleetbook_worker');
    await using _ = start({ retryMs: 10 });
    await until(() => outcomes.includes('failed'));
    expect(await newestVersion()).toBe(first);
    await sql`update sync_runs set changed_at = now() - interval '2 hours'`;
    await sql`update exports set created_at = now() - interval '3 hours'`;
    expect((await exportState(scene.store.db)).behindSeconds).toBeCloseTo(7200, -1);
    const reported = async (exportEvery: number) =>
      (
        await findBehind(scene.store.db, { settings: readSettings({ EXPORT_EVERY: String(exportEvery) }) })
      ).map(({ kind }) => kind);
    expect(await reported(900)).toEqual(['exports_behind']);
    expect(await reported(3600)).toEqual([]);
    expect(await reported(0)).toEqual([]);
    const settings = readSettings({ DATABASE_URL: scene.url });
    expect(await checkExports({ settings })).toMatchObject([
      { check: 'exports', verdict: 'problem', found: expect.stringContaining('changed 2 h ago') },
    ]);
    await run(scene.url, 'grant insert on export_chunks to fleetbook_worker');
    await until(async () => (await newestVersion()) !== first);
    expect((await exportState(scene.store.db)).behindSeconds).toBe(0);
    expect(await checkExports({ settings })).toMatchObject([{ verdict: 'ok' }]);
  });
});

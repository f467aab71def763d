/** Migrations while another release reads, writes, and holds locks. */
import postgres from 'postgres';
import { expect, it } from 'vitest';
import { migrate } from '../../src/db/migration/migrate.ts';
import { createDatabase } from '../support/postgres.ts';
import { until } from '../support/until.ts';
import { migrationsOf } from './older-migrations.ts';

/** Migrations of a later release. The first one alters `machines` and `clusters`. */
const LATER = {
  '0001_changes':
    'alter table machines add column later int;--> statement-breakpoint\nalter table clusters add column later int',
  '0002_notes': 'create table notes (id int)',
};
const NAMES = Object.keys(LATER);

async function older() {
  const undo = new AsyncDisposableStack();
  const db = undo.use(await createDatabase({ migrated: false }));
  const release = undo.use(await migrationsOf({}));
  await migrate(db.url, { folder: release.path });
  const { path: folder } = undo.use(await migrationsOf({ more: LATER }));
  const client = (name: string) => {
    const sql = postgres(db.url, { max: 1, onnotice: () => {}, connection: { application_name: name } });
    undo.defer(() => sql.end({ timeout: 1 }));
    return sql;
  };
  /** Locks a table in a transaction of another program, until the returned function is called. */
  const hold = async (table: 'machines' | 'clusters') => {
    const begun = Promise.withResolvers<void>();
    const over = Promise.withResolvers<void>();
    const holding = client('a long report').begin(async (sql) => {
      await sql`select from ${sql(table)}`;
      begun.resolve();
      await over.promise;
    });
    await Promise.race([begun.promise, holding]);
    const end = async () => {
      over.resolve();
      await holding;
    };
    undo.defer(end);
    return end;
  };
  return { db, release, folder, client, hold, [Symbol.asyncDispose]: () => undo.disposeAsync() };
}

it('wait for a lock repeatedly, report who holds it, and let other statements use the table', async () => {
  await using scene = await older();
  const end = await scene.hold('machines');
  const messages: string[] = [];
  const patience = { lockTimeoutMs: 50, giveUpAfterMs: 20_000 };
  const migrating = migrate(scene.db.url, {
    folder: scene.folder,
    notify: (line) => messages.push(line),
    patience,
  });
  // Awaited below. An earlier failure of the test must not become an unhandled rejection.
  migrating.catch(() => {});
  const reader = scene.client('reader');
  await reader`set statement_timeout = '2s'`;
  await until(() => messages.length > 0);
  for (let read = 0; read < 20; read++) await reader`select count(*) from machines`;
  expect(messages).toEqual([
    expect.stringMatching(
      /^the migration 0001_changes waits for a lock: the oldest open transactions are process .* of \w+ \(a long report\), /,
    ),
  ]);
  await end();
  const { applied } = await migrating;
  expect(applied).toEqual(NAMES);
});

it('fail without their lock: earlier ones stay, and the next call continues', async () => {
  await using scene = await older();
  const end = await scene.hold('clusters');
  const patience = { lockTimeoutMs: 20, giveUpAfterMs: 100 };
  await expect(migrate(scene.db.url, { folder: scene.folder, patience })).rejects.toThrow(
    /^the migration 0001_changes got no lock for \d+ s: .*\(a long report\).*; it changed nothing, the migrations before it are applied/,
  );
  const [state] = await scene.client('owner')`
    select to_regclass('notes') is null as lacks, count(*)::int as migrations
    from drizzle.__drizzle_migrations`;
  expect(state).toEqual({ lacks: true, migrations: scene.release.tags.length });
  await end();
  expect((await migrate(scene.db.url, { folder: scene.folder })).applied).toEqual(NAMES);
});

it('keep everything before a broken one, and nothing of it: the next call continues', async () => {
  await using scene = await older();
  await using broken = await migrationsOf({
    more: {
      '0013_good': 'create table good (id int)',
      '0014_broken': 'create table half (id int);--> statement-breakpoint\ninsert into half select 1 / 0',
    },
  });
  await expect(migrate(scene.db.url, { folder: broken.path })).rejects.toMatchObject({
    name: 'MigrationFailed',
    migration: '0014_broken',
    message:
      'the migration 0014_broken failed: division by zero; it changed nothing, the migrations before it are applied, ' +
      'and the previous release still works: correct the cause and run `fleetbook migrate` again',
  });
  const sql = scene.client('owner');
  expect(
    await sql`select to_regclass('good') is not null as good, to_regclass('half') is null as no_half`,
  ).toEqual([{ good: true, no_half: true }]);
  await using fixed = await migrationsOf({
    more: { '0013_good': 'create table good (id int)', '0014_broken': 'create table half (id int)' },
  });
  expect((await migrate(scene.db.url, { folder: fixed.path })).applied).toEqual(['0014_broken']);
});

it('run in one process at a time; the others report that they wait, and find nothing left to do', async () => {
  await using scene = await older();
  const end = await scene.hold('machines');
  const messages: string[][] = [[], []];
  const patience = { lockTimeoutMs: 20, giveUpAfterMs: 20_000 };
  const both = messages.map((lines) =>
    migrate(scene.db.url, { folder: scene.folder, notify: (line) => lines.push(line), patience }),
  );
  for (const each of both) each.catch(() => {});
  await until(() => messages.every((lines) => lines.length > 0));
  await end();
  const applied = (await Promise.all(both)).map((result) => result.applied.length).sort();
  expect(applied).toEqual([0, NAMES.length]);
  expect(messages.flat()).toContain('another process migrates this database: waiting for its end');
});

import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkReader, checkVersion, checkWriter } from '../../src/db/connection/server-problem.ts';
import { migrate } from '../../src/db/migration/migrate.ts';
import { startEmbeddedPostgres } from '../../src/dev/postgres.ts';
import { createDatabase, run } from '../support/postgres.ts';
import { changed, db, diagnose, found, opened, PROBLEM, SECRET, useServers } from './doctor-scene.ts';

useServers();

describe('the database', () => {
  it.each([
    [
      'whose password is wrong',
      (url: URL) => (url.password = SECRET),
      /refuses the password/,
      /correct it in DATABASE_URL/,
    ],
    [
      'that does not exist',
      (url: URL) => (url.port = '1'),
      /refuses connections/,
      /start it, or correct host and port/,
    ],
    [
      'whose name is wrong',
      (url: URL) => (url.pathname = '/nothing'),
      /no such database/,
      /create it, or correct its name/,
    ],
  ])('%s is a problem, and no other check of it runs', async (_, change, what, mend) => {
    const findings = await diagnose({ DATABASE_URL: changed(db.url, change) });
    const findingsOf = (check: string) => findings.filter((finding) => finding.check === check);
    expect(findingsOf('database')).toEqual([
      {
        check: 'database',
        ...PROBLEM,
        found: expect.stringMatching(what),
        mend: expect.stringMatching(mend),
      },
    ]);
    expect(findingsOf('migrations')).toEqual([]);
    expect(findingsOf('sources')).toMatchObject([{ verdict: 'warning' }]);
  });

  it('without migrations must be migrated, and so must one that lacks the last migration', async () => {
    await using empty = await createDatabase({ migrated: false });
    expect(await found('migrations', { DATABASE_URL: empty.url })).toMatchObject([
      {
        ...PROBLEM,
        found: expect.stringMatching(/^\d+ migrations? to apply: 0000_baseline/),
        mend: 'run `fleetbook migrate`',
      },
    ]);
    await migrate(empty.url);
    expect(await found('migrations', { DATABASE_URL: empty.url })).toMatchObject([{ verdict: 'ok' }]);
    const last = 'select max(created_at) from drizzle.__drizzle_migrations';
    await run(empty.url, `delete from drizzle.__drizzle_migrations where created_at = (${last})`);
    expect(await found('migrations', { DATABASE_URL: empty.url })).toMatchObject([
      { ...PROBLEM, found: expect.stringMatching(/^1 migration to apply: /) },
    ]);
    await run(
      empty.url,
      `insert into drizzle.__drizzle_migrations (hash, created_at) values ('x', 9999999999999)`,
    );
    expect(await found('migrations', { DATABASE_URL: empty.url })).toMatchObject([
      { ...PROBLEM, found: 'a later release has migrated this database' },
    ]);
  });

  it('that accepts no writes is a problem', async () => {
    await using own = await createDatabase();
    await run(own.url, `alter database ${own.name} set default_transaction_read_only = on`);
    expect(await found('database', { DATABASE_URL: own.url })).toMatchObject([
      {
        ...PROBLEM,
        found: expect.stringContaining('takes no writes'),
        mend: expect.stringContaining('primary'),
      },
    ]);
  });

  it('whose clock differs is a problem, in either direction', async () => {
    const off = (ms: number) => () => new Date(Date.now() + ms);
    expect(await found('clock')).toMatchObject([{ verdict: 'ok' }]);
    expect(await found('clock', {}, off(3_600_000))).toMatchObject([
      {
        ...PROBLEM,
        found: expect.stringMatching(/is 3600 s behind that of this machine$/),
        mend: expect.stringContaining('NTP'),
      },
    ]);
    expect(await found('clock', {}, off(-60_000))).toMatchObject([
      { ...PROBLEM, found: expect.stringMatching(/is (?:60|59) s ahead of/) },
    ]);
  });

  it('whose user may not become worker or reader is a problem', async () => {
    await run(db.url, `create role doctor_stranger login password '${SECRET}'`);
    opened.defer(() => run(db.url, 'drop role doctor_stranger'));
    const stranger = changed(db.url, (url) => {
      url.username = 'doctor_stranger';
      url.password = SECRET;
    });
    expect(await found('role of readers', { READER_DATABASE_URL: stranger })).toMatchObject([
      {
        ...PROBLEM,
        found: expect.stringContaining('does not let its user act as another role'),
        mend: 'grant fleetbook_worker and fleetbook_reader to the user of READER_DATABASE_URL',
      },
    ]);
    expect(await found('role of workers', { READER_DATABASE_URL: stranger })).toMatchObject([
      { verdict: 'ok' },
    ]);
    expect(await found('role of workers', { DATABASE_URL: stranger })).toMatchObject([PROBLEM]);
  });

  it('whose readers bypass row-level security is a problem', async () => {
    // Roles belong to a server: this test has a separate one.
    await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-doctor-'));
    await using server = await startEmbeddedPostgres({
      dataDir: join(folder.path, 'postgres'),
      durable: false,
    });
    await migrate(server.url);
    await run(server.url, 'alter role fleetbook_reader bypassrls');
    expect(await found('role of readers', { DATABASE_URL: server.url })).toMatchObject([
      { ...PROBLEM, mend: 'as a superuser: ALTER ROLE fleetbook_reader NOSUPERUSER NOBYPASSRLS' },
    ]);
  });

  it('that is too old is a problem', () => {
    expect(checkVersion({ version: '14.12' }, 'DATABASE_URL')).toEqual({
      what: 'it is PostgreSQL 14.12',
      remedy: 'upgrade it to PostgreSQL 15 or newer, or name another server in DATABASE_URL',
    });
    for (const version of ['15.1', '18beta1'])
      expect(checkVersion({ version }, 'DATABASE_URL')).toBeUndefined();
  });

  it('that is too old stops a worker, and a reader logs it', () => {
    const facts = { version: '14.12', role: 'x', isStandby: false, isReadOnly: false, isPooler: false };
    const server = { setting: 'DATABASE_URL', url: 'postgres://127.0.0.1/x' };
    const old = { what: 'it is PostgreSQL 14.12' };
    expect(checkWriter(facts, server)).toMatchObject(old);
    expect(checkReader(facts, server, true)).toMatchObject(old);
  });
});

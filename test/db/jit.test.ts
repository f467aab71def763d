/**
 * A stock PostgreSQL compiles each statement with a high estimate (JIT), which takes a second. No connection allows it, and the
 * estimates of frequent statements are low even without statistics.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { databaseOn, Pool } from '../../src/db/connection/client.ts';
import { openStore, type Sql } from '../../src/db/connection/connect.ts';
import { migrate } from '../../src/db/migration/migrate.ts';
import { statementOf } from '../../src/features/exports/tables.ts';
import { readFeedPage, readFeedStart } from '../../src/features/feed/read-changes.ts';
import { pgbouncer, startPgBouncer } from '../engines/pgbouncer.ts';
import { needs, PGBOUNCER } from '../support/needs.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { migrationsOf } from './older-migrations.ts';

let db: TestDatabase;
beforeAll(async () => {
  db = await createDatabase({ unused: true });
  return () => db[Symbol.asyncDispose]();
});

const ROLES = ['worker', 'reader'] as const;

async function jitOf(sql: Sql): Promise<string> {
  const [row] = await sql<[{ jit: string }]>`show jit`;
  return row.jit;
}

describe('a connection allows no compilation', () => {
  it.each(ROLES)('of the role %s', async (role) => {
    await using store = openStore({ url: db.url, role, connections: 1 });
    expect(await jitOf(store.sql)).toBe('off');
    await using full = openStore({ url: db.url, role, connections: 1 });
    await using connection = full.connection();
    expect([await jitOf(full.sql), await jitOf(connection.sql)]).toEqual(['off', 'off']);
  });

  it.each(ROLES)(
    'of the role %s, through a pooler',
    needs(pgbouncer !== undefined, PGBOUNCER),
    async (role) => {
      await using pooler = await startPgBouncer(db.url);
      const url = `${pooler.url}?pool_mode=transaction`;
      await using store = openStore({ url, role, connections: 1 });
      expect(await jitOf(store.sql)).toBe('off');
      const inTransaction = await store.sql.begin('read only', (tx) => jitOf(tx as unknown as Sql));
      expect(inTransaction).toBe('off');
    },
  );
});

describe('a migration', () => {
  it('allows no compilation', async () => {
    await using fresh = await createDatabase();
    await using later = await migrationsOf({
      more: { '9999_jit': "create table seen as select current_setting('jit') as jit" },
    });
    await migrate(fresh.url, { folder: later.path });
    await using store = openStore({ url: fresh.url, role: 'owner', connections: 1 });
    expect(await store.sql`select jit from seen`).toEqual([{ jit: 'off' }]);
  });
});

/** PostgreSQL's own `jit_above_cost`. */
const HIGH = 100_000;

describe('without statistics the estimate is low', () => {
  it.each<[string, (sql: Sql) => Promise<unknown>]>([
    ['where the feed begins', (sql) => readFeedStart(databaseOn(sql), 30)],
    [
      'a page of the catalogue’s changes',
      (sql) => readFeedPage(databaseOn(sql), { organizationId: undefined, after: 0, limit: 500 }),
    ],
    [
      'a page of an organization’s changes',
      (sql) => readFeedPage(databaseOn(sql), { organizationId: 1, after: 0, limit: 500 }),
    ],
    ['the machines of an export', (sql) => sql.unsafe(statementOf('machines'))],
    ['the prices of an export', (sql) => sql.unsafe(statementOf('prices'))],
  ])('of %s', async (_, read) => {
    const costs = await costsOf(read);
    expect(costs.length).toBeGreaterThan(0);
    expect(Math.max(...costs)).toBeLessThan(HIGH);
  });
});

/** PostgreSQL's estimate of each statement. */
async function costsOf(read: (sql: Sql) => Promise<unknown>): Promise<number[]> {
  const statements: { text: string; parameters: unknown[] }[] = [];
  await using pool = new Pool(db.url, {
    max: 1,
    onnotice: () => {},
    debug: (_, text, parameters) => {
      if (/^\s*(?:select|with)\b/.test(text)) statements.push({ text, parameters });
    },
  });
  await read(pool.sql);
  const costs: number[] = [];
  for (const { text, parameters } of statements.splice(0)) {
    const [plan] = await pool.sql.unsafe(`explain (format json) ${text}`, parameters as string[]);
    costs.push(plan?.['QUERY PLAN'][0].Plan['Total Cost']);
  }
  return costs;
}

import { randomBytes } from 'node:crypto';
import postgres, { type Sql } from 'postgres';
import { inject } from 'vitest';

export interface TestDatabase extends AsyncDisposable {
  /** The owner's URL, for `openStore({url, role})` and for reading rows. */
  readonly url: string;
  readonly name: string;
}

export interface TestDatabaseOptions {
  /** False returns a database without tables, for tests of the migrations. */
  readonly migrated?: boolean;
}

/**
 * A new database on the run's server: `await using db = await createDatabase()`. It is a clone of a migrated template
 * with a new lineage. Disposing drops it and closes its connections.
 */
export async function createDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { adminUrl, template } = inject('postgres');
  const migrated = options.migrated ?? true;
  const name = `test_${randomBytes(8).toString('hex')}`;
  const url = databaseUrl(adminUrl, name);
  // The default strategy, WAL_LOG, takes twice the time.
  await administer(
    adminUrl,
    `create database ${name} template ${migrated ? template : 'template0'} strategy file_copy`,
  );
  // Two databases with one lineage would share snapshots.
  if (migrated) await run(url, 'update lineage set id = gen_random_uuid()');
  return {
    url,
    name,
    async [Symbol.asyncDispose]() {
      await administer(adminUrl, `drop database if exists ${name} with (force)`);
    },
  };
}

let administrator: Sql | undefined;

/** Runs a statement of the administrator. The files of one process share the connection: it costs as much as a small database. */
async function administer(adminUrl: string, statement: string): Promise<void> {
  administrator ??= postgres(adminUrl, { max: 1, fetch_types: false, onnotice: () => {} });
  await administrator.unsafe(statement);
}

/** Empties each table and restarts each sequence, as after the migrations. @param sql a connection in the owner's role */
export async function emptyDatabase(sql: Sql): Promise<void> {
  // An eighth of the time of TRUNCATE, which creates each file of each table and index again.
  await sql.unsafe(`do $$
    declare name text;
    begin
      set local session_replication_role = replica;
      for name in
        select relname from pg_class
        where relnamespace = 'public'::regnamespace and relkind = 'r' and pg_relation_size(oid) > 0
      loop
        execute format('delete from %I', name);
      end loop;
      perform setval(format('%I', sequencename)::regclass, start_value, false)
      from pg_sequences where schemaname = 'public' and last_value is not null;
      insert into lineage default values;
      insert into feed_head default values;
    end $$`);
}

/** The same server and user, but another database. */
export function databaseUrl(url: string, database: string): string {
  const parsed = new URL(url);
  parsed.pathname = `/${database}`;
  return parsed.href;
}

/** Runs one statement on a separate connection. */
export async function run(url: string, statement: string): Promise<void> {
  // No caller catches a failure of the query for types, e.g. when a test ends the server.
  const sql = postgres(url, { max: 1, connect_timeout: 10, fetch_types: false, onnotice: () => {} });
  try {
    await sql.unsafe(statement);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

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
  /** True for tests of estimates: PostgreSQL has no statistics of the tables, and no page of them. */
  readonly unused?: boolean;
}

/**
 * A database on the run's server, as after the migrations: `await using db = await createDatabase()`. It is a clone of a migrated
 * template with a new lineage, or one that an earlier test of this process has left. Disposing closes its connections.
 */
export async function createDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { migrated = true, unused = false } = options;
  const database = (migrated && !unused && left.pop()) || (await makeDatabase(migrated));
  const { url, name } = database;
  return { url, name, [Symbol.asyncDispose]: () => leave(database) };
}

interface OwnDatabase {
  readonly url: string;
  readonly name: string;
  /** A connection in the owner's role, and what the catalogues of PostgreSQL contained; undefined for one without tables. */
  readonly owned: { readonly sql: Sql; readonly schema: string } | undefined;
}

/** Databases for later tests of this process. Cleaning one takes a tenth of the time of making one. */
const left: OwnDatabase[] = [];

async function makeDatabase(migrated: boolean): Promise<OwnDatabase> {
  const { adminUrl, template } = inject('postgres');
  const name = `test_${randomBytes(8).toString('hex')}`;
  const url = databaseUrl(adminUrl, name);
  // The default strategy, WAL_LOG, takes twice the time.
  await administer(
    adminUrl,
    `create database ${name} template ${migrated ? template : 'template0'} strategy file_copy`,
  );
  if (!migrated) return { url, name, owned: undefined };
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice: () => {} });
  // Two databases with one lineage would share snapshots.
  await sql`update lineage set id = gen_random_uuid()`;
  return { url, name, owned: { sql, schema: await schemaOf(sql) } };
}

/** Keeps a database for a later test, or drops it if a test has changed more than rows. */
async function leave(database: OwnDatabase): Promise<void> {
  const { name, owned } = database;
  if (owned !== undefined) {
    const isUsable = await clean(owned.sql, owned.schema).catch(() => false);
    if (isUsable) {
      left.push(database);
      return;
    }
    await owned.sql.end({ timeout: 5 });
  }
  await administer(inject('postgres').adminUrl, `drop database if exists ${name} with (force)`);
}

/** Closes all other connections and empties the tables. Returns false if their definitions are not the given ones. */
async function clean(sql: Sql, schema: string): Promise<boolean> {
  await sql`
    select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`;
  if ((await schemaOf(sql)) !== schema) return false;
  await emptyDatabase(sql);
  return true;
}

/** Returns a value that differs after any change of a definition: each change writes a new row version into a catalogue. */
async function schemaOf(sql: Sql): Promise<string> {
  const [row] = await sql<{ digest: string }[]>`
    with tables as (select oid from pg_class where relnamespace = 'public'::regnamespace)
    select md5(string_agg(version, ',' order by version)) as digest from (
      select 'class' || oid || ' ' || xmin from pg_class where oid in (select oid from tables)
      union all select 'column' || attrelid || ' ' || attnum || ' ' || xmin from pg_attribute where attrelid in (select oid from tables)
      union all select 'default' || oid || ' ' || xmin from pg_attrdef
      union all select 'constraint' || oid || ' ' || xmin from pg_constraint where connamespace = 'public'::regnamespace
      union all select 'index' || indexrelid || ' ' || xmin from pg_index where indrelid in (select oid from tables)
      union all select 'trigger' || oid || ' ' || xmin from pg_trigger
      union all select 'policy' || oid || ' ' || xmin from pg_policy
      union all select 'function' || oid || ' ' || xmin from pg_proc where pronamespace = 'public'::regnamespace
      union all select 'extension' || oid || ' ' || xmin from pg_extension
      union all select 'database' || oid || ' ' || xmin from pg_database where datname = current_database()
      union all select 'setting' || setrole || ' ' || xmin from pg_db_role_setting
        where setdatabase = (select oid from pg_database where datname = current_database())
      union all select 'schema' || oid || ' ' || xmin from pg_namespace where nspname !~ '^pg_(toast_)?temp_'
    ) found (version)`;
  return row?.digest ?? '';
}

let administrator: Sql | undefined;

/** Runs a statement of the administrator. The tests of one process share the connection: it costs half as much as a database. */
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

import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { inject } from 'vitest';

export interface TestDatabase extends AsyncDisposable {
  /** The owner's, for `openStore({url, role})` and for looking at rows. */
  readonly url: string;
  readonly name: string;
}

export interface TestDatabaseOptions {
  /** False gives a database without a single table, for tests of the migrations. */
  readonly migrated?: boolean;
}

/**
 * A database of the test's own, on the run's one server: `await using db = await createDatabase()`. It is cloned from
 * a migrated template, has a lineage of its own, and disposing drops it with whoever is still connected.
 */
export async function createDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { adminUrl, template } = inject('postgres');
  const migrated = options.migrated ?? true;
  const name = `test_${randomBytes(8).toString('hex')}`;
  const url = databaseUrl(adminUrl, name);
  await run(adminUrl, `create database ${name} template ${migrated ? template : 'template0'}`);
  // As for any copy of a database: two with one lineage would take each other's snapshots for their own.
  if (migrated) await run(url, 'update lineage set id = gen_random_uuid()');
  return {
    url,
    name,
    async [Symbol.asyncDispose]() {
      await run(adminUrl, `drop database if exists ${name} with (force)`);
    },
  };
}

/** The same server and user, another database. */
export function databaseUrl(url: string, database: string): string {
  const parsed = new URL(url);
  parsed.pathname = `/${database}`;
  return parsed.href;
}

/** One statement on a connection of its own. */
export async function run(url: string, statement: string): Promise<void> {
  const sql = postgres(url, { max: 1, connect_timeout: 10, onnotice: () => {} });
  try {
    await sql.unsafe(statement);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

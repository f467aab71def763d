import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import * as schema from './schema.ts';

/** `owner` migrates; `worker` writes for every organization; `reader` serves, and row-level security holds it. */
export type StoreRole = 'owner' | 'worker' | 'reader';

const DATABASE_ROLE: Record<StoreRole, string | undefined> = {
  owner: undefined,
  worker: 'fleetbook_worker',
  reader: 'fleetbook_reader',
};

export type Sql = postgres.Sql<Record<string, never>>;
export type TransactionSql = postgres.TransactionSql<Record<string, never>>;
export type Database = PostgresJsDatabase<typeof schema>;

/** One pool of connections that all act in one role. `await using` closes it. */
export interface Store extends AsyncDisposable {
  /** For hot and set-based statements: postgres.js prepares and names them itself, one round trip each. */
  readonly sql: Sql;
  /** For everything else. Drizzle changes its client's date parsers, so it has a client of its own. */
  readonly db: Database;
}

export interface StoreOptions {
  readonly url: string;
  readonly role: StoreRole;
  /** Connections of each of the two clients; they open when first used. */
  readonly connections?: number;
  /** Milliseconds after which Postgres itself gives a statement up. */
  readonly statementTimeoutMs?: number;
  /** Shown in pg_stat_activity. */
  readonly applicationName?: string;
}

/** Connects lazily: nothing is opened before the first query. */
export function openStore(options: StoreOptions): Store {
  const role = DATABASE_ROLE[options.role];
  const client = () =>
    postgres(options.url, {
      max: options.connections ?? 4,
      connect_timeout: 5,
      idle_timeout: 60,
      onnotice: () => {},
      connection: {
        application_name: options.applicationName ?? `fleetbook ${options.role}`,
        TimeZone: 'UTC',
        ...(role === undefined ? {} : { role }),
        ...(options.statementTimeoutMs === undefined ? {} : { statement_timeout: options.statementTimeoutMs }),
      },
    });
  const sql = client();
  const drizzleClient = client();
  return {
    sql,
    db: drizzle(drizzleClient, { schema }),
    async [Symbol.asyncDispose]() {
      await Promise.all([sql.end({ timeout: 5 }), drizzleClient.end({ timeout: 5 })]);
    },
  };
}

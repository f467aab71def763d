import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { openSession, Pool, type Session, type Sql } from './client.ts';
import * as schema from './schema.ts';

export type { Session, SessionSql, Sql } from './client.ts';

/** `owner` migrates; `worker` writes for every organization; `reader` serves, and row-level security holds it. */
export type StoreRole = 'owner' | 'worker' | 'reader';

const DATABASE_ROLE: Record<StoreRole, string | undefined> = {
  owner: undefined,
  worker: 'fleetbook_worker',
  reader: 'fleetbook_reader',
};

export type Database = PostgresJsDatabase<typeof schema>;

/** Connections that all act in one role. `await using` closes them. */
export interface Store extends AsyncDisposable {
  /** For hot and set-based statements: postgres.js prepares and names them itself, one round trip each. */
  readonly sql: Sql;
  /** For everything else. Drizzle changes its client's date parsers, so it has a client of its own. Not to be kept. */
  readonly db: Database;
  /** A connection apart from the pool's; it opens when first used. */
  session(): Session;
  /** Leaves connections that nothing comes back on, e.g. after a failover that closed none, for new ones. */
  renew(): void;
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
  const client = {
    max: options.connections ?? 4,
    connect_timeout: 5,
    onnotice: () => {},
    connection: {
      application_name: options.applicationName ?? `fleetbook ${options.role}`,
      TimeZone: 'UTC',
      ...(role === undefined ? {} : { role }),
      ...(options.statementTimeoutMs === undefined ? {} : { statement_timeout: options.statementTimeoutMs }),
    },
  };
  const pool = new Pool(options.url, client, () => undefined);
  const drizzled = new Pool(options.url, client, (sql) => drizzle(sql, { schema }));
  return {
    sql: pool.sql,
    get db() {
      return drizzled.extra;
    },
    session: () => openSession(options.url, client),
    renew() {
      pool.renew();
      drizzled.renew();
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([pool[Symbol.asyncDispose](), drizzled[Symbol.asyncDispose]()]);
    },
  };
}

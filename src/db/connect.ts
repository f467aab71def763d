import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { Pool } from './client.ts';
import { clientOptions, openSqlStore, type SqlStore, type StoreOptions } from './open.ts';
import { LiveRuns } from './queries/live-runs.ts';
import * as schema from './schema.ts';

export type { Session, SessionSql, Sql } from './client.ts';
export type { StoreOptions, StoreRole } from './open.ts';

export type Database = PostgresJsDatabase<typeof schema>;

/** What writes has Drizzle as well. Readers do without: to load it takes longer than all the rest of them. */
export interface Store extends SqlStore {
  /** For everything that is neither hot nor set-based. Drizzle changes its client's date parsers, so it has a client of its own. Not to be kept. */
  readonly db: Database;
  /** The runs of this process. */
  readonly liveRuns: LiveRuns;
}

/** Connects lazily: nothing is opened before the first query. */
export function openStore(options: StoreOptions): Store {
  const plain = openSqlStore(options);
  const liveRuns = new LiveRuns(() => plain.session());
  const drizzled = new Pool(options.url, clientOptions(options), (sql) => drizzle(sql, { schema }));
  return {
    sql: plain.sql,
    get db() {
      return drizzled.extra;
    },
    liveRuns,
    session: () => plain.session(),
    renew() {
      plain.renew();
      drizzled.renew();
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([
        liveRuns[Symbol.asyncDispose](),
        plain[Symbol.asyncDispose](),
        drizzled[Symbol.asyncDispose](),
      ]);
    },
  };
}

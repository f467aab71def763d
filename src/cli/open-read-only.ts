import { databaseUrl, readSettings, type Settings } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import { openSqlStore, type SqlStore } from '../db/open.ts';

export interface ReadOnly extends AsyncDisposable {
  readonly settings: Settings;
  readonly sql: SqlStore['sql'];
}

/**
 * What a command that only reads needs: PostgreSQL alone. Redis may be away, and neither its client nor Drizzle nor an
 * adapter is loaded, so that the command answers at once (test/cli/read-only.test.ts).
 */
export function openReadOnly(env: Environment): ReadOnly {
  const settings = readSettings(env);
  // The reader's role sees one organization at a time; the worker's sees all of them.
  const store = openSqlStore({
    url: databaseUrl({ settings }),
    role: 'worker',
    connections: 2,
    statementTimeoutMs: settings.WRITE_STATEMENT_TIMEOUT * 1000,
  });
  return { settings, sql: store.sql, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
}

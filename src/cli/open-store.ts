import { databaseUrls, readSettings } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import { openStore, type Store } from '../db/connect.ts';

/** What a command needs that writes to PostgreSQL and publishes nothing: neither Redis nor an adapter is loaded. */
export function openStoreOnly(env: Environment): Store {
  const settings = readSettings(env);
  return openStore({
    ...databaseUrls({ settings }),
    role: 'worker',
    connections: 1,
    statementTimeoutMs: settings.WRITE_STATEMENT_TIMEOUT * 1000,
  });
}

import { databaseUrls, readSettings } from '../../config/settings.ts';
import type { Environment } from '../../config/source-config.ts';
import { openStore } from '../../db/connection/connect.ts';

/** Opens PostgreSQL for a command that publishes nothing. The worker's role sees every organization's rows. */
export function openDatabase(env: Environment) {
  const settings = readSettings(env);
  const store = openStore({
    ...databaseUrls({ settings }),
    role: 'worker',
    connections: 2,
    statementTimeoutMs: settings.WRITE_STATEMENT_TIMEOUT * 1000,
  });
  return { ...store, settings };
}

import { FEATURE_CONFIG } from '../app/feature-settings.ts';
import { type Environment, readConfig } from '../config/config.ts';
import { databaseUrls } from '../config/settings.ts';
import { describeDatabase } from '../db/connection/server-problem.ts';
import { migrate } from '../db/migration/migrate.ts';
import { type DeciderOptions, decider } from './terminal/arguments.ts';
import { print, printAside, printJson, printText } from './terminal/print.ts';
import { wrapped } from './terminal/table.ts';

export async function migrateCommand(
  env: Environment,
  options: DeciderOptions & { json?: boolean } = {},
): Promise<void> {
  const config = readConfig(env, FEATURE_CONFIG);
  const { directUrl: url } = databaseUrls(config);
  const { applied, isLater } = await migrate(url, {
    decider: decider(config, options),
    notify: (line) => printAside(`fleetbook: ${line}`),
  });
  const where = describeDatabase(url);
  if (options.json) printJson({ migrated: true, applied, isLater, database: where });
  else if (isLater)
    print(`${where} has migrations of a later release than this one: nothing was done; update Fleetbook`);
  else if (applied.length === 0) print(`${where} is up to date: nothing to do`);
  else {
    const names = applied.join(', ');
    const migrations = applied.length === 1 ? 'migration' : 'migrations';
    printText(wrapped(`${where}: applied ${applied.length} ${migrations}: ${names}`, 80));
  }
}

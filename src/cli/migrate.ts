import { type Environment, readConfig } from '../config.ts';
import { databaseUrl } from '../connections.ts';
import { migrate } from '../store/migrate.ts';
import { printJson } from './table.ts';

export async function migrateCommand(env: Environment, options: { json?: boolean } = {}): Promise<void> {
  await migrate(databaseUrl(readConfig(env)));
  if (options.json) printJson({ migrated: true });
  else console.log('the database is up to date');
}

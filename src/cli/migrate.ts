import { databaseUrl } from '../compose.ts';
import { type Environment, readConfig } from '../config.ts';
import { migrate } from '../store/migrate.ts';

export async function migrateCommand(env: Environment): Promise<void> {
  await migrate(databaseUrl(readConfig(env)));
  console.log('the database is up to date');
}

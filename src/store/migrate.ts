import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate as applyMigrations } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { inPackage } from '../package.ts';

// Any number that no other program uses as an advisory lock; per database.
const MIGRATION_LOCK = 7_155_237;

/** Brings the database to this release's schema. Safe to call from several processes at once: they take turns. */
export async function migrate(url: string): Promise<void> {
  const client = postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 10 });
  try {
    await client`select pg_advisory_lock(${MIGRATION_LOCK})`;
    await applyMigrations(drizzle(client), { migrationsFolder: inPackage('drizzle') });
  } finally {
    await client.end({ timeout: 5 });
  }
}

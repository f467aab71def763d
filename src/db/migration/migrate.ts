import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { inPackage } from '../../config/package.ts';
import type { Decider } from '../../domain/operator.ts';
import { audit } from '../audit.ts';
import { type Database, openConnection } from '../connection/client.ts';
import { sql } from '../connection/drizzle.ts';
import { only } from '../connection/statements.ts';
import { applyMigration, LOCK_PATIENCE, type LockPatience, type Migration } from './apply-migration.ts';

// Advisory locks belong to one database. No other program may use the number.
const MIGRATION_LOCK = 7_155_237;

export interface MigrateOptions {
  /** Written into the audit log after the migrations, since they may create the log. */
  readonly decider?: Decider | undefined;
  readonly notify?: (line: string) => void;
  readonly patience?: LockPatience;
  readonly folder?: string;
}

/**
 * Migrates the database to this release while another release reads and writes. Each migration is one transaction: after a failure
 * the earlier ones stay, and the next call continues with the failed one. Concurrent processes take turns.
 * @throws MigrationFailed, and errors of the connection
 */
export async function migrate(url: string, options: MigrateOptions = {}) {
  const { decider, notify = () => {}, patience = LOCK_PATIENCE, folder = inPackage('drizzle') } = options;
  await using connection = openConnection(url, { onnotice: () => {}, connect_timeout: 10 });
  const { db } = connection;
  await takeTurn(db, notify);
  await db.execute(sql`create schema if not exists drizzle`);
  await db.execute(sql`
    create table if not exists drizzle.__drizzle_migrations
      (id serial primary key, hash text not null, created_at bigint)`);
  const before = await lastApplied(db);
  const known = migrationsIn(folder);
  const applied: string[] = [];
  for (const migration of known) {
    if (migration.folderMillis <= before) continue;
    await applyMigration(db, migration, patience, notify);
    applied.push(migration.tag);
  }
  if (decider && applied.length > 0) {
    const subject = { kind: 'database', id: applied.at(-1) ?? '' };
    await audit(db, decider, { action: 'database.migrate', subject, details: { applied } });
  }
  return { applied, isLater: before > (known.at(-1)?.folderMillis ?? 0) };
}

/** Waits for other processes. The lock ends with the connection. */
async function takeTurn(db: Database, notify: (line: string) => void): Promise<void> {
  const turn = await db.execute<{ isMine: boolean }>(
    sql`select pg_try_advisory_lock(${MIGRATION_LOCK}) as "isMine"`,
  );
  if (only(turn).isMine) return;
  notify('another process migrates this database: waiting for its end');
  await db.execute(sql`select pg_advisory_lock(${MIGRATION_LOCK})`);
}

/** Returns the names of missing migrations in order, and whether a later release has migrated the database. */
export async function migrationState(url: string) {
  await using connection = openConnection(url, { onnotice: () => {}, connect_timeout: 5 });
  const last = await lastApplied(connection.db);
  const known = journalOf(inPackage('drizzle'));
  return {
    pending: known.filter(({ when }) => when > last).map(({ tag }) => tag),
    isLater: last > (known.at(-1)?.when ?? 0),
  };
}

/** Returns the time (ms) that identifies the last applied migration; 0 before the first one. */
async function lastApplied(db: Database): Promise<number> {
  const table = await db.execute<{ exists: boolean }>(
    sql`select to_regclass('drizzle.__drizzle_migrations') is not null as exists`,
  );
  if (!only(table).exists) return 0;
  const row = await db.execute<{ last: number | null }>(
    sql`select max(created_at)::float8 as last from drizzle.__drizzle_migrations`,
  );
  return only(row).last ?? 0;
}

function journalOf(folder: string): readonly { readonly tag: string; readonly when: number }[] {
  const journal = readFileSync(join(folder, 'meta', '_journal.json'), 'utf8');
  return (JSON.parse(journal) as { entries: { tag: string; when: number }[] }).entries;
}

function migrationsIn(folder: string): Migration[] {
  const tags = new Map(journalOf(folder).map(({ when, tag }) => [when, tag]));
  return readMigrationFiles({ migrationsFolder: folder }).map((migration) => ({
    ...migration,
    tag: tags.get(migration.folderMillis) ?? String(migration.folderMillis),
  }));
}

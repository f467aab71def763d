import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import type postgres from 'postgres';
import { inPackage } from '../../config/package.ts';
import type { Decider } from '../../domain/operator.ts';
import { audit } from '../audit.ts';
import { openClient } from '../connection/client.ts';
import { drizzle } from '../connection/drizzle.ts';
import * as schema from '../schema.ts';
import { applyMigration, LOCK_PATIENCE, type LockPatience, type Migration } from './apply-migration.ts';

// Any number that no other program uses as an advisory lock; per database.
const MIGRATION_LOCK = 7_155_237;

export interface Migrated {
  /** Names of the migrations that were applied by this call, in their order. */
  readonly applied: readonly string[];
  /** The database has a migration that this release does not know: a later release has migrated it. */
  readonly isLater: boolean;
}

export interface MigrateOptions {
  /** Who asks for it: what was applied is written into the audit log, after it, since the log itself may be new. */
  readonly decider?: Decider | undefined;
  /** Hears why it takes longer than it should, a line each. */
  readonly tell?: (line: string) => void;
  readonly patience?: LockPatience;
  /** Where the migrations are; those of this release unless given. */
  readonly folder?: string;
}

/**
 * Brings the database to this release's schema, while another release goes on reading and writing. Each migration is a
 * transaction of its own: after a failure those before it stay, and the next call goes on with the one that failed. Safe to
 * call from several processes at once: they take turns.
 * @throws MigrationFailed · whatever a connection fails with
 */
export async function migrate(url: string, options: MigrateOptions = {}): Promise<Migrated> {
  const { decider, tell = () => {}, patience = LOCK_PATIENCE, folder = inPackage('drizzle') } = options;
  const client = openClient(url, { onnotice: () => {}, connect_timeout: 10, patienceMs: 10_000 });
  try {
    await takeTurn(client, tell);
    await client`create schema if not exists drizzle`;
    await client`
      create table if not exists drizzle.__drizzle_migrations
        (id serial primary key, hash text not null, created_at bigint)`;
    const before = await lastApplied(client);
    const known = migrationsIn(folder);
    const applied: string[] = [];
    for (const migration of known) {
      if (migration.folderMillis <= before) continue;
      await applyMigration(client, migration, patience, tell);
      applied.push(migration.tag);
    }
    if (decider && applied.length > 0) {
      const subject = { kind: 'database', id: applied.at(-1) ?? '' };
      const db = drizzle(client, { schema });
      await audit(db, decider, { action: 'database.migrate', subject, details: { applied } });
    }
    return { applied, isLater: before > (known.at(-1)?.folderMillis ?? 0) };
  } finally {
    await client.end({ timeout: 5 });
  }
}

/** One process at a time. The lock is the connection's, and goes with it. */
async function takeTurn(client: postgres.Sql, tell: (line: string) => void): Promise<void> {
  const [turn] = await client`select pg_try_advisory_lock(${MIGRATION_LOCK}) as is_mine`;
  if (turn?.is_mine) return;
  tell('another process migrates this database: waiting until it has ended');
  await client`select pg_advisory_lock(${MIGRATION_LOCK})`;
}

/** How a database stands to this release, without changing anything. */
export interface MigrationState {
  /** Names of the migrations that are to be applied, in their order. */
  readonly pending: readonly string[];
  readonly isLater: Migrated['isLater'];
}

export async function migrationState(url: string): Promise<MigrationState> {
  const client = openClient(url, { onnotice: () => {}, connect_timeout: 5 });
  try {
    const last = await lastApplied(client);
    const known = journalOf(inPackage('drizzle'));
    return {
      pending: known.filter(({ when }) => when > last).map(({ tag }) => tag),
      isLater: last > (known.at(-1)?.when ?? 0),
    };
  } finally {
    await client.end({ timeout: 5 });
  }
}

/** Drizzle knows a migration by the time at which it was made, in milliseconds; 0 before the first one. */
async function lastApplied(client: postgres.Sql): Promise<number> {
  const [exists] = await client`select to_regclass('drizzle.__drizzle_migrations') is not null as is`;
  if (!exists?.is) return 0;
  const [row] = await client`select max(created_at)::float8 as last from drizzle.__drizzle_migrations`;
  return (row?.last as number | null) ?? 0;
}

function journalOf(folder: string): readonly { readonly tag: string; readonly when: number }[] {
  const journal = readFileSync(join(folder, 'meta', '_journal.json'), 'utf8');
  return (JSON.parse(journal) as { entries: { tag: string; when: number }[] }).entries;
}

/** In their order. */
function migrationsIn(folder: string): Migration[] {
  const tags = new Map(journalOf(folder).map(({ when, tag }) => [when, tag]));
  return readMigrationFiles({ migrationsFolder: folder }).map((migration) => ({
    ...migration,
    tag: tags.get(migration.folderMillis) ?? String(migration.folderMillis),
  }));
}

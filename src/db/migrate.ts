import { readFileSync } from 'node:fs';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate as applyMigrations } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { inPackage } from '../config/package.ts';
import type { Decider } from '../domain/operator.ts';
import { audit } from './queries/audit.ts';
import * as schema from './schema.ts';

// Any number that no other program uses as an advisory lock; per database.
const MIGRATION_LOCK = 7_155_237;

export interface Migrated {
  /** Names of the migrations that were applied, in their order. */
  readonly applied: readonly string[];
  /** The database has a migration that this release does not know: a later release has migrated it. */
  readonly isLater: boolean;
}

/**
 * Brings the database to this release's schema. Safe to call from several processes at once: they take turns.
 * @param decider the person who asks for it: what was applied is written into the audit log, after it, since the log
 *   itself may be new
 */
export async function migrate(url: string, decider?: Decider): Promise<Migrated> {
  const client = postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 10 });
  try {
    await client`select pg_advisory_lock(${MIGRATION_LOCK})`;
    const before = await lastApplied(client);
    const db = drizzle(client, { schema });
    await applyMigrations(db, { migrationsFolder: inPackage('drizzle') });
    const known = knownMigrations();
    const applied = known.filter(({ when }) => when > before).map(({ tag }) => tag);
    if (decider && applied.length > 0) {
      const subject = { kind: 'database', id: applied.at(-1) ?? '' };
      await audit(db, decider, { action: 'database.migrate', subject, details: { applied } });
    }
    return { applied, isLater: before > (known.at(-1)?.when ?? 0) };
  } finally {
    await client.end({ timeout: 5 });
  }
}

/** How a database stands to this release, without changing anything. */
export interface MigrationState {
  /** Names of the migrations that are to be applied, in their order. */
  readonly pending: readonly string[];
  readonly isLater: Migrated['isLater'];
}

export async function migrationState(url: string): Promise<MigrationState> {
  const client = postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 5 });
  try {
    const last = await lastApplied(client);
    const known = knownMigrations();
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

function knownMigrations(): readonly { readonly tag: string; readonly when: number }[] {
  const journal = readFileSync(inPackage('drizzle', 'meta', '_journal.json'), 'utf8');
  return (JSON.parse(journal) as { entries: { tag: string; when: number }[] }).entries;
}

/** Applies one migration while another release reads and writes. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { MigrationMeta } from 'drizzle-orm/migrator';
import { messageOf, PlainFailure } from '../../domain/errors.ts';
import { type ClientDatabase, type Database, transactionOn } from '../connection/client.ts';
import { sql } from '../connection/drizzle.ts';
import { codeOf } from '../connection/errors.ts';

export interface Migration extends MigrationMeta {
  readonly tag: string;
}

export interface LockPatience {
  /** `lock_timeout` (ms). Later statements on the table wait behind the migration. */
  readonly lockTimeoutMs: number;
  readonly giveUpAfterMs: number;
}

/** Shorter than a reader's deadline, even for several tables. */
export const LOCK_PATIENCE: LockPatience = { lockTimeoutMs: 500, giveUpAfterMs: 300_000 };

/** Time between two attempts (ms). In this time other statements get their locks. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5000;

/** SQLSTATE `lock_not_available` and `deadlock_detected`. */
const LOCKED = new Set(['55P03', '40P01']);

class MigrationFailed extends PlainFailure {
  override readonly name = 'MigrationFailed';
  readonly migration: string;

  constructor(migration: string, why: string, cause: unknown) {
    super(
      `the migration ${migration} ${why}; it changed nothing, the migrations before it are applied, and the previous ` +
        'release still works: correct the cause and run `fleetbook migrate` again',
      { cause },
    );
    this.migration = migration;
  }
}

/** Applies a migration in one transaction. It waits briefly for locks and repeats. @param notify called once @throws MigrationFailed */
export async function applyMigration(
  db: ClientDatabase,
  migration: Migration,
  patience: LockPatience,
  notify: (line: string) => void,
): Promise<void> {
  const began = performance.now();
  let isNotified = false;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(LONGEST_PAUSE_MS, pause * 1.5)) {
    try {
      await applyOnce(db, migration, patience.lockTimeoutMs);
      return;
    } catch (error) {
      if (!LOCKED.has(codeOf(error) ?? ''))
        throw new MigrationFailed(migration.tag, `failed: ${messageOf(error)}`, error);
      const seconds = Math.round((performance.now() - began) / 1000);
      if (performance.now() - began >= patience.giveUpAfterMs)
        throw new MigrationFailed(
          migration.tag,
          `got no lock for ${seconds} s: ${await oldestTransactions(db)}`,
          error,
        );
      if (!isNotified)
        notify(`the migration ${migration.tag} waits for a lock: ${await oldestTransactions(db)}`);
      isNotified = true;
      await sleep(pause);
    }
  }
}

async function applyOnce(db: ClientDatabase, migration: Migration, lockTimeoutMs: number): Promise<void> {
  await transactionOn(db, async (tx) => {
    await tx.execute(sql`
      select set_config('lock_timeout', ${`${lockTimeoutMs}ms`}, true), set_config('statement_timeout', '0', true),
        set_config('jit', 'off', true)`);
    for (const statement of migration.sql) await tx.execute(sql.raw(statement));
    await tx.execute(sql`
      insert into drizzle.__drizzle_migrations (hash, created_at)
      values (${migration.hash}, ${migration.folderMillis})`);
  });
}

/** Describes the oldest transactions: a lock that is held for long belongs to one of them. */
async function oldestTransactions(db: Database): Promise<string> {
  const statement = sql`
    select concat_ws(' ', 'process', pid, 'of', coalesce(usename::text, backend_type), nullif('(' || application_name || ')', '()')) as who,
      coalesce(state, 'active') as state, extract(epoch from clock_timestamp() - xact_start)::int as seconds
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
    order by xact_start limit 3`;
  const found = await db.execute<{ who: string; state: string; seconds: number }>(statement).catch(() => []);
  if (found.length === 0) return 'no open transaction holds it any more';
  const shown = found.map(({ who, state, seconds }) => `${who}, ${state}, for ${seconds} s`);
  return `the oldest open transactions are ${shown.join('; ')}`;
}

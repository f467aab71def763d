/** One migration, applied beside a release that goes on reading and writing. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { MigrationMeta } from 'drizzle-orm/migrator';
import type postgres from 'postgres';
import { messageOf } from '../../lib/driver-error.ts';
import { PlainFailure } from '../../lib/plain-failure.ts';
import { codeOf } from '../connection/errors.ts';

export interface Migration extends MigrationMeta {
  /** As in the journal, e.g. `0013_changes`. */
  readonly tag: string;
}

export interface LockPatience {
  /** Milliseconds that a statement waits for a lock. Whoever asks for the table meanwhile waits behind it. */
  readonly lockTimeoutMs: number;
  /** Milliseconds after which a migration that does not get its locks is given up. */
  readonly giveUpAfterMs: number;
}

/** Short enough for a reader's deadline, also where a migration locks several tables. */
export const LOCK_PATIENCE: LockPatience = { lockTimeoutMs: 500, giveUpAfterMs: 300_000 };

/** Milliseconds between two attempts: so long everybody who had to wait has the tables for themselves. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5000;

/** A lock was not had in time; or two wait for each other. */
const LOCKED = new Set(['55P03', '40P01']);

/** What was applied before it stays applied, nothing of it is, and the release that ran before can go on running. */
class MigrationFailed extends PlainFailure {
  override readonly name = 'MigrationFailed';
  /** Its name, e.g. `0013_changes`. */
  readonly migration: string;

  constructor(migration: string, why: string, cause: unknown) {
    super(
      `the migration ${migration} ${why}; nothing of it was applied, those before it are, and the release that ran ` +
        'until now can go on running: mend the cause and run `fleetbook migrate` again',
      { cause },
    );
    this.migration = migration;
  }
}

/**
 * Applies one migration in a transaction of its own. A lock is waited for only briefly, again and again, since a table
 * that is waited for is locked for everybody who comes later.
 * @param tell hears, once, who keeps the migration waiting
 * @throws MigrationFailed
 */
export async function applyMigration(
  client: postgres.Sql,
  migration: Migration,
  patience: LockPatience,
  tell: (line: string) => void,
): Promise<void> {
  const began = performance.now();
  let isTold = false;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(LONGEST_PAUSE_MS, pause * 1.5)) {
    try {
      await applyOnce(client, migration, patience.lockTimeoutMs);
      return;
    } catch (error) {
      if (!LOCKED.has(codeOf(error) ?? ''))
        throw new MigrationFailed(migration.tag, `failed: ${messageOf(error)}`, error);
      const seconds = Math.round((performance.now() - began) / 1000);
      if (performance.now() - began >= patience.giveUpAfterMs)
        throw new MigrationFailed(
          migration.tag,
          `got no lock for ${seconds} s: ${await oldestTransactions(client)}`,
          error,
        );
      if (!isTold)
        tell(`the migration ${migration.tag} waits for a lock: ${await oldestTransactions(client)}`);
      isTold = true;
      await sleep(pause);
    }
  }
}

async function applyOnce(client: postgres.Sql, migration: Migration, lockTimeoutMs: number): Promise<void> {
  await client.begin(async (sql) => {
    await sql`
      select set_config('lock_timeout', ${`${lockTimeoutMs}ms`}, true), set_config('statement_timeout', '0', true),
        set_config('jit', 'off', true)`;
    for (const statement of migration.sql) await sql.unsafe(statement);
    await sql`
      insert into drizzle.__drizzle_migrations (hash, created_at)
      values (${migration.hash}, ${migration.folderMillis})`;
  });
}

/** Whoever holds a lock for long has a transaction that is as old. */
async function oldestTransactions(client: postgres.Sql): Promise<string> {
  const found = await client<{ who: string; state: string; seconds: number }[]>`
    select concat_ws(' ', 'process', pid, 'of', coalesce(usename::text, backend_type), nullif('(' || application_name || ')', '()')) as who,
      coalesce(state, 'active') as state, extract(epoch from clock_timestamp() - xact_start)::int as seconds
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
    order by xact_start limit 3`.catch(() => []);
  if (found.length === 0) return 'no transaction is open any more that would hold one';
  const shown = found.map(({ who, state, seconds }) => `${who}, ${state}, for ${seconds} s`);
  return `the oldest open transactions are ${shown.join('; ')}`;
}

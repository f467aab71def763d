import type { Sql } from '../../src/db/connection/connect.ts';
import { until } from './until.ts';

/**
 * Returns the number of statements of this database that wait for a lock. @param sql connection of a role that may
 * see others' statements
 */
export async function waitingForLocks(sql: Sql): Promise<number> {
  const waiting = await sql`
    select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  return waiting.count;
}

/** Waits until this many statements of this database wait for a lock. @param sql as for `waitingForLocks` */
export async function untilWaiting(sql: Sql, count: number): Promise<void> {
  await until(async () => (await waitingForLocks(sql)) === count, {
    what: `${count} statements that wait for a lock`,
  });
}

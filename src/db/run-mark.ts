/**
 * A run that is under way is marked by an advisory lock, see sync/live-runs.ts. Text, since readers' statements and
 * Drizzle's take it alike.
 */

/** The key of the lock of a run, whose id is given as SQL. */
export const markOf = (id: string): string => `hashtextextended('fleetbook run ' || ${id}, 0)`;

/** Of a run `r` that is recorded as running: whether some process has marked it as under way. */
export const IS_UNDER_WAY = `exists (
  select from pg_locks l
  where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and (l.classid::bigint << 32 | l.objid::bigint) = ${markOf('r.id')})`;

/** What is recorded of a run whose process ended before it was done. */
export const INTERRUPTED = 'interrupted: the process that ran it ended before it was done';

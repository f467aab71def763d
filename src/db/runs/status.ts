/** The status of a run: an open run whose process has ended is interrupted. */
import { instantText } from '../connection/statements.ts';
import type { syncRuns } from '../schema.ts';

type Stored = typeof syncRuns.$inferSelect;
type Counts = Pick<Stored, 'seen' | 'added' | 'changed' | 'retired' | 'rejected' | 'withdrawn'>;

/** Times are RFC 3339. Counts are null while the run is live, and for a failed run. */
export interface RunStatus extends Readonly<Counts & Pick<Stored, 'startedAt' | 'finishedAt' | 'error'>> {
  readonly outcome: string;
}

/** Returns the key of the advisory lock of a live run, as SQL. @param id SQL for the run's id, as text */
export const lockKeyOf = (id: string): string => `hashtextextended('fleetbook run ' || ${id}, 0)`;

/** SQL for a run `r` with the outcome `running`: whether a process holds its lock. */
export const IS_LIVE = `exists (
  select from pg_locks l
  where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and (l.classid::bigint << 32 | l.objid::bigint) = ${lockKeyOf('r.id')})`;

export const INTERRUPTED = 'interrupted: the process that ran it ended before it was done';

const IS_INTERRUPTED = `(r.outcome = 'running' and not ${IS_LIVE})`;

/** SQL for the outcome and the error of a run `r`. */
export const RUN_OUTCOME = `case when ${IS_INTERRUPTED} then 'interrupted' else r.outcome end`;
export const RUN_ERROR = `case when ${IS_INTERRUPTED} then '${INTERRUPTED}' else r.error end`;

/** SQL for the fields of the `RunStatus` of a run `r`, for `json_build_object`. */
export const STATUS_FIELDS = `
  'startedAt', ${instantText('r.started_at', 's')}, 'finishedAt', ${instantText('r.finished_at', 's')},
  'outcome', ${RUN_OUTCOME}, 'seen', r.seen, 'added', r.added, 'changed', r.changed, 'retired', r.retired,
  'rejected', r.rejected, 'withdrawn', r.withdrawn, 'error', ${RUN_ERROR}`;

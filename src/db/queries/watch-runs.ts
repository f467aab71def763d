/** What watched sources leave in the list of runs, which states that come by the second must not fill. */
import type { Sql } from '../connect.ts';

/** Runs of each source that are kept; older ones go, but for those that a held batch comes from. */
const RUNS_KEPT = 2000;

/** Records that a source could not be watched. It raises no fence: a run that is under way goes on. */
export async function recordFailedWatch(sql: Sql, sourceId: string, error: string): Promise<void> {
  await sql`
    insert into sync_runs (source_id, fence, finished_at, outcome, error)
    select id, fence, clock_timestamp(), 'failed', ${error} from sources where id = ${sourceId}`;
}

/** After a state that changed nothing: of all that changed nothing and no schedule asked for, only the last run stays. */
export async function foldUnchanged(sql: Sql, sourceId: string): Promise<void> {
  await sql`
    delete from sync_runs r
    where r.source_id = ${sourceId} and r.slot is null and r.outcome in ('unchanged', 'superseded')
      and r.id < (select max(n.id) from sync_runs n where n.source_id = ${sourceId})`;
}

/** Forgets all but the newest runs of each source, and held batches that a younger one superseded a week ago. */
export async function pruneRuns(sql: Sql): Promise<void> {
  await sql`
    delete from held_batches where status = 'superseded' and decided_at < now() - interval '7 days'`;
  await sql`
    delete from sync_runs r using (
      select s.id, (
        select k.id from sync_runs k where k.source_id = s.id order by k.id desc offset ${RUNS_KEPT - 1} limit 1) as oldest
      from sources s
    ) kept
    where r.source_id = kept.id and r.id < kept.oldest
      and not exists (select from held_batches b where b.run_id = r.id)`;
}

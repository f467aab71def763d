/** Runs counted in equal steps of time, for the charts of the console. */
import type { Sql } from '../client.ts';

/** Equal steps of time. */
export interface Steps {
  /** Start of the first step, seconds since 1970. */
  readonly from: number;
  /** Seconds of a step. */
  readonly step: number;
  readonly steps: number;
}

/** The runs that ended in one step. */
export interface RunStep {
  /** From 0. */
  readonly index: number;
  /** Runs by outcome. */
  readonly changed: number;
  readonly unchanged: number;
  readonly held: number;
  /** Runs that failed, and runs whose process ended. */
  readonly failed: number;
  /** Seconds of the runs that read their source; null where none did. */
  readonly median: number | null;
  readonly longest: number | null;
  /** Rows that the runs stored. */
  readonly rowsAdded: number;
  readonly rowsChanged: number;
  readonly rowsRetired: number;
}

/** Returns each step with ended runs. A run of more than an hour may be missing from the first steps. */
export async function runSteps(sql: Sql, { from, step, steps }: Steps): Promise<RunStep[]> {
  // Ids rise with time. Reading them backwards visits only the runs of the window, without an index on time.
  const [older] = await sql<{ id: number }[]>`
    select id::float8 as id from sync_runs where started_at < to_timestamp(${from}) - interval '1 hour'
    order by id desc limit 1`;
  return sql<RunStep[]>`
    select floor((extract(epoch from finished_at) - ${from}) / ${step})::int as index,
      count(*) filter (where outcome = 'changed')::int as changed,
      count(*) filter (where outcome = 'unchanged')::int as unchanged,
      count(*) filter (where outcome = 'held')::int as held,
      count(*) filter (where outcome in ('failed', 'interrupted'))::int as failed,
      percentile_cont(0.5) within group (order by extract(epoch from finished_at - started_at))
        filter (where outcome in ('changed', 'unchanged', 'held')) as median,
      max(extract(epoch from finished_at - started_at))
        filter (where outcome in ('changed', 'unchanged', 'held'))::float8 as longest,
      coalesce(sum(added) filter (where outcome = 'changed'), 0)::float8 as "rowsAdded",
      coalesce(sum(changed) filter (where outcome = 'changed'), 0)::float8 as "rowsChanged",
      coalesce(sum(retired) filter (where outcome = 'changed'), 0)::float8 as "rowsRetired"
    from sync_runs
    where id > ${older?.id ?? 0} and finished_at >= to_timestamp(${from})
      and finished_at < to_timestamp(${from + step * steps})
    group by 1`;
}

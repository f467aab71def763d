/** The last runs of every source at a glance. */
import type { Sql } from '../client.ts';
import { IS_UNDER_WAY } from '../run-mark.ts';

export interface StripRun {
  readonly id: number;
  /** RFC 3339. */
  readonly startedAt: string;
  /** As `RunStatus.outcome`. */
  readonly outcome: string;
}

export interface SourceStrip {
  readonly id: string;
  /** Oldest first. */
  readonly runs: readonly StripRun[];
  /** When the last run began that stored a change, RFC 3339; null when none of those that are kept did. */
  readonly changedAt: string | null;
}

/** @param perSource runs of each source, at most */
export async function sourceStrips(sql: Sql, perSource: number): Promise<SourceStrip[]> {
  return sql<SourceStrip[]>`
    select s.id,
      (select coalesce(json_agg(json_build_object(
          'id', r.id,
          'startedAt', to_char(r.started_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
          'outcome', case when r.outcome = 'running' and not ${sql.unsafe(IS_UNDER_WAY)} then 'interrupted'
            else r.outcome end) order by r.id), '[]')
        from (select * from sync_runs x where x.source_id = s.id order by x.id desc limit ${perSource}) r) as runs,
      (select to_char(c.started_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') from sync_runs c
        where c.source_id = s.id and c.outcome = 'changed' order by c.id desc limit 1) as "changedAt"
    from sources s order by s.id collate "C"`;
}

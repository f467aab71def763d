import type { Sql } from '../client.ts';

/**
 * A text that is another one as soon as a run has begun or ended, a batch was held or decided about, a person has changed
 * something, an alert has opened or resolved, or a message was sent. It says nothing by itself: who shows these things
 * compares it with the last one. It costs one index lookup a source, and those of what is open or waits.
 */
export async function activityMark(sql: Sql): Promise<string> {
  const [row] = await sql<{ mark: string }[]>`
    select md5(concat_ws(',',
      (select string_agg(concat_ws(':', s.id, s.fence, s.retired_at, s.disabled_at, r.id, r.outcome), ',' order by s.id)
        from sources s left join lateral (
          select x.id, x.outcome from sync_runs x where x.source_id = s.id order by x.id desc limit 1
        ) r on true),
      (select string_agg(concat_ws(':', b.id, b.status, b.decided_at, b.undone_at), ',' order by b.id)
        from held_batches b where b.status <> 'superseded'),
      (select max(id) from audit_log),
      (select string_agg(concat_ws(':', a.id, a.told_at), ',' order by a.id) from alerts a where a.resolved_at is null),
      (select max(id) from alert_deliveries),
      (select concat_ws(':', count(*), sum(d.attempts)) from alert_deliveries d
        where d.delivered_at is null and d.gave_up_at is null))) as mark`;
  if (!row) throw new Error('unreachable: one row is selected');
  return row.mark;
}

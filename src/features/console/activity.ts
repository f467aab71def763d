import type { OpenAlerts } from '../../app/feature.ts';
import type { Sql } from '../../db/connection/client.ts';

/**
 * Returns a text that changes when a run begins or ends, a batch is held or decided, an operator changes something, or an alert
 * changes. The console compares it with the previous one. It costs one index lookup per source.
 */
export async function activityMark(sql: Sql, alerts: OpenAlerts): Promise<string> {
  const [[row], ofAlerts] = await Promise.all([
    sql<{ mark: string }[]>`
      select md5(concat_ws(',',
        (select string_agg(concat_ws(':', s.id, s.fence, s.retired_at, s.disabled_at, r.id, r.outcome), ',' order by s.id)
          from sources s left join lateral (
            select x.id, x.outcome from sync_runs x where x.source_id = s.id order by x.id desc limit 1
          ) r on true),
        (select string_agg(concat_ws(':', b.id, b.status, b.decided_at, b.undone_at), ',' order by b.id)
          from held_batches b where b.status <> 'superseded'),
        (select max(id) from audit_log))) as mark`,
    alerts.activity(sql),
  ]);
  return `${row?.mark} ${ofAlerts}`;
}

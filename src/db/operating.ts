/** What an operator has to look after, in numbers. */
import type { Sql } from './connection/client.ts';

export interface SourceTrouble {
  readonly id: string;
  /** Runs that failed, or whose process died, since the last run that did not: 0 where the last one that ended did well. */
  readonly failedRuns: number;
  /** Since when a batch of the source waits for a decision, RFC 3339; null where none does. */
  readonly heldSince: string | null;
}

/** What is wrong with every source that ever ran. */
export async function sourceTroubles(sql: Sql): Promise<SourceTrouble[]> {
  return sql<SourceTrouble[]>`
    select s.id,
      (select count(*)::int from sync_runs r
        where r.source_id = s.id and r.outcome in ('failed', 'interrupted') and r.id > coalesce((
          select well.id from sync_runs well
          where well.source_id = s.id and well.outcome in ('changed', 'unchanged', 'held')
          order by well.id desc limit 1), 0)) as "failedRuns",
      (select to_char(min(h.held_since) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') from held_batches h
        where h.source_id = s.id and h.status = 'pending') as "heldSince"
    from sources s order by s.id collate "C"`;
}

/** Documents whose published version is behind their version, by kind. */
export interface DirtyDocuments {
  readonly token: number;
  readonly clusters: number;
  readonly region: number;
  readonly providers: number;
}

/** What waits for publication or for a decision. */
export interface Backlog {
  /** Documents whose published version is behind their version. */
  readonly documents: number;
  /** When the alert `publication_behind` opened, RFC 3339; null while it is not open. */
  readonly behindSince: string | null;
  /** Held batches without a decision. */
  readonly batches: number;
  /** Since when the oldest of them is held, RFC 3339; null where there is none. */
  readonly oldestBatch: string | null;
}

/** Returns what waits now. PostgreSQL does not record since when a document waits, only since when too many do. */
export async function backlog(sql: Sql): Promise<Backlog> {
  const dirty = await dirtyDocumentCounts(sql);
  const documents = Object.values(dirty).reduce((sum: number, count: number) => sum + count, 0);
  const [row] = await sql<[Omit<Backlog, 'documents'>]>`
    select
      (select to_char(min(opened_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') from alerts
        where kind = 'publication_behind' and resolved_at is null) as "behindSince",
      count(*)::int as batches,
      to_char(min(held_since) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "oldestBatch"
    from held_batches where status = 'pending'`;
  return { documents, ...row };
}

/** How much of what is stored readers cannot see yet. */
export async function dirtyDocumentCounts(sql: Sql): Promise<DirtyDocuments> {
  const [row] = await sql<[DirtyDocuments]>`
    select
      (select count(*)::int from tokens where published_version < version) as token,
      (select count(*)::int from organizations where published_version < clusters_version) as clusters,
      (select count(*)::int from regions where published_version < version and organization_id is null) as region,
      (select count(*)::int from lineage where providers_published_version < providers_version) as providers`;
  return row;
}

/** The job of the house that the clock of every worker makes due each minute. */
export const EVERY_MINUTE = 'publish-sweep';

/** When any worker has claimed a slot that is due every minute, RFC 3339; undefined where none ever ran. */
export async function lastWorkerSign(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<{ at: string | null }[]>`
    select to_char(max(claimed_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as at
    from schedule_slots where schedule = ${EVERY_MINUTE}`;
  return row?.at ?? undefined;
}

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

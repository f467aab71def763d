/** The backlog of held batches, and what happened to one of them. */
import type { Database } from '../../../db/connection/client.ts';
import { sql } from '../../../db/connection/drizzle.ts';
import { only, type RowOf, rfc3339 } from '../../../db/connection/statements.ts';

/** Returns the number of pending batches, and since when the oldest is held (RFC 3339). */
export async function pendingBacklog(db: Database): Promise<{ batches: number; oldest: string | null }> {
  const rows = await db.execute<RowOf<{ batches: number; oldest: string | null }>>(sql`
    select count(*)::int as batches, ${rfc3339(sql`min(held_since)`)} as oldest
    from held_batches where status = 'pending'`);
  return only(rows);
}

/** Runs and batches that concern a batch; null for those that do not exist or are deleted. */
export interface BatchTrail {
  readonly heldBy: number | null;
  /** The run that stored it, and the run that restored the state before. */
  readonly storedBy: number | null;
  readonly undoneBy: number | null;
  /** The run that superseded it, with its outcome. */
  readonly replacedBy: { readonly id: number; readonly outcome: string } | null;
  readonly successor: number | null;
}

export async function batchTrail(db: Database, batchId: number): Promise<BatchTrail> {
  const runOf = (decision: string) => sql`(
    select max(r.id)::float from sync_runs r
    where r.source_id = b.source_id and r.decided_batch = b.id and r.decision = ${decision})`;
  const [trail] = await db.execute<RowOf<BatchTrail>>(sql`
    select b.run_id::float as "heldBy", ${runOf('approve')} as "storedBy", ${runOf('undo')} as "undoneBy",
      (select json_build_object('id', r.id, 'outcome', r.outcome) from sync_runs r
        where b.status = 'superseded' and r.source_id = b.source_id and r.id > b.run_id
          and r.started_at <= b.decided_at and coalesce(r.finished_at, 'infinity') >= b.decided_at
          and r.outcome in ('changed', 'unchanged', 'held')
        order by r.id limit 1) as "replacedBy",
      (select n.id from held_batches n where n.source_id = b.source_id and n.status = 'pending' and n.id > b.id) as successor
    from held_batches b where b.id = ${batchId}`);
  if (!trail) throw new Error(`there is no batch ${batchId}`);
  return trail;
}

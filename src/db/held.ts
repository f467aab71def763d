/** Batches that a guard stopped, for whoever decides about them. See queries/held.ts. */
import type { HeldSample } from '../domain/held-sample.ts';
import type { Sql } from './client.ts';

export interface HeldBatch {
  readonly id: number;
  readonly sourceId: string;
  /** RFC 3339: when this batch was held. */
  readonly createdAt: string;
  /** When the first was held of those that broke the same guards and that this one replaced. */
  readonly heldSince: string;
  /** When its content was last read. */
  readonly readAt: string;
  readonly broken: readonly { guard: string; found: number; limit: number; detail: string }[];
  readonly items: number;
  /** The rows that say most about it; null for a batch of an earlier release. */
  readonly worst: HeldSample | null;
}

/** A batch with what was decided about it. */
export interface BatchRecord extends HeldBatch {
  readonly status: 'pending' | 'approved' | 'rejected' | 'superseded' | 'undone';
  /** Also when it was superseded. */
  readonly decidedAt: string | null;
  readonly decidedBy: string | null;
  readonly reason: string | null;
  /** Whether the decision can be taken back still. */
  readonly reversible: boolean;
  readonly undoneAt: string | null;
  readonly undoneBy: string | null;
  readonly undoneReason: string | null;
}

/** The batches that wait for a decision. */
export async function pendingBatches(sql: Sql): Promise<BatchRecord[]> {
  return sql<BatchRecord[]>`${records(sql)} where b.status = 'pending' order by b.id`;
}

/** Those that wait and those that were decided about, the newest first. @param limit undefined for all */
export async function batchRecords(sql: Sql, limit: number | undefined): Promise<BatchRecord[]> {
  return sql<BatchRecord[]>`
    ${records(sql)} where b.status <> 'superseded' order by b.id desc limit ${limit ?? null}`;
}

export async function batchRecord(sql: Sql, batchId: number): Promise<BatchRecord | undefined> {
  const [record] = await sql<BatchRecord[]>`${records(sql)} where b.id = ${batchId}`;
  return record;
}

/** The runs and batches that a batch is connected with; null for what there is not, or is not kept any more. */
export interface BatchTrail {
  /** The run that held it first. */
  readonly heldBy: number | null;
  /** The run that stored it, and the run that restored what was stored before. */
  readonly storedBy: number | null;
  readonly undoneBy: number | null;
  /** The run that replaced a superseded batch, and how that run ended. */
  readonly replacedBy: { readonly id: number; readonly outcome: string } | null;
  /** The source's batch that waits, if it is a later one. */
  readonly successor: number | null;
}

export async function batchTrail(sql: Sql, batchId: number): Promise<BatchTrail> {
  const carriedOut = (decision: string) => sql`(
    select max(r.id)::float from sync_runs r
    where r.source_id = b.source_id and r.decided_batch = b.id and r.decision = ${decision})`;
  const [trail] = await sql<BatchTrail[]>`
    select b.run_id::float as "heldBy", ${carriedOut('approve')} as "storedBy", ${carriedOut('undo')} as "undoneBy",
      (select json_build_object('id', r.id, 'outcome', r.outcome) from sync_runs r
        where b.status = 'superseded' and r.source_id = b.source_id and r.id > b.run_id
          and r.started_at <= b.decided_at and coalesce(r.finished_at, 'infinity') >= b.decided_at
          and r.outcome in ('changed', 'unchanged', 'held')
        order by r.id limit 1) as "replacedBy",
      (select n.id from held_batches n where n.source_id = b.source_id and n.status = 'pending' and n.id > b.id) as successor
    from held_batches b where b.id = ${batchId}`;
  if (!trail) throw new Error(`there is no batch ${batchId}`);
  return trail;
}

function records(sql: Sql) {
  const instant = (column: string) =>
    sql`to_char(b.${sql(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
  return sql`
    select b.id, b.source_id as "sourceId", b.broken, b.worst, b.status, b.decided_by as "decidedBy", b.reason, b.reversible,
      b.undone_by as "undoneBy", b.undone_reason as "undoneReason", ${instant('created_at')} as "createdAt",
      ${instant('held_since')} as "heldSince", ${instant('read_at')} as "readAt", ${instant('decided_at')} as "decidedAt",
      ${instant('undone_at')} as "undoneAt",
      (select count(*)::int from held_items i where i.batch_id = b.id) as items
    from held_batches b`;
}

const ITEMS_AT_ONCE = 1000;

/** The items of a held batch in the form in which the adapter gave them. */
export async function* heldItems(sql: Sql, batchId: number): AsyncGenerator<unknown> {
  let after = -1;
  for (;;) {
    const rows = await sql<{ position: number; item: unknown }[]>`
      select position, item from held_items where batch_id = ${batchId} and position > ${after}
      order by position limit ${ITEMS_AT_ONCE}`;
    for (const { item } of rows) yield item;
    const last = rows.at(-1);
    if (last === undefined || rows.length < ITEMS_AT_ONCE) return;
    after = last.position;
  }
}

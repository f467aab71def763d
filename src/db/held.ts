/** Batches that a guard stopped, and the decisions of operators about them. `sync/held.ts` stores the batches. */

import type { HeldSample } from '../domain/held-sample.ts';
import type { Decider } from '../domain/operator.ts';
import { auditRow } from './audit.ts';
import type { Sql } from './connection/client.ts';
import type { Database, SessionDatabase } from './connection/database.ts';
import { and, eq, inArray, type SQL, sql } from './connection/drizzle.ts';
import { heldBatches, heldItems as storedItems } from './schema.ts';

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

/** What a transaction does with a batch: stores it, or takes its approval back. */
export interface BatchDecision {
  readonly kind: 'approve' | 'undo';
  readonly batchId: number;
  readonly decider: Decider;
}

/**
 * Whether the decision can still be taken; true where there is none. The batch is locked for the rest of the
 * transaction: nobody else can decide, and the items that the caller has read before are all that it has.
 */
export async function isOpen(db: SessionDatabase, decision: BatchDecision | undefined): Promise<boolean> {
  if (decision === undefined) return true;
  const open: Record<BatchDecision['kind'], SQL> = {
    approve: sql`${heldBatches.status} = 'pending'`,
    undo: sql`${heldBatches.status} = 'approved' and ${heldBatches.reversible}`,
  };
  const batches = await db
    .select({ id: heldBatches.id })
    .from(heldBatches)
    .where(and(eq(heldBatches.id, decision.batchId), open[decision.kind]))
    .for('update');
  return batches.length > 0;
}

/** Records an operator's decision, here and in the audit log. False when the batch does not wait for one (any more). */
export async function decide(
  db: Database,
  batchId: number,
  status: 'approved' | 'rejected',
  decider: Decider,
): Promise<boolean> {
  const decided = db
    .update(heldBatches)
    .set({
      status,
      decidedAt: sql`now()`,
      decidedBy: decider.by,
      reason: decider.reason ?? null,
      // A rejected batch stays as it is, so that the rejection can be taken back.
      reversible: status === 'rejected' ? true : heldBatches.reversible,
      undoneAt: null,
      undoneBy: null,
      undoneReason: null,
    })
    .where(and(eq(heldBatches.id, batchId), eq(heldBatches.status, 'pending')))
    .returning(DECIDED);
  const dropped = db
    .delete(storedItems)
    .where(inArray(storedItems.batchId, sql`(select id from decided where not reversible)`))
    .returning({ batchId: storedItems.batchId });
  const action = status === 'approved' ? 'hold.approve' : 'hold.reject';
  const found = await db.execute(sql`
    with decided as ${decided}, dropped as ${dropped}, audited as (${decisionRow(action, batchId, decider)} from decided)
    select id from decided`);
  return found.length > 0;
}

const DECIDED = {
  id: heldBatches.id,
  sourceId: heldBatches.sourceId,
  reversible: heldBatches.reversible,
  broken: heldBatches.broken,
};

/** A decision's row of the audit log, of what `DECIDED` names. */
function decisionRow(action: string, batchId: number, decider: Decider): SQL {
  const guards = sql`(select coalesce(jsonb_agg(distinct g ->> 'guard'), '[]') from jsonb_array_elements(broken) g)`;
  return auditRow(decider, {
    action,
    subject: { kind: 'batch', id: batchId },
    details: sql`jsonb_build_object('source', source_id, 'guards', ${guards})`,
  });
}

/** Makes a rejected batch wait again. False when the rejection cannot be taken back (any more). */
export async function undoRejection(db: Database, batchId: number, decider: Decider): Promise<boolean> {
  const undone = db
    .update(heldBatches)
    .set({
      status: 'pending',
      reversible: false,
      undoneAt: sql`now()`,
      undoneBy: decider.by,
      undoneReason: decider.reason ?? null,
    })
    .where(and(eq(heldBatches.id, batchId), eq(heldBatches.status, 'rejected'), heldBatches.reversible))
    .returning(DECIDED);
  const row = decisionRow('hold.undo-rejection', batchId, decider);
  return (
    (await db.execute(sql`with undone as ${undone}, audited as (${row} from undone) select id from undone`))
      .length > 0
  );
}

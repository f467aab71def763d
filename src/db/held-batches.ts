/** Held batches and the decisions about them. `sync/runs/hold.ts` stores the batches. */

import type { Decider } from '../domain/operator.ts';
import { auditRow } from './audit.ts';
import type { ConnectionDatabase, Database } from './connection/client.ts';
import {
  and,
  desc,
  eq,
  gt,
  inArray,
  ne,
  type PgUpdateSetSource,
  type SQL,
  sql,
} from './connection/drizzle.ts';
import { rfc3339 } from './connection/statements.ts';
import { heldBatches, heldItems as storedItems } from './schema.ts';

type Stored = Omit<typeof heldBatches.$inferSelect, 'runId' | 'broken' | 'verifiedBefore'>;

export interface BatchRecord extends Readonly<Stored> {
  readonly broken: readonly { guard: string; found: number; limit: number; detail: string }[];
  readonly items: number;
}

/** Returns why a batch is held: what kind of change it is, and then the guards. */
export function whyHeld({ pattern, broken }: Pick<BatchRecord, 'pattern' | 'broken'>): string {
  return `${pattern} ${broken.map(({ detail }) => detail).join('; ')}`;
}

export async function pendingBatches(db: Database): Promise<BatchRecord[]> {
  return records(db, eq(heldBatches.status, 'pending')).orderBy(heldBatches.id);
}

/** Returns pending and decided batches, the newest first. @param limit undefined for all */
export async function batchRecords(db: Database, limit: number | undefined): Promise<BatchRecord[]> {
  const newest = records(db, ne(heldBatches.status, 'superseded')).orderBy(desc(heldBatches.id));
  return limit === undefined ? newest : newest.limit(limit);
}

export async function batchRecord(db: Database, batchId: number): Promise<BatchRecord | undefined> {
  const [record] = await records(db, eq(heldBatches.id, batchId));
  return record;
}

function records(db: Database, condition: SQL) {
  const { id, sourceId, status, decidedBy, reason, reversible, undoneBy, undoneReason, pattern, worst } =
    heldBatches;
  return db
    .select({
      ...{ id, sourceId, status, decidedBy, reason, reversible, undoneBy, undoneReason, pattern, worst },
      broken: sql<BatchRecord['broken']>`${heldBatches.broken}`,
      createdAt: rfc3339(heldBatches.createdAt),
      heldSince: rfc3339(heldBatches.heldSince),
      readAt: rfc3339(heldBatches.readAt),
      decidedAt: rfc3339(heldBatches.decidedAt),
      undoneAt: rfc3339(heldBatches.undoneAt),
      items: db.$count(storedItems, eq(storedItems.batchId, id)),
    })
    .from(heldBatches)
    .where(condition)
    .$dynamic();
}

const ITEMS_PER_READ = 1000;

export async function* heldItems(db: Database, batchId: number): AsyncGenerator<unknown> {
  const { position, item } = storedItems;
  for (let after: number | undefined = -1; after !== undefined; ) {
    const rows: { position: number; item: unknown }[] = await db
      .select({ position, item })
      .from(storedItems)
      .where(and(eq(storedItems.batchId, batchId), gt(position, after)))
      .orderBy(position)
      .limit(ITEMS_PER_READ);
    for (const row of rows) yield row.item;
    after = rows.length < ITEMS_PER_READ ? undefined : rows.at(-1)?.position;
  }
}

/** What a transaction does with a batch: `approve` stores it, `undo` restores the state before an approval. */
export interface BatchDecision {
  readonly kind: 'approve' | 'undo';
  readonly batchId: number;
  readonly decider: Decider;
}

/**
 * Locks the batch for the rest of the transaction, and returns whether the decision is still possible; true without a decision.
 * The lock keeps other decisions out, and the items that the caller has read stay complete.
 */
export async function isOpen(db: ConnectionDatabase, decision: BatchDecision | undefined): Promise<boolean> {
  if (decision === undefined) return true;
  const isPossible =
    decision.kind === 'approve'
      ? eq(heldBatches.status, 'pending')
      : and(eq(heldBatches.status, 'approved'), heldBatches.reversible);
  const batches = await db
    .select({ id: heldBatches.id })
    .from(heldBatches)
    .where(and(eq(heldBatches.id, decision.batchId), isPossible))
    .for('update');
  return batches.length > 0;
}

/** Records a decision and its audit row. Returns false if the batch is not pending. */
export async function decide(
  db: Database,
  batchId: number,
  status: 'approved' | 'rejected',
  decider: Decider,
): Promise<boolean> {
  return change(db, batchId, decider, {
    action: status === 'approved' ? 'hold.approve' : 'hold.reject',
    condition: eq(heldBatches.status, 'pending'),
    set: {
      status,
      decidedAt: sql`now()`,
      decidedBy: decider.by,
      reason: decider.reason ?? null,
      // A rejected batch keeps its items, so that an operator can undo the rejection.
      reversible: status === 'rejected' ? true : heldBatches.reversible,
      undoneAt: null,
      undoneBy: null,
      undoneReason: null,
    },
  });
}

/** Makes a rejected batch pending again. Returns false if the rejection cannot be undone. */
export async function undoRejection(db: Database, batchId: number, decider: Decider): Promise<boolean> {
  return change(db, batchId, decider, {
    action: 'hold.undo-rejection',
    condition: and(eq(heldBatches.status, 'rejected'), heldBatches.reversible),
    set: {
      status: 'pending',
      reversible: false,
      undoneAt: sql`now()`,
      undoneBy: decider.by,
      undoneReason: decider.reason ?? null,
    },
  });
}

/** Changes a batch and deletes the items of a decision that nothing can undo. */
async function change(
  db: Database,
  batchId: number,
  decider: Decider,
  {
    action,
    condition,
    set,
  }: { action: string; condition: SQL | undefined; set: PgUpdateSetSource<typeof heldBatches> },
): Promise<boolean> {
  const { id, sourceId, status, reversible, broken } = heldBatches;
  const changed = db
    .update(heldBatches)
    .set(set)
    .where(and(eq(id, batchId), condition))
    .returning({ id, sourceId, status, reversible, broken });
  const deleted = db
    .delete(storedItems)
    .where(
      inArray(
        storedItems.batchId,
        sql`(select id from changed where status = 'approved' and not reversible)`,
      ),
    )
    .returning({ batchId: storedItems.batchId });
  const guards = sql`(select coalesce(jsonb_agg(distinct g ->> 'guard'), '[]') from jsonb_array_elements(broken) g)`;
  const entry = {
    action,
    subject: { kind: 'batch', id: batchId },
    details: sql`jsonb_build_object('source', source_id, 'guards', ${guards})`,
  };
  const found = await db.execute(sql`
    with changed as ${changed}, deleted as ${deleted}, audited as (${auditRow(decider, entry)} from changed)
    select id from changed`);
  return found.length > 0;
}

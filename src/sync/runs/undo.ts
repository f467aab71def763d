/** Undoes approvals: an approved batch keeps the state before it, until the next run of its source. */
import { audit } from '../../db/audit.ts';
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { and, eq, type SQL, sql } from '../../db/connection/drizzle.ts';
import { insertInto, nameOf } from '../../db/connection/statements.ts';
import type { BatchDecision } from '../../db/held-batches.ts';
import { heldBatches, heldItems, quarantinedRows, regionFreshness, sources } from '../../db/schema.ts';

/** Replaces the batch's items by the stored rows of its source. Call it before the batch is stored. @param items a query */
export async function saveItems(
  db: ConnectionDatabase,
  batchId: number,
  sourceId: string,
  items: SQL,
): Promise<void> {
  await db.delete(heldItems).where(eq(heldItems.batchId, batchId));
  await db.execute(sql`
    ${insertInto(heldItems, { batchId, position: sql`row_number() over ()`, item: sql`saved.item` })} from (
      ${items}
      union all
      select jsonb_build_object('kind', 'quarantined', 'row', to_jsonb(q))
      from ${quarantinedRows} q where q.${nameOf(quarantinedRows.sourceId)} = ${sourceId}
      union all
      select jsonb_build_object('kind', 'freshness', 'row', to_jsonb(f))
      from ${regionFreshness} f where f.${nameOf(regionFreshness.sourceId)} = ${sourceId}
    ) saved (item)`);
  await db
    .update(heldBatches)
    .set({ reversible: true, verifiedBefore: sql`${sources.verifiedAt}` })
    .from(sources)
    .where(and(eq(heldBatches.id, batchId), eq(sources.id, heldBatches.sourceId)));
}

export async function restoreBefore(
  db: ConnectionDatabase,
  { batchId }: BatchDecision,
  sourceId: string,
): Promise<void> {
  const saved = [
    { table: quarantinedRows, kind: 'quarantined' },
    { table: regionFreshness, kind: 'freshness' },
  ];
  for (const { table, kind } of saved) {
    await db.delete(table).where(eq(table.sourceId, sourceId));
    await db.execute(sql`
      insert into ${table} select (jsonb_populate_record(null::${table}, ${heldItems.item} -> 'row')).*
      from ${heldItems} where ${heldItems.batchId} = ${batchId} and ${heldItems.item} ->> 'kind' = ${kind}`);
  }
}

/** Records the undo. Call it last in the transaction that restores the state. */
export async function recordUndo(db: ConnectionDatabase, { batchId, decider }: BatchDecision): Promise<void> {
  // The restored data is as fresh as before.
  await db
    .update(sources)
    .set({ verifiedAt: heldBatches.verifiedBefore })
    .from(heldBatches)
    .where(and(eq(heldBatches.id, batchId), eq(sources.id, heldBatches.sourceId)));
  const [undone] = await db
    .update(heldBatches)
    .set({
      status: 'undone',
      reversible: false,
      undoneAt: sql`now()`,
      undoneBy: decider.by,
      undoneReason: decider.reason ?? null,
    })
    .where(eq(heldBatches.id, batchId))
    .returning({ source: heldBatches.sourceId });
  await audit(db, decider, {
    action: 'hold.undo-approval',
    subject: { kind: 'batch', id: batchId },
    details: { source: undone?.source },
  });
  await db.delete(heldItems).where(eq(heldItems.batchId, batchId));
}

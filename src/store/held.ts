import type { SessionSql, Sql } from './connect.ts';
import type { RejectedKey } from './rejected.ts';
import type { Run } from './runs.ts';

export interface HeldBatch {
  readonly id: number;
  readonly sourceId: string;
  readonly createdAt: string;
  readonly broken: readonly { guard: string; found: number; limit: number; detail: string }[];
  readonly items: number;
}

/** Keeps what is staged for an operator's decision; a batch of the same source that still waits is superseded. */
export async function holdStaged(
  sql: SessionSql,
  run: Run,
  broken: readonly object[],
  regions: ReadonlyMap<string, string>,
  rejected: readonly RejectedKey[],
): Promise<void> {
  const batchId = await newBatch(sql, run, broken);
  const others = [
    ...[...regions].map(([code, name]) => ({ kind: 'region', code, name })),
    ...rejectedItems(rejected),
  ];
  await holdItems(sql, batchId, others);
  await sql`
    insert into held_items (batch_id, position, item)
    select ${batchId}, ${others.length} + row_number() over (order by region_code collate "C", name collate "C"),
      jsonb_build_object('kind', 'offer', 'offer', jsonb_strip_nulls(jsonb_build_object(
        'regionCode', region_code, 'name', name, 'cpu', cpu, 'ram', ram, 'ramUnit', ram_unit,
        'price', jsonb_build_object('amount', source_amount::text, 'per', source_per, 'currency', source_currency),
        'excluded', excluded_reason)))
    from staged_offers`;
}

/** The same for staged clusters. */
export async function holdStagedClusters(
  sql: SessionSql,
  run: Run,
  broken: readonly object[],
  rejected: readonly RejectedKey[],
): Promise<void> {
  const batchId = await newBatch(sql, run, broken);
  await holdItems(sql, batchId, rejectedItems(rejected));
  await sql`
    insert into held_items (batch_id, position, item)
    select ${batchId}, ${rejected.length} + row_number() over (order by organization collate "C", source_key collate "C"),
      jsonb_build_object('kind', 'cluster', 'cluster', item)
    from staged_clusters`;
}

async function holdItems(sql: SessionSql, batchId: number, items: readonly object[]): Promise<void> {
  await sql`
    insert into held_items (batch_id, position, item)
    select ${batchId}, ordinality, value
    from jsonb_array_elements(${JSON.stringify(items)}::text::jsonb) with ordinality`;
}

const rejectedItems = (rejected: readonly RejectedKey[]) =>
  rejected.map((row) => ({ ...row, kind: 'rejected' }));

async function newBatch(sql: SessionSql, run: Run, broken: readonly object[]): Promise<number> {
  await supersedeHeld(sql, run.sourceId);
  const [batch] = await sql<{ id: number }[]>`
    insert into held_batches (source_id, run_id, broken)
    values (${run.sourceId}, ${run.id}, ${JSON.stringify(broken)}::text::jsonb) returning id`;
  if (!batch) throw new Error('unreachable: an insert returns its row');
  return batch.id;
}

/** A batch that waits is out of date as soon as a younger one is stored or held. */
export async function supersedeHeld(sql: SessionSql, sourceId: string): Promise<void> {
  await sql`
    with superseded as (
      update held_batches set status = 'superseded', decided_at = now()
      where source_id = ${sourceId} and status = 'pending' returning id
    )
    delete from held_items where batch_id in (select id from superseded)`;
}

/** The batches that wait for a decision. */
export async function pendingBatches(sql: Sql): Promise<HeldBatch[]> {
  return sql<HeldBatch[]>`
    select b.id, b.source_id as "sourceId", b.broken,
      to_char(b.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "createdAt",
      (select count(*)::int from held_items i where i.batch_id = b.id) as items
    from held_batches b where b.status = 'pending' order by b.id`;
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

/**
 * Whether a batch waits for a decision, which nobody else can take for the rest of the transaction: all its items were
 * there, then, for whoever has read them before. True of no batch.
 */
export async function isStillHeld(sql: SessionSql, batchId: number | undefined): Promise<boolean> {
  if (batchId === undefined) return true;
  const held = await sql`select from held_batches where id = ${batchId} and status = 'pending' for update`;
  return held.count > 0;
}

/** Records an operator's decision. False when the batch does not wait for one (any more). */
export async function decide(sql: Sql, batchId: number, status: 'approved' | 'rejected'): Promise<boolean> {
  const decided = await sql`
    with decided as (
      update held_batches set status = ${status}, decided_at = now() where id = ${batchId} and status = 'pending'
      returning id
    ), dropped as (
      delete from held_items where batch_id in (select id from decided)
    )
    select id from decided`;
  return decided.length > 0;
}

/** Batches that a guard stopped: kept whole for an operator's decision, and after it what takes that back. */

import type { SessionSql, Sql } from '../connect.ts';
import type { Decider } from './accepted-prices.ts';
import type { RejectedKey } from './rejected.ts';
import type { Run } from './runs.ts';

export interface HeldBatch {
  readonly id: number;
  readonly sourceId: string;
  /** RFC 3339: when this batch was held. */
  readonly createdAt: string;
  /** When the first was held of those that broke the same guards and that this one replaced. */
  readonly heldSince: string;
  readonly broken: readonly { guard: string; found: number; limit: number; detail: string }[];
  readonly items: number;
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

/** What a transaction does with a batch: stores it, or takes its approval back. */
export interface BatchDecision {
  readonly kind: 'approve' | 'undo';
  readonly batchId: number;
  readonly decider: Decider;
}

/** What a held batch has besides its staged rows. */
export interface HeldBeside {
  /** When it was read, RFC 3339. */
  readonly readAt: string;
  readonly rejected: readonly RejectedKey[];
}

/**
 * Keeps what is staged for an operator's decision; a batch of the same source that still waits is superseded.
 * @param asOf see `Fetched` in sync/stage.ts; what it says of the whole source is part of `readAt`
 */
export async function holdStaged(
  sql: SessionSql,
  run: Run,
  broken: readonly { guard: string }[],
  {
    readAt,
    rejected,
    regions,
    asOf,
  }: HeldBeside & {
    readonly regions: ReadonlyMap<string, string>;
    readonly asOf: ReadonlyMap<string | undefined, string>;
  },
): Promise<void> {
  const batchId = await newBatch(sql, run, broken, readAt);
  const others = [
    ...[...regions].map(([code, name]) => ({ kind: 'region', code, name })),
    ...[...asOf].flatMap(([regionCode, time]) =>
      regionCode === undefined ? [] : [{ kind: 'as-of', regionCode, time }],
    ),
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
  broken: readonly { guard: string }[],
  { readAt, rejected }: HeldBeside,
): Promise<void> {
  const batchId = await newBatch(sql, run, broken, readAt);
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
  rejected.map((row) =>
    row.code === 'unread_region'
      ? { kind: 'unread', regionCode: row.regionCode, reason: row.reason }
      : { ...row, kind: 'rejected' },
  );

/** The batch that it replaces, or whose approval was undone, is its like when it broke the same guards. */
async function newBatch(
  sql: SessionSql,
  run: Run,
  broken: readonly { guard: string }[],
  readAt: string,
): Promise<number> {
  const guards = [...new Set(broken.map(({ guard }) => guard))];
  const [like] = await sql<{ id: number }[]>`
    select id from held_batches
    where id = (select max(id) from held_batches where source_id = ${run.sourceId}) and status in ('pending', 'undone')
      and (select array_agg(distinct g ->> 'guard' order by g ->> 'guard') from jsonb_array_elements(broken) g)
        = (select array_agg(g order by g) from unnest(${guards}::text[]) g)`;
  await supersedeHeld(sql, run.sourceId);
  const [batch] = await sql<{ id: number }[]>`
    insert into held_batches (source_id, run_id, broken, read_at, held_since)
    select ${run.sourceId}, ${run.id}, ${JSON.stringify(broken)}::text::jsonb, ${readAt}::timestamptz,
      coalesce((select held_since from held_batches where id = ${like?.id ?? null}), now())
    returning id`;
  if (!batch) throw new Error('unreachable: an insert returns its row');
  return batch.id;
}

/**
 * A batch that waits is out of date as soon as a younger one is stored or held. A decision about an older one cannot be
 * taken back from then on: it would undo more than itself.
 */
export async function supersedeHeld(sql: SessionSql, sourceId: string): Promise<void> {
  await sql`
    with ended as (
      update held_batches set
        status = case status when 'pending' then 'superseded' else status end,
        decided_at = case status when 'pending' then now() else decided_at end,
        reversible = false
      where source_id = ${sourceId} and (status = 'pending' or reversible) returning id
    )
    delete from held_items where batch_id in (select id from ended)`;
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

function records(sql: Sql) {
  const instant = (column: string) =>
    sql`to_char(b.${sql(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
  return sql`
    select b.id, b.source_id as "sourceId", b.broken, b.status, b.decided_by as "decidedBy", b.reason, b.reversible,
      b.undone_by as "undoneBy", b.undone_reason as "undoneReason", ${instant('created_at')} as "createdAt",
      ${instant('held_since')} as "heldSince", ${instant('decided_at')} as "decidedAt",
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

/**
 * Whether the decision can be taken, which nobody else can do for the rest of the transaction: all the batch's items
 * were there, then, for whoever has read them before. True of none.
 */
export async function isOpen(sql: SessionSql, decision: BatchDecision | undefined): Promise<boolean> {
  if (decision === undefined) return true;
  const { kind, batchId } = decision;
  const open = kind === 'approve' ? sql`status = 'pending'` : sql`status = 'approved' and reversible`;
  return (await sql`select from held_batches where id = ${batchId} and ${open} for update`).count > 0;
}

/** When a batch was read, RFC 3339: an approval makes its data no younger. */
export async function heldReadAt(sql: SessionSql, batchId: number): Promise<string> {
  const [row] = await sql<{ readAt: string }[]>`
    select to_char(read_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as "readAt"
    from held_batches where id = ${batchId}`;
  if (!row) throw new Error(`there is no batch ${batchId}`);
  return row.readAt;
}

/** Records an operator's decision. False when the batch does not wait for one (any more). */
export async function decide(
  sql: Sql | SessionSql,
  batchId: number,
  status: 'approved' | 'rejected',
  { by, reason }: Decider,
): Promise<boolean> {
  // A rejected batch stays as it is, so that the rejection can be taken back.
  const decided = await sql`
    with decided as (
      update held_batches
      set status = ${status}, decided_at = now(), decided_by = ${by}, reason = ${reason ?? null},
        reversible = reversible or ${status === 'rejected'}, undone_at = null, undone_by = null, undone_reason = null
      where id = ${batchId} and status = 'pending'
      returning id, reversible
    ), dropped as (
      delete from held_items where batch_id in (select id from decided where not reversible)
    )
    select id from decided`;
  return decided.length > 0;
}

/** Makes a rejected batch wait again. False when the rejection cannot be taken back (any more). */
export async function undoRejection(sql: Sql, batchId: number, { by, reason }: Decider): Promise<boolean> {
  const undone = await sql`
    update held_batches
    set status = 'pending', reversible = false, undone_at = now(), undone_by = ${by}, undone_reason = ${reason ?? null}
    where id = ${batchId} and status = 'rejected' and reversible`;
  return undone.count > 0;
}

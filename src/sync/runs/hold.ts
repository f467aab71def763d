import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { and, type Column, eq, inArray, max, type SQL, sql } from '../../db/connection/drizzle.ts';
import { array, insertInto, nameOf, only, rfc3339 } from '../../db/connection/statements.ts';
import { heldBatches, heldItems } from '../../db/schema.ts';
import { messageOf } from '../../domain/errors.ts';
import type { HeldSample } from '../../domain/held-sample.ts';
import type { RejectedKey } from '../../domain/rejected-rows.ts';
import type { Run } from './run.ts';

/** What each kind of batch states when it is held. */
export interface HeldParts {
  readonly broken: readonly { guard: string }[];
  /** Returns what kind of change it is, from `patternOf`. It reads only, and may fail. */
  readonly findPattern: () => Promise<string>;
  readonly readAt: string;
  readonly rejected: readonly RejectedKey[];
  readonly worst: HeldSample;
}

export type StatedColumns = Record<'sourceAmount' | 'sourcePer' | 'sourceCurrency', Column>;

export function statedPrice({ sourceAmount, sourcePer, sourceCurrency }: StatedColumns): SQL {
  return sql`jsonb_build_object(
    'amount', ${sourceAmount}::text, 'per', ${sourcePer}, 'currency', ${sourceCurrency})`;
}

export interface HeldContent extends HeldParts {
  /** Items of other kinds than the staged rows. */
  readonly others: readonly object[];
  /** A query for the staged rows as items, with their positions. */
  readonly staged: SQL;
  /** Items that differ with every read of the same content. */
  readonly times: readonly object[];
}

/** Seconds for each statement that counts what a held batch would change. The provider's rows are locked during this time. */
const COUNTING_SECONDS = 20;

/** Returns the sentence that `find` makes, or that there is none: a batch is held in any case. The savepoint also ends the limit of time. */
export async function patternOrNone(
  db: ConnectionDatabase,
  find: HeldParts['findPattern'],
  seconds = COUNTING_SECONDS,
): Promise<string> {
  await db.execute(sql`savepoint counting`);
  await db.execute(sql`select set_config('statement_timeout', ${`${seconds}s`}, true)`);
  const pattern = await find().catch(
    (error: unknown) => `its changes could not be counted (${messageOf(error)}): what do its rows say?`,
  );
  // Without its connection the batch fails here.
  await db.execute(sql`rollback to savepoint counting`);
  return pattern;
}

/** Stores a held batch. A pending batch with the same content keeps its number and gets the new times; otherwise it is replaced. */
export async function holdBatch(
  db: ConnectionDatabase,
  run: Run,
  { broken, findPattern, readAt, worst, rejected, others: items, staged, times }: HeldContent,
): Promise<void> {
  const pattern = await patternOrNone(db, findPattern);
  const others = [...items, ...rejectedItems(rejected)];
  const content = sql`(
    select value as item, ordinality as position from ${elements(others)}
    union all select item, ${others.length} + position from (${staged}) staged (item, position))`;
  const same = await sameBatch(db, run.sourceId, content);
  if (same === undefined) {
    const batchId = await newBatch(db, run, { broken, pattern, readAt, worst });
    await db.execute(sql`
      ${insertInto(heldItems, { batchId, position: sql`position`, item: sql`item` })} from ${content} content`);
    await appendItems(db, batchId, times);
    return;
  }
  await db.update(heldBatches).set({ broken, pattern, worst, readAt }).where(eq(heldBatches.id, same));
  await db
    .delete(heldItems)
    .where(and(eq(heldItems.batchId, same), sql`${heldItems.item} ->> 'kind' = 'as-of'`));
  await appendItems(db, same, times);
}

/** Returns the source's pending batch if it has the same items, apart from those of kind `as-of`. */
async function sameBatch(
  db: ConnectionDatabase,
  sourceId: string,
  content: SQL,
): Promise<number | undefined> {
  const [batch] = await db
    .select({ id: heldBatches.id })
    .from(heldBatches)
    .where(and(eq(heldBatches.sourceId, sourceId), eq(heldBatches.status, 'pending')))
    .for('update');
  if (!batch) return undefined;
  const [compared] = await db.execute<{ same: boolean }>(sql`
    with read as materialized (select item from ${content} content),
    stored as materialized (
      select item from ${heldItems} where ${heldItems.batchId} = ${batch.id} and item ->> 'kind' <> 'as-of'
    )
    select not exists (table read except all table stored) and not exists (table stored except all table read) as same`);
  return compared?.same ? batch.id : undefined;
}

async function appendItems(db: ConnectionDatabase, batchId: number, items: readonly object[]): Promise<void> {
  if (items.length === 0) return;
  const last = sql`(select coalesce(max(${heldItems.position}), 0) from ${heldItems} where ${heldItems.batchId} = ${batchId})`;
  await db.execute(sql`
    ${insertInto(heldItems, { batchId, position: sql`${last} + ordinality`, item: sql`value` })} from ${elements(items)}`);
}

const elements = (items: readonly object[]) =>
  sql`jsonb_array_elements(${JSON.stringify(items)}::text::jsonb) with ordinality`;

const rejectedItems = (rejected: readonly RejectedKey[]) =>
  rejected.map((row) =>
    row.code === 'unread_region'
      ? { kind: 'unread', regionCode: row.regionCode, reason: row.reason }
      : { ...row, kind: 'rejected' },
  );

/** Creates a batch. It takes `heldSince` of the previous batch, if that is pending or undone and broke the same guards. */
async function newBatch(
  db: ConnectionDatabase,
  run: Run,
  {
    broken,
    pattern,
    readAt,
    worst,
  }: Pick<HeldParts, 'broken' | 'readAt' | 'worst'> & { readonly pattern: string },
): Promise<number> {
  const guards = [...new Set(broken.map(({ guard }) => guard))];
  const latest = db
    .select({ id: max(heldBatches.id) })
    .from(heldBatches)
    .where(eq(heldBatches.sourceId, run.sourceId));
  const [like] = await db
    .select({ heldSince: heldBatches.heldSince })
    .from(heldBatches)
    .where(
      and(
        inArray(heldBatches.id, latest),
        inArray(heldBatches.status, ['pending', 'undone']),
        sql`(select array_agg(distinct g ->> 'guard' order by g ->> 'guard')
            from jsonb_array_elements(${heldBatches.broken}) g)
          = (select array_agg(g order by g) from unnest(${array(guards, 'text')}) g)`,
      ),
    );
  await supersedeHeld(db, run.sourceId);
  const inserted = await db
    .insert(heldBatches)
    .values({
      sourceId: run.sourceId,
      runId: run.id,
      broken,
      pattern,
      worst,
      readAt,
      heldSince: like?.heldSince,
    })
    .returning({ id: heldBatches.id });
  return only(inserted).id;
}

/**
 * Supersedes the source's pending batch, because a newer one is stored or held. Operators cannot undo earlier decisions any more:
 * that would undo the newer batch too.
 */
export async function supersedeHeld(db: ConnectionDatabase, sourceId: string): Promise<void> {
  const { id, status, decidedAt, reversible } = heldBatches;
  await db.execute(sql`
    with ended as (
      update ${heldBatches} set
        ${nameOf(status)} = case ${status} when 'pending' then 'superseded' else ${status} end,
        ${nameOf(decidedAt)} = case ${status} when 'pending' then now() else ${decidedAt} end,
        ${nameOf(reversible)} = false
      where ${heldBatches.sourceId} = ${sourceId} and (${status} = 'pending' or ${reversible}) returning ${id}
    )
    delete from ${heldItems} where ${heldItems.batchId} in (select id from ended)`);
}

/** Returns when a batch was read (RFC 3339). An approved batch has this freshness. */
export async function heldReadAt(db: ConnectionDatabase, batchId: number): Promise<string> {
  const [batch] = await db
    .select({ readAt: sql<string>`${rfc3339(heldBatches.readAt, 'us')}` })
    .from(heldBatches)
    .where(eq(heldBatches.id, batchId));
  if (!batch) throw new Error(`there is no batch ${batchId}`);
  return batch.readAt;
}

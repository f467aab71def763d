/** Batches that a guard stopped. A batch is kept whole for an operator's decision; after it, what undoes it is kept. */
import type { HeldSample } from '../../domain/held-sample.ts';
import type { RejectedKey } from '../../domain/rejected-rows.ts';
import type { SessionDatabase } from '../connection/connect.ts';
import { and, type Column, eq, inArray, max, type SQL, type SQLWrapper, sql } from '../connection/drizzle.ts';
import { array, insertInto, nameOf } from '../connection/statements.ts';
import { heldBatches, heldItems } from '../schema.ts';
import { factsJson } from './catalogue/machine-facts.ts';
import type { Run } from './run.ts';
import { stagedClusters, stagedOffers } from './staged.ts';

/** What a held batch has besides its staged rows. */
export interface HeldBeside {
  /** When it was read, RFC 3339. */
  readonly readAt: string;
  readonly rejected: readonly RejectedKey[];
  /** The rows that say most about it. */
  readonly worst: HeldSample;
}

/**
 * Keeps what is staged for an operator's decision. It replaces a batch of the same source that waits, unless that one
 * has the same content: see `keepBatch`.
 * @param asOf see `StagedCatalogue` in sync/catalogue/stage.ts; what it says of the whole source is part of `readAt`
 */
export async function holdStaged(
  db: SessionDatabase,
  run: Run,
  broken: readonly { guard: string }[],
  {
    readAt,
    rejected,
    worst,
    regions,
    asOf,
  }: HeldBeside & {
    readonly regions: ReadonlyMap<string, string>;
    readonly asOf: ReadonlyMap<string | undefined, string>;
  },
): Promise<void> {
  const others = [
    ...[...regions].map(([code, name]) => ({ kind: 'region', code, name })),
    ...rejectedItems(rejected),
  ];
  const times = [...asOf].flatMap(([regionCode, time]) =>
    regionCode === undefined ? [] : [{ kind: 'as-of', regionCode, time }],
  );
  const o = stagedOffers;
  const order = sql`${o.regionCode} collate "C", ${o.name} collate "C"`;
  const staged = sql`select ${offerItem(o, o.regionCode, o.excludedReason)}, row_number() over (order by ${order}) from ${o}`;
  await keepBatch(db, run, broken, { readAt, worst, others, staged, times });
}

type StatedColumns = Record<'sourceAmount' | 'sourcePer' | 'sourceCurrency', Column>;

/** A machine as the item that an adapter yields. @param excluded null where the source itself does not exclude it */
export function offerItem(
  machine: Record<'name' | 'cpu' | 'ram' | 'ramUnit', Column> &
    StatedColumns &
    Parameters<typeof factsJson>[0],
  regionCode: Column,
  excluded: SQLWrapper,
): SQL {
  const { name, cpu, ram, ramUnit } = machine;
  return sql`jsonb_build_object('kind', 'offer', 'offer', jsonb_strip_nulls(jsonb_build_object(
    'regionCode', ${regionCode}, 'name', ${name}, 'cpu', ${cpu}, 'ram', ${ram}, 'ramUnit', ${ramUnit},
    'price', ${statedPrice(machine)}, 'facts', ${factsJson(machine)}, 'excluded', ${excluded})))`;
}

/** A price as the source stated it, exactly. */
export function statedPrice({ sourceAmount, sourcePer, sourceCurrency }: StatedColumns): SQL {
  return sql`jsonb_build_object(
    'amount', ${sourceAmount}::text, 'per', ${sourcePer}, 'currency', ${sourceCurrency})`;
}

/** The same for staged clusters. */
export async function holdStagedClusters(
  db: SessionDatabase,
  run: Run,
  broken: readonly { guard: string }[],
  { readAt, rejected, worst }: HeldBeside,
): Promise<void> {
  const c = stagedClusters;
  const item = sql`jsonb_build_object('kind', 'cluster', 'cluster', ${c.item})`;
  const order = sql`${c.organization} collate "C", ${c.sourceKey} collate "C"`;
  const staged = sql`select ${item}, row_number() over (order by ${order}) from ${c}`;
  await keepBatch(db, run, broken, { readAt, worst, others: rejectedItems(rejected), staged, times: [] });
}

interface BatchContent extends Pick<HeldBeside, 'readAt' | 'worst'> {
  /** Items besides the staged rows. */
  readonly others: readonly object[];
  /** Selects the staged rows' items and their order. */
  readonly staged: SQL;
  /** Items that differ at every read of the same content. */
  readonly times: readonly object[];
}

/**
 * Keeps a batch. The one that waits keeps its number if the content is the same: an operator who reads it decides about
 * what was read last. Otherwise the new batch replaces it.
 */
async function keepBatch(
  db: SessionDatabase,
  run: Run,
  broken: readonly { guard: string }[],
  { readAt, worst, others, staged, times }: BatchContent,
): Promise<void> {
  const content = sql`(
    select value as item, ordinality as position from ${elements(others)}
    union all select item, ${others.length} + position from (${staged}) staged (item, position))`;
  const same = await sameBatch(db, run.sourceId, content);
  if (same === undefined) {
    const batchId = await newBatch(db, run, broken, { readAt, worst });
    await db.execute(sql`
      ${insertInto(heldItems, { batchId, position: sql`position`, item: sql`item` })} from ${content} content`);
    await appendItems(db, batchId, times);
    return;
  }
  await db.update(heldBatches).set({ broken, worst, readAt }).where(eq(heldBatches.id, same));
  await db
    .delete(heldItems)
    .where(and(eq(heldItems.batchId, same), sql`${heldItems.item} ->> 'kind' = 'as-of'`));
  await appendItems(db, same, times);
}

/** The source's batch that waits, if it has exactly these items, apart from those of kind `as-of`. */
async function sameBatch(db: SessionDatabase, sourceId: string, content: SQL): Promise<number | undefined> {
  const [batch] = await db
    .select({ id: heldBatches.id })
    .from(heldBatches)
    .where(and(eq(heldBatches.sourceId, sourceId), eq(heldBatches.status, 'pending')))
    .for('update');
  if (!batch) return undefined;
  const [compared] = await db.execute<{ same: boolean }>(sql`
    with read as materialized (select item from ${content} content),
    kept as materialized (
      select item from ${heldItems} where ${heldItems.batchId} = ${batch.id} and item ->> 'kind' <> 'as-of'
    )
    select not exists (table read except all table kept) and not exists (table kept except all table read) as same`);
  return compared?.same ? batch.id : undefined;
}

/** Adds items behind those that the batch has. */
async function appendItems(db: SessionDatabase, batchId: number, items: readonly object[]): Promise<void> {
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

/** It is held since its source's last batch was, where that one still waits or was undone, and broke the same guards. */
async function newBatch(
  db: SessionDatabase,
  run: Run,
  broken: readonly { guard: string }[],
  { readAt, worst }: Pick<HeldBeside, 'readAt' | 'worst'>,
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
  const [batch] = await db
    .insert(heldBatches)
    .values({ sourceId: run.sourceId, runId: run.id, broken, worst, readAt, heldSince: like?.heldSince })
    .returning({ id: heldBatches.id });
  if (!batch) throw new Error('unreachable: an insert returns its row');
  return batch.id;
}

/**
 * Ends the source's batch that waits: a younger one is stored or held. A decision about an older batch cannot be undone
 * from then on, since that would undo the younger one as well.
 */
export async function supersedeHeld(db: SessionDatabase, sourceId: string): Promise<void> {
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

/** When a batch was read, RFC 3339: an approval makes its data no younger. */
export async function heldReadAt(db: SessionDatabase, batchId: number): Promise<string> {
  const [batch] = await db
    .select({
      readAt: sql<string>`to_char(${heldBatches.readAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`,
    })
    .from(heldBatches)
    .where(eq(heldBatches.id, batchId));
  if (!batch) throw new Error(`there is no batch ${batchId}`);
  return batch.readAt;
}

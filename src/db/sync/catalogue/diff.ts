/** What a staged catalogue would change: computed set by set, before anything is written. */

import type { MemoryUnit } from '../../../domain/machine.ts';
import { factsChange, type MachineFacts } from '../../../domain/machine-facts.ts';
import { boundedRejected, type ReasonGroup, type RejectedKey } from '../../../domain/rejected-rows.ts';
import type { SessionDatabase } from '../../connection/connect.ts';
import {
  and,
  boolean,
  type Column,
  count,
  desc,
  jsonb,
  not,
  numeric,
  pgTable,
  sql,
  text,
} from '../../connection/drizzle.ts';
import { array, countIf, notRetired, type RowOf, selectAs } from '../../connection/statements.ts';
import { machines } from '../../schema.ts';
import { stagedOffers } from '../staged.ts';
import { catalogueDiff, catalogueMissing, compare, moveMissing } from './compare.ts';
import { factsJson } from './machine-facts.ts';
import { markJumps } from './price-jumps.ts';
import { type Bounds, type Repeated, rejectUnusable } from './reject.ts';

/** Counts in machines (a type in a region is one). */
export interface CatalogueDiff {
  /** Machines of the source that are not retired. */
  readonly known: number;
  readonly added: number;
  /** Differ in anything that is stored, apart from their being missed before. */
  readonly changed: number;
  /** The source's own amount, period or currency differs; machines that are sold out now do not count. */
  readonly repriced: number;
  /** Not reported, and not among the rejected rows. */
  readonly missing: number;
  /** The largest factor by which a price that readers see would rise or fall; 1 when none does. See price-jumps.ts. */
  readonly priceRatio: number;
  /** Machines whose price goes beyond the batch's `maxRatio`, and how many types these are. */
  readonly jumps: number;
  readonly jumpTypes: number;
  /** Published until now and excluded by this batch, for another reason than stock. */
  readonly withdrawn: number;
  /** Published until now and sold out now. */
  readonly soldOut: number;
  /** Known machines with another cpu, memory or memory unit. */
  readonly reshaped: number;
  /** The most frequent factor between their new and their old memory; 1 when there is none. */
  readonly memoryFactor: number;
}

/** What is known of a batch beside its staged rows. */
export interface StagedBatch extends Bounds {
  /** A published price that rises or falls by more jumps. */
  readonly maxRatio: number;
  /** An operator takes the batch with its prices. */
  readonly isApproved: boolean;
  /** How many staged rows there are. */
  readonly rows: number;
  /** Rows that the adapter could not use. */
  readonly rejected: readonly RejectedKey[];
}

export interface StagedDiff {
  readonly diff: CatalogueDiff;
  /** Every row that cannot be used, at most one more than are kept. */
  readonly rejected: readonly RejectedKey[];
  /** Staged rows that are left. */
  readonly usable: number;
  readonly repeated: readonly Repeated[];
}

const d = catalogueDiff;

/**
 * Takes what no catalogue can hold out of the staging table, and compares the rest with what is stored: fills
 * `catalogueDiff` and `catalogueMissing`.
 */
export async function diffStaged(
  db: SessionDatabase,
  source: { readonly id: string; readonly providerId: number },
  batch: StagedBatch,
): Promise<StagedDiff> {
  await compare(db, source, batch.maxPrice);
  let { rows } = batch;
  let rejected = batch.rejected;
  let repeated: readonly Repeated[] = [];
  // To look for rows that cannot be used takes half as long as to compare them all, which shows whether there are any.
  if (await mayBeUnusable(db, source.id, batch)) {
    const unusable = await rejectUnusable(db, source.providerId, batch);
    if (unusable.rejected.length > 0) {
      await db.execute(sql`drop table ${d}`);
      await compare(db, source, batch.maxPrice);
      rows = await db.$count(stagedOffers);
    }
    rejected = [...rejected, ...unusable.rejected];
    ({ repeated } = unusable);
  }
  rejected = boundedRejected(rejected);
  await moveMissing(db, rejected);
  await markJumps(db, source.id, batch);
  const diff = await countChanges(db, source.id);
  return { diff, rejected, usable: rows, repeated };
}

/**
 * False when no staged row has a price out of range or an unknown region, and each is another machine. That is so when
 * there are as many rows as machines of this source that were found again and others, and no two of the others are alike.
 */
async function mayBeUnusable(db: SessionDatabase, sourceId: string, batch: StagedBatch): Promise<boolean> {
  const isOther = sql`${d.isReported}
    and (${d.machineId} is null or ${d.wasRetired} or ${d.oldSource} is distinct from ${sourceId})`;
  const [row] = await db
    .select({
      known: db.$count(machines, notRetired(machines, sourceId)),
      unreported: countIf(not(d.isReported)),
      others: countIf(isOther),
      repeated: sql<boolean>`exists (
        select from ${d} where ${isOther} group by ${d.regionCode}, ${d.name} having count(*) > 1)`,
      unusable: sql<boolean>`coalesce(bool_or(${d.isOutOfRange}
        or ${d.isReported} and ${d.regionId} is null and not ${d.regionCode} = any(${array(batch.regions, 'text')})), false)`,
    })
    .from(d);
  if (row === undefined || row.unusable || row.repeated) return true;
  return row.known - row.unreported + row.others !== batch.rows;
}

/** What is in `catalogueDiff` and `catalogueMissing`. */
export async function countChanges(db: SessionDatabase, sourceId: string): Promise<CatalogueDiff> {
  const changes = not(d.isAdded);
  const [row] = await db
    .select({
      known: db.$count(machines, notRetired(machines, sourceId)),
      missing: db.$count(catalogueMissing, not(catalogueMissing.tolerated)),
      added: countIf(d.isAdded),
      changed: countIf(sql`${d.differs} and ${changes}`),
      repriced: countIf(sql`${d.repriced} and ${changes} and not ${d.isSoldOut}`),
      withdrawn: countIf(sql`${d.wasPublished} and not ${d.isPublished} and not ${d.isSoldOut}`),
      soldOut: countIf(sql`${d.wasPublished} and ${d.isSoldOut}`),
      reshaped: countIf(sql`${d.reshaped} and ${changes}`),
      memoryFactor: sql<number>`coalesce(mode() within group (order by (${d.ram} / nullif(${d.oldRam}, 0)))
        filter (where ${d.reshaped} and ${changes}), 1)::float`,
      jumps: countIf(d.jumps),
      jumpTypes: sql<number>`(count(distinct ${d.name}) filter (where ${d.jumps}))::int`,
      priceRatio: sql<number>`coalesce(max(${d.ratio}), 1)::float`,
    })
    .from(d);
  if (!row) throw new Error('unreachable: an aggregate has one row');
  return row;
}

/** Why machines that readers saw until now are excluded by the diff, the most frequent reason first. */
export async function withdrawnMachines(db: SessionDatabase): Promise<ReasonGroup[]> {
  const reason = sql<string>`${d.excludedReason}`;
  return db
    .select({
      code: reason,
      reason,
      count: count(),
      examples: sql<string[]>`(array_agg(${d.name} || '@' || ${d.regionCode}
        order by ${d.regionCode} collate "C", ${d.name} collate "C"))[1:3]`,
    })
    .from(d)
    .where(and(d.wasPublished, not(d.isPublished)))
    .groupBy(d.excludedReason)
    .orderBy(desc(count()), d.excludedReason);
}

/** In the order in which they are shown. */
const CHANGES = ['gone', 'excluded', 'price', 'shape', 'facts', 'published', 'new'] as const;

/** One machine that a batch would change, for an operator's eyes. Prices are per minute, in the published currency. */
export interface PreviewRow {
  readonly change: (typeof CHANGES)[number];
  readonly regionCode: string;
  readonly name: string;
  readonly oldPrice: number | null;
  readonly newPrice: number | null;
  /** What readers would see of it; null where they would not see it. */
  readonly shape: { readonly cpu: number; readonly ram: number; readonly ramUnit: MemoryUnit } | null;
  /** What else there is to say, e.g. `8 GiB → 8192 GiB` or the reason of an exclusion. */
  readonly detail: string;
}

export interface CataloguePreview {
  /** The largest change of price first. */
  readonly rows: readonly PreviewRow[];
  /** How many rows there are of each kind of change. */
  readonly totals: Readonly<Partial<Record<PreviewRow['change'], number>>>;
  /** Machines that change and that readers saw neither before nor after. */
  readonly unseen: number;
}

/** Null where nothing is known. */
interface Facts {
  readonly oldFacts: Partial<MachineFacts> | null;
  readonly facts: Partial<MachineFacts> | null;
}

const catalogueChanges = pgTable('catalogue_changes', {
  change: text('change', { enum: CHANGES }).notNull(),
  isSeen: boolean('is_seen').notNull(),
  regionCode: text('region_code').notNull(),
  name: text('name').notNull(),
  oldPrice: numeric('old_price'),
  price: numeric('price'),
  shape: jsonb('shape'),
  detail: text('detail').notNull(),
  oldFacts: jsonb('old_facts'),
  facts: jsonb('facts'),
});

const unitOf = (column: Column) => sql`case ${column} when 'Binary' then 'GiB' else 'GB' end`;

/** What the diff would do to what readers see; at most `limit` rows of each kind, undefined for all. */
export async function cataloguePreview(
  db: SessionDatabase,
  limit: number | undefined,
): Promise<CataloguePreview> {
  const c = catalogueChanges;
  const missing = catalogueMissing;
  await db.execute(sql`
    create temporary table ${c} on commit drop as
    ${selectAs(c, {
      change: sql`case when ${d.isAdded} then 'new'
        when ${d.wasPublished} and not ${d.isPublished} then 'excluded'
        when ${d.isPublished} and not ${d.wasPublished} then 'published'
        when ${d.reshaped} then 'shape'
        when ${d.factsChanged} and not ${d.repriced} and ${d.price} is not distinct from ${d.oldPrice} then 'facts'
        else 'price' end`,
      isSeen: sql`${d.wasPublished} or ${d.isPublished}`,
      regionCode: d.regionCode,
      name: d.name,
      oldPrice: d.oldPrice,
      price: d.price,
      shape: sql`case when ${d.isPublished} then json_build_object(
        'cpu', ${d.cpu}, 'ram', ${d.ram}, 'ramUnit', ${d.ramUnit}) end`,
      detail: sql`case when ${d.reshaped} and not ${d.isAdded}
        then format('%s cpu, %s %s → %s cpu, %s %s',
          ${d.oldCpu}, trim_scale(${d.oldRam}), ${unitOf(d.oldRamUnit)}, ${d.cpu}, trim_scale(${d.ram}), ${unitOf(d.ramUnit)})
        else coalesce(${d.excludedReason}, '') end`,
      oldFacts: d.oldFacts,
      facts: factsJson(d),
    })}
    from ${d} where ${d.differs}
    union all
    select 'gone', ${missing.wasPublished}, ${missing.regionCode}, ${missing.name}, null, null, null, '', null, null
    from ${missing} where not ${missing.tolerated}`);
  const counts = await db
    .select({ change: c.change, seen: countIf(c.isSeen), unseen: countIf(not(c.isSeen)) })
    .from(c)
    .groupBy(c.change)
    .orderBy(c.change);
  const rows = await db.execute<RowOf<PreviewRow & Facts>>(sql`
    with ranked as (
      select *, row_number() over (
        partition by ${c.change} order by abs(ln(nullif(${c.price}, 0) / nullif(${c.oldPrice}, 0))) desc nulls last,
        ${c.regionCode} collate "C", ${c.name} collate "C") as rank
      from ${c} where ${c.isSeen}
    )
    select change, region_code as "regionCode", name, old_price::float as "oldPrice", price::float as "newPrice", shape, detail,
      old_facts as "oldFacts", facts
    from ranked where rank <= ${limit ?? null}::bigint or ${limit === undefined}
    order by array_position(${array(CHANGES, 'text')}, change), rank`);
  return {
    rows: rows.map(({ oldFacts, facts, ...row }) =>
      row.change === 'facts' || row.change === 'price'
        ? { ...row, detail: factsChange(oldFacts, facts) }
        : row,
    ),
    totals: Object.fromEntries(counts.flatMap(({ change, seen }) => (seen > 0 ? [[change, seen]] : []))),
    unseen: counts.reduce((sum, { unseen }) => sum + unseen, 0),
  };
}

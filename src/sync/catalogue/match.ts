/** Compares staged offers with stored machines in one pass. Temporary tables hold the differences until the end of the transaction. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import {
  alias,
  and,
  type Column,
  count,
  desc,
  eq,
  getTableColumns,
  not,
  pgTable,
  sql,
} from '../../db/connection/drizzle.ts';
import {
  array,
  countIf,
  inCatalogue,
  nameOf,
  notRetired,
  only,
  selectAs,
} from '../../db/connection/statements.ts';
import { factsDiffer, factsJson } from '../../db/machine-facts.ts';
import { losesTerms, statedTerms } from '../../db/prices/terms.ts';
import { amount, minutePrice } from '../../db/schema/shared-columns.ts';
import { machines, regions } from '../../db/schema.ts';
import { boundedRejected, type ReasonGroup, type RejectedKey } from '../../domain/rejected-rows.ts';
import type { ShortRegion } from '../../domain/run.ts';
import { type Bounds, type Repeated, rejectUnusable } from './check-rows.ts';
import { offerColumns, stagedOffers } from './stage.ts';

export const catalogueDiff = pgTable('catalogue_diff', (c) => ({
  ...offerColumns,
  regionId: c.integer('region_id'),
  /** Null for a new machine, like all old columns. */
  machineId: c.integer('machine_id'),
  oldRegionId: c.integer('old_region_id'),
  oldName: c.text('old_name'),
  oldCpu: c.integer('old_cpu'),
  oldRam: c.numeric('old_ram'),
  oldRamUnit: c.text('old_ram_unit'),
  oldAmount: amount('old_amount'),
  oldPer: c.text('old_per'),
  oldCurrency: c.text('old_currency'),
  oldPrice: minutePrice('old_price'),
  oldExcludedReason: c.text('old_excluded_reason'),
  oldSource: c.text('old_source'),
  oldFacts: c.jsonb('old_facts'),
  oldTerms: c.jsonb('old_terms'),
  /** False for a machine that the batch lacks. `moveMissing` moves such rows. */
  isReported: c.boolean('is_reported').notNull(),
  isOutOfRange: c.boolean('is_out_of_range').notNull(),
  isNew: c.boolean('is_new').notNull(),
  isAdded: c.boolean('is_added').notNull(),
  wasRetired: c.boolean('was_retired').notNull(),
  wasPublished: c.boolean('was_published').notNull(),
  isPublished: c.boolean('is_published').notNull(),
  wasSoldOut: c.boolean('was_sold_out').notNull(),
  isSoldOut: c.boolean('is_sold_out').notNull(),
  reshaped: c.boolean('reshaped').notNull(),
  repriced: c.boolean('repriced').notNull(),
  factsChanged: c.boolean('facts_changed').notNull(),
  /** Any other amount. `termsRestated`: the source states other terms. `termsLost`: it does not state one any more. */
  termsChanged: c.boolean('terms_changed').notNull(),
  termsRestated: c.boolean('terms_restated').notNull(),
  termsLost: c.boolean('terms_lost').notNull(),
  differs: c.boolean('differs').notNull(),
}));

/** Machines that the batch lacks. `tolerated`: the batch has an unusable row that may be the machine's. */
export const catalogueMissing = pgTable('catalogue_missing', (c) => ({
  machineId: c.integer('machine_id').notNull(),
  regionId: c.integer('region_id').notNull(),
  name: c.text('name').notNull(),
  regionCode: c.text('region_code').notNull(),
  wasPublished: c.boolean('was_published').notNull(),
  wasSoldOut: c.boolean('was_sold_out').notNull(),
  tolerated: c.boolean('tolerated').notNull(),
}));

/** Counts of machines. A machine is one type in one region. */
export interface CatalogueDiff {
  readonly known: number;
  readonly added: number;
  /** Machines with another value in any column except `missed_runs`. */
  readonly changed: number;
  /** Machines with another amount, period or currency, without those that are sold out now. */
  readonly repriced: number;
  readonly missing: number;
  readonly withdrawn: number;
  readonly soldOut: number;
  readonly reshaped: number;
  readonly memoryFactor: number;
  /** Machines with a term, or a monthly cap, that their source does not state any more. */
  readonly termsLost: number;
}

interface OfferedBatch extends Bounds {
  readonly rows: number;
  readonly rejected: readonly RejectedKey[];
}

export interface MatchedOffers {
  readonly diff: CatalogueDiff;
  readonly rejected: readonly RejectedKey[];
  readonly usable: number;
  readonly repeated: readonly Repeated[];
}

const d = catalogueDiff;
const o = alias(stagedOffers, 'o');
const m = alias(machines, 'm');
const r = alias(regions, 'r');

/** Removes unusable staged rows and compares the rest with the stored machines. Fills `catalogueDiff` and `catalogueMissing`. */
export async function matchOffers(
  db: ConnectionDatabase,
  source: { readonly id: string; readonly providerId: number },
  batch: OfferedBatch,
): Promise<MatchedOffers> {
  await compare(db, source, batch.maxPrice);
  let { rows } = batch;
  let rejected = batch.rejected;
  let repeated: readonly Repeated[] = [];
  // The search for unusable rows takes half as long as the comparison, which shows whether there may be any.
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
  const diff = await countChanges(db, source.id);
  return { diff, rejected, usable: rows, repeated };
}

/** Creates `catalogue_diff`, with unreported machines and prices out of range. Without an exchange rate the stored price stays. */
async function compare(
  db: ConnectionDatabase,
  source: { readonly id: string; readonly providerId: number },
  maxPrice: string,
): Promise<void> {
  const keepsPrice = sql`(${o.price} is null and coalesce(${m.price} > 0, false))`;
  const oldOrNew = (column: 'sourceAmount' | 'sourcePer' | 'sourceCurrency' | 'price') =>
    sql`case when ${keepsPrice} then ${m[column]} else ${o[column]} end`;
  const sourceAmount = oldOrNew('sourceAmount');
  const sourcePer = oldOrNew('sourcePer');
  const sourceCurrency = oldOrNew('sourceCurrency');
  const price = oldOrNew('price');
  const isReported = sql`${o.name} is not null`;
  const isOutOfRange = sql`coalesce(${o.price} > ${maxPrice}, false)`;
  const wasRetired = sql`${m.retiredAt} is not null`;
  const wasPublished = sql`(${m.id} is not null and not (${wasRetired}) and ${m.excludedReason} is null)`;
  const wasSoldOut = sql`(not (${wasRetired}) and coalesce(${m.excludedReason} = 'sold_out', false))`;
  // A missing rate outranks missing stock. An unavailable machine that was available before is sold out.
  const excludedReason = sql`case
    when ${o.price} is null and not ${keepsPrice} and coalesce(${o.excludedReason} in ('sold_out', 'unavailable'), true)
      then 'no_exchange_rate'
    when ${o.excludedReason} = 'unavailable' and (${wasPublished} or ${wasSoldOut}) then 'sold_out'
    else ${o.excludedReason} end`;
  const reshaped = sql`(${m.cpu}, ${m.ram}, ${m.ramUnit}) is distinct from (${o.cpu}, ${o.ram}, ${o.ramUnit})`;
  const repriced = sql`(${wasRetired} or (${m.sourceAmount}, ${m.sourcePer}, ${m.sourceCurrency})
    is distinct from (${sourceAmount}, ${sourcePer}, ${sourceCurrency}))`;
  const factsChanged = factsDiffer(m, o);
  const terms = sql`case when ${keepsPrice} then ${m.terms} else ${o.terms} end`;
  const termsChanged = sql`(${m.terms} is distinct from ${terms})`;
  const termsRestated = sql`(${wasRetired} and ${o.terms} is not null
    or ${termsChanged} and ${statedTerms(m.terms)} is distinct from ${statedTerms(terms)})`;
  const differs = sql`(${repriced} or ${reshaped} or ${factsChanged} or ${termsChanged}
    or (${m.price}, ${m.excludedReason}) is distinct from (${price}, ${excludedReason}))`;
  await db.execute(sql`
    create temporary table ${catalogueDiff} on commit drop as
    ${selectAs(catalogueDiff, {
      ...getTableColumns(o),
      sourceAmount,
      sourcePer,
      sourceCurrency,
      price,
      excludedReason,
      terms,
      regionId: r.id,
      machineId: m.id,
      oldRegionId: m.regionId,
      oldName: m.name,
      ...stateBefore(m),
      oldPrice: m.price,
      oldSource: m.sourceId,
      oldTerms: m.terms,
      isReported,
      isOutOfRange,
      isNew: sql`${m.id} is null`,
      isAdded: sql`${m.id} is null or ${wasRetired} or ${m.sourceAmount} is null`,
      wasRetired,
      wasPublished,
      isPublished: sql`${excludedReason} is null`,
      wasSoldOut,
      isSoldOut: sql`coalesce(${excludedReason} = 'sold_out', false)`,
      reshaped,
      repriced,
      factsChanged,
      termsChanged,
      termsRestated,
      termsLost: sql`(${isReported} and not (${wasRetired}) and ${termsChanged} and ${losesTerms(m.terms, terms)})`,
      differs,
    })}
    from (${stagedOffers} o
      left join ${regions} r
        on ${inCatalogue(r, source.providerId)} and ${r.code} = ${o.regionCode})
    full join (
      select * from ${machines}
      where ${machines.sourceId} = ${source.id} or ${machines.regionId} = any(array(
        select ${regions.id} from ${regions}
        where ${inCatalogue(regions, source.providerId)}))
    ) m on ${m.regionId} = ${r.id} and ${m.name} = ${o.name}
    where case when ${isReported}
      then ${m.id} is null or ${m.missedRuns} > 0 or ${isOutOfRange} or ${differs}
      else ${m.sourceId} = ${source.id} and not (${wasRetired}) end`);
}

/** Returns the state of a machine before a change, as the diff and the log of changes name its columns. */
export const stateBefore = (machine: Record<keyof (typeof machines)['_']['columns'], Column>) => ({
  oldCpu: machine.cpu,
  oldRam: machine.ram,
  oldRamUnit: machine.ramUnit,
  oldAmount: machine.sourceAmount,
  oldPer: machine.sourcePer,
  oldCurrency: machine.sourceCurrency,
  oldExcludedReason: machine.excludedReason,
  oldFacts: factsJson(machine),
});

/**
 * Returns false if no staged row has a price out of range, an unknown region or the machine of another row. The rows are distinct
 * if their number equals that of the source's reported machines plus others, and no two of the others are the same.
 */
async function mayBeUnusable(
  db: ConnectionDatabase,
  sourceId: string,
  batch: OfferedBatch,
): Promise<boolean> {
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

/** Moves unreported machines to `catalogue_missing`. A rejected row tolerates each machine that it may mean. */
async function moveMissing(db: ConnectionDatabase, rejected: readonly RejectedKey[]): Promise<void> {
  await db.execute(sql`
    create temporary table ${catalogueMissing} on commit drop as
    ${selectAs(catalogueMissing, {
      machineId: d.machineId,
      regionId: r.id,
      name: d.oldName,
      regionCode: r.code,
      wasPublished: d.wasPublished,
      wasSoldOut: d.wasSoldOut,
      tolerated: sql`false`,
    })}
    from ${d} join ${regions} r on ${r.id} = ${d.oldRegionId} where not ${d.isReported}`);
  await db.delete(d).where(not(d.isReported));
  const codes = rejected.map((row) => row.regionCode ?? null);
  const names = rejected.map((row) => row.name ?? null);
  const { name, regionCode, tolerated } = catalogueMissing;
  await db.execute(sql`
    with w (region_code, name) as (select * from unnest(${array(codes, 'text')}, ${array(names, 'text')}))
    update ${catalogueMissing} set ${nameOf(tolerated)} = true
    where (${regionCode}, ${name}) in (select * from w where region_code is not null and name is not null)
      or ${name} in (select name from w where region_code is null and name is not null)
      or ${regionCode} in (select region_code from w where name is null and region_code is not null)`);
  if (rejected.some((row) => row.name === undefined && row.regionCode === undefined)) {
    await db.delete(catalogueMissing).where(not(tolerated));
  }
}

export async function countChanges(db: ConnectionDatabase, sourceId: string): Promise<CatalogueDiff> {
  const changes = not(d.isAdded);
  const counts = await db
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
      termsLost: countIf(d.termsLost),
    })
    .from(d);
  return only(counts);
}

/** Counts the machines of a source with terms. */
export function countWithTerms(db: ConnectionDatabase, sourceId: string): Promise<number> {
  return db.$count(machines, sql`${notRetired(machines, sourceId)} and ${machines.terms} is not null`);
}

export async function withdrawnMachines(db: ConnectionDatabase): Promise<ReasonGroup[]> {
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

const SHORT_SHARE = 0.2;
const SHORT_AT_LEAST = 10;

/** Returns the regions that lack many machines for the first time. A machine that stays away counts once. */
export async function shortRegions(db: ConnectionDatabase, sourceId: string): Promise<ShortRegion[]> {
  const [lost, m] = [catalogueMissing, machines];
  const missing = sql<number>`count(*)::int`;
  const known = sql<number>`(select count(*)::int from machines k where k.region_id = ${lost.regionId}
    and k.source_id = ${sourceId} and k.retired_at is null)`;
  const found = await db
    .select({ code: lost.regionCode, missing, known })
    .from(lost)
    .innerJoin(m, eq(m.id, lost.machineId))
    .where(and(not(lost.tolerated), eq(m.missedRuns, 0)))
    .groupBy(lost.regionId, lost.regionCode)
    .having(sql`${missing} >= ${SHORT_AT_LEAST}`)
    .orderBy(sql`${missing} desc`, sql`${lost.regionCode} collate "C"`);
  return found.filter((region) => region.missing >= SHORT_SHARE * region.known);
}

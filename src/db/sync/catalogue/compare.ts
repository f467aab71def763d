/** Compares a staged catalogue with what is stored, in one pass, and keeps what differs in temporary tables. */
import type { RejectedKey } from '../../../domain/rejected-rows.ts';
import type { SessionDatabase } from '../../connection/connect.ts';
import {
  alias,
  boolean,
  type Column,
  getTableColumns,
  integer,
  jsonb,
  not,
  numeric,
  pgTable,
  sql,
  text,
} from '../../connection/drizzle.ts';
import { array, createTemporary, insertInto, nameOf, selectAs } from '../../connection/statements.ts';
import { amount, minutePrice } from '../../schema/columns.ts';
import { machines, regions } from '../../schema.ts';
import { offerColumns, stagedOffers } from '../staged.ts';
import { factsDiffer, factsJson } from './machine-facts.ts';

/** New and differing machines: what is to be stored of them, and what was. It lives until the transaction ends. */
export const catalogueDiff = pgTable('catalogue_diff', {
  ...offerColumns,
  /** Of the batch's region; null for one that is not stored yet. */
  regionId: integer('region_id'),
  /** Null, like all that is old, for a machine that was never stored. */
  machineId: integer('machine_id'),
  oldRegionId: integer('old_region_id'),
  oldName: text('old_name'),
  oldCpu: integer('old_cpu'),
  oldRam: numeric('old_ram'),
  oldRamUnit: text('old_ram_unit'),
  oldAmount: amount('old_amount'),
  oldPer: text('old_per'),
  oldCurrency: text('old_currency'),
  oldPrice: minutePrice('old_price'),
  oldExcludedReason: text('old_excluded_reason'),
  oldSource: text('old_source'),
  oldFacts: jsonb('old_facts'),
  /** False for a machine of the source that the batch lacks; `moveMissing` takes these out. */
  isReported: boolean('is_reported').notNull(),
  isOutOfRange: boolean('is_out_of_range').notNull(),
  isNew: boolean('is_new').notNull(),
  isAdded: boolean('is_added').notNull(),
  wasRetired: boolean('was_retired').notNull(),
  wasPublished: boolean('was_published').notNull(),
  isPublished: boolean('is_published').notNull(),
  wasSoldOut: boolean('was_sold_out').notNull(),
  isSoldOut: boolean('is_sold_out').notNull(),
  reshaped: boolean('reshaped').notNull(),
  repriced: boolean('repriced').notNull(),
  factsChanged: boolean('facts_changed').notNull(),
  differs: boolean('differs').notNull(),
  /** The factor by which the published price changes, and whether that is too much; see price-jumps.ts. */
  ratio: numeric('ratio').notNull(),
  jumps: boolean('jumps').notNull(),
});

/** Machines that the batch lacks, or whose rows cannot be used (`tolerated`). It lives until the transaction ends. */
export const catalogueMissing = pgTable('catalogue_missing', {
  machineId: integer('machine_id').notNull(),
  regionId: integer('region_id').notNull(),
  name: text('name').notNull(),
  regionCode: text('region_code').notNull(),
  wasPublished: boolean('was_published').notNull(),
  wasSoldOut: boolean('was_sold_out').notNull(),
  tolerated: boolean('tolerated').notNull(),
});

const o = alias(stagedOffers, 'o');
const m = alias(machines, 'm');
const r = alias(regions, 'r');

/**
 * Fills `catalogue_diff`, prices out of range and what was not reported included. A price without an exchange rate keeps
 * what was stored: held, not guessed.
 */
export async function compare(
  db: SessionDatabase,
  source: { readonly id: string; readonly providerId: number },
  maxPrice: string,
): Promise<void> {
  const keeps = sql`(${o.price} is null and coalesce(${m.price} > 0, false))`;
  const kept = (old: Column, given: Column) => sql`case when ${keeps} then ${old} else ${given} end`;
  const sourceAmount = kept(m.sourceAmount, o.sourceAmount);
  const sourcePer = kept(m.sourcePer, o.sourcePer);
  const sourceCurrency = kept(m.sourceCurrency, o.sourceCurrency);
  const price = kept(m.price, o.price);
  const isReported = sql`${o.name} is not null`;
  const isOutOfRange = sql`coalesce(${o.price} > ${maxPrice}, false)`;
  const wasRetired = sql`${m.retiredAt} is not null`;
  const wasPublished = sql`(${m.id} is not null and not (${wasRetired}) and ${m.excludedReason} is null)`;
  const wasSoldOut = sql`(not (${wasRetired}) and coalesce(${m.excludedReason} = 'sold_out', false))`;
  // Reasons of stock give way to a missing rate. A machine that could be ordered and cannot now is sold out.
  const excludedReason = sql`case
    when ${o.price} is null and not ${keeps} and coalesce(${o.excludedReason} in ('sold_out', 'unavailable'), true)
      then 'no_exchange_rate'
    when ${o.excludedReason} = 'unavailable' and (${wasPublished} or ${wasSoldOut}) then 'sold_out'
    else ${o.excludedReason} end`;
  const reshaped = sql`(${m.cpu}, ${m.ram}, ${m.ramUnit}) is distinct from (${o.cpu}, ${o.ram}, ${o.ramUnit})`;
  const repriced = sql`(${wasRetired} or (${m.sourceAmount}, ${m.sourcePer}, ${m.sourceCurrency})
    is distinct from (${sourceAmount}, ${sourcePer}, ${sourceCurrency}))`;
  const factsChanged = factsDiffer(m, o);
  const differs = sql`(${repriced} or ${reshaped} or ${factsChanged}
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
      regionId: r.id,
      machineId: m.id,
      oldRegionId: m.regionId,
      oldName: m.name,
      oldCpu: m.cpu,
      oldRam: m.ram,
      oldRamUnit: m.ramUnit,
      oldAmount: m.sourceAmount,
      oldPer: m.sourcePer,
      oldCurrency: m.sourceCurrency,
      oldPrice: m.price,
      oldExcludedReason: m.excludedReason,
      oldSource: m.sourceId,
      oldFacts: factsJson(m),
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
      differs,
      ratio: sql`1::numeric`,
      jumps: sql`false`,
    })}
    from (${stagedOffers} o
      left join ${regions} r
        on ${r.providerId} = ${source.providerId} and ${r.code} = ${o.regionCode} and ${r.organizationId} is null)
    full join (
      select * from ${machines}
      where ${machines.sourceId} = ${source.id} or ${machines.regionId} = any(array(
        select ${regions.id} from ${regions}
        where ${regions.providerId} = ${source.providerId} and ${regions.organizationId} is null))
    ) m on ${m.regionId} = ${r.id} and ${m.name} = ${o.name}
    where case when ${isReported}
      then ${m.id} is null or ${m.missedRuns} > 0 or ${isOutOfRange} or ${differs}
      else ${m.sourceId} = ${source.id} and not (${wasRetired}) end`);
}

/**
 * Moves what was not reported from `catalogue_diff` to `catalogue_missing`. A rejected row counts as seen, for every
 * machine that it names; one that names nothing may stand for any of them, so that none can be called missing.
 */
export async function moveMissing(db: SessionDatabase, rejected: readonly RejectedKey[]): Promise<void> {
  const gone = alias(catalogueDiff, 'gone');
  const d = catalogueDiff;
  await db.execute(createTemporary(catalogueMissing, 'transaction'));
  await db.execute(sql`
    with gone as (
      delete from ${d} where not ${d.isReported}
      returning ${d.machineId}, ${d.oldRegionId}, ${d.oldName}, ${d.wasPublished}, ${d.wasSoldOut}
    )
    ${insertInto(catalogueMissing, {
      machineId: gone.machineId,
      regionId: r.id,
      name: gone.oldName,
      regionCode: r.code,
      wasPublished: gone.wasPublished,
      wasSoldOut: gone.wasSoldOut,
      tolerated: false,
    })}
    from gone join ${regions} r on ${r.id} = ${gone.oldRegionId}`);
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

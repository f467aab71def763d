/** Compares staged offers with stored machines in one pass. Temporary tables hold the differences until the end of the transaction. */

import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { alias, type Column, getTableColumns, not, pgTable, sql } from '../../db/connection/drizzle.ts';
import { array, inCatalogue, nameOf, selectAs } from '../../db/connection/statements.ts';
import { factsDiffer, factsJson } from '../../db/machine-facts.ts';
import { losesTerms, statedTerms } from '../../db/prices/terms.ts';
import { amount, minutePrice } from '../../db/schema/shared-columns.ts';
import { machines, regions } from '../../db/schema.ts';
import type { RejectedKey } from '../../domain/rejected-rows.ts';
import { offerColumns, stagedOffers } from '../staged.ts';

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

const o = alias(stagedOffers, 'o');
const m = alias(machines, 'm');
const r = alias(regions, 'r');

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

/** Creates `catalogue_diff`, with unreported machines and prices out of range. Without an exchange rate the stored price stays. */
export async function compare(
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

/** Moves unreported machines to `catalogue_missing`. A rejected row tolerates each machine that it may mean. */
export async function moveMissing(db: ConnectionDatabase, rejected: readonly RejectedKey[]): Promise<void> {
  const d = catalogueDiff;
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

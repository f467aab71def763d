import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import {
  alias,
  type Column,
  getTableName,
  type PgTable,
  type SQL,
  sql,
} from '../../db/connection/drizzle.ts';
import { insertInto, nameOf } from '../../db/connection/statements.ts';
import { factsJson } from '../../db/machine-facts.ts';
import { HAS_NO_OTHER_REASON } from '../../db/published-rows.ts';
import {
  machineAvailability,
  machineChanges,
  machinePrices,
  machines,
  machineTerms,
} from '../../db/schema.ts';
import { MOST_STOCK_CHANGES, SHARE_DAYS } from '../../domain/stock.ts';
import type { ChangedBy } from '../runs/run.ts';
import { catalogueDiff as d, stateBefore } from './match.ts';

const KIND = sql`case
  when ${d.wasRetired} then 'returned'
  when ${d.isAdded} then 'added'
  when ${d.wasPublished} and ${d.isSoldOut} then 'sold_out'
  when ${d.wasSoldOut} and ${d.isPublished} then 'restocked'
  when ${d.wasPublished} and not ${d.isPublished} then 'withdrawn'
  when ${d.isPublished} and not ${d.wasPublished} then 'published'
  when ${d.reshaped} then 'reshaped'
  when ${d.repriced} then 'repriced'
  when ${d.oldExcludedReason} is distinct from ${d.excludedReason} then 'excluded'
  else 'changed' end`;

/** Records the diff's changes of stored machines. A price that only an exchange rate changes is none. */
export async function recordChanges(
  db: ConnectionDatabase,
  { runId, sourceId, now: changedAt }: ChangedBy,
): Promise<void> {
  const { machineId, cpu, ram, ramUnit, sourceAmount, sourcePer, sourceCurrency, excludedReason } = d;
  const { oldCpu, oldRam, oldRamUnit, oldAmount, oldPer, oldCurrency, oldExcludedReason, oldFacts } = d;
  await db.execute(sql`
    ${insertInto(machineChanges, {
      runId,
      sourceId,
      changedAt,
      machineId,
      change: KIND,
      ...{ oldCpu, oldRam, oldRamUnit, oldAmount, oldPer, oldCurrency, oldExcludedReason, oldFacts },
      ...{ cpu, ram, ramUnit, sourceAmount, sourcePer, sourceCurrency, excludedReason },
      facts: factsJson(d),
    })}
    from ${d} where not ${d.isNew}
      and (${d.isAdded} or ${d.repriced} or ${d.reshaped} or ${d.factsChanged} or ${oldExcludedReason} is distinct from ${excludedReason})
    order by ${d.regionCode} collate "C", ${d.name} collate "C"`);
}

/** SQL of the stock of a machine that is not retired; null for a machine in no list. */
const stockOf = (reason: Column): SQL =>
  sql`case when ${reason} is null then 'available' when ${reason} = 'sold_out' then 'sold_out' end`;

const { machineId: CHANGED, changedAt: AT, after: AFTER } = machineAvailability;
/** A change at the time of an earlier one, e.g. the end of a source in the millisecond of its run, continues that one. */
const CONTINUES = sql`on conflict (${nameOf(CHANGED)}, ${nameOf(AT)}) do update set ${nameOf(AFTER)} = excluded.${nameOf(AFTER)}`;

/** Records the diff's changes of the stock of stored machines. */
export async function recordStock(db: ConnectionDatabase, { now }: ChangedBy): Promise<void> {
  const before = sql`case when ${d.wasPublished} then 'available' when ${d.wasSoldOut} then 'sold_out' end`;
  const after = stockOf(d.excludedReason);
  await db.execute(sql`
    ${insertInto(machineAvailability, { machineId: d.machineId, changedAt: now, before, after })}
    from ${d} where not ${d.isNew} and ${before} is distinct from ${after} ${CONTINUES}`);
}

/** Returns an insert of the end of the stock of machines that leave the lists. @param machine an alias: its rows have the state before */
export function endOfStock(machine: PgTable & Record<'id' | 'excludedReason', Column>, now: string): SQL {
  const before = stockOf(machine.excludedReason);
  return sql`
    ${insertInto(machineAvailability, { machineId: machine.id, changedAt: now, before, after: null })}
    from ${sql.identifier(getTableName(machine))} where ${before} is not null ${CONTINUES}`;
}

const secondsOf = (time: Column | SQL): SQL => sql`floor(extract(epoch from ${time}))::bigint`;

/** Returns `machines.stock` of a new machine: null if it can be ordered since its first read. */
export const firstStock = ({ isSoldOut }: typeof d, now: string): SQL =>
  sql`case when ${isSoldOut} then array[${secondsOf(sql`${now}::timestamptz`)}] end`;

/**
 * Returns `machines.stock` after a change at `now` between available and not, or the first listing: without the times that
 * `availableShare` does not need. The times ascend, also after the clock went back. A catalogue may change all at once, so no
 * subquery runs for each machine.
 */
export function changedStock({ stock, excludedReason, createdAt }: typeof machines, now: string): SQL {
  const changedAt = secondsOf(sql`${now}::timestamptz`);
  const before = sql`coalesce(${stock}, case when ${excludedReason} is null then array[${secondsOf(createdAt)}] end)`;
  const times = sql`(${before} || greatest(${changedAt}, (${before})[cardinality(${before})]))`;
  // The last time of more than 30 days ago stays: the state at their begin is that since it.
  const beforeShare = sql`width_bucket(${changedAt} - ${SHARE_DAYS * 24 * 3600}, ${times})`;
  return sql`${times}[greatest(1, ${beforeShare}, cardinality(${times}) - ${MOST_STOCK_CHANGES - 1}):]`;
}

const retired = alias(machines, 'retired');

/** Selects the regions of published and sold-out machines that `retiring` retires. */
export const REGIONS_OF_RETIRED = sql`
  select m.region_id from retired m where ${sql.raw(HAS_NO_OTHER_REASON)}`;

/** Returns expressions that retire machines, end their prices and record the changes. @param condition on `machines` and `from` */
export function retiring({ runId, sourceId, now }: ChangedBy, condition: SQL, from = sql``): SQL {
  const record = insertInto(machineChanges, {
    runId,
    sourceId,
    changedAt: now,
    machineId: retired.id,
    change: 'retired',
    ...stateBefore(retired),
  });
  const { validTo, machineId } = machinePrices;
  return sql`
    retired as (
      update ${machines} set ${nameOf(machines.retiredAt)} = ${now}, ${nameOf(machines.stock)} = case
        when ${machines.excludedReason} is null then ${changedStock(machines, now)} else ${machines.stock} end
      ${from} where ${condition} returning ${machines}.*
    ), out_of_stock as (
      ${endOfStock(retired, now)}
    ), closed as (
      update ${machinePrices} set ${nameOf(validTo)} = ${now} from retired
      where ${machineId} = ${retired.id} and ${validTo} is null
    ), closed_terms as (
      update ${machineTerms} set ${nameOf(machineTerms.validTo)} = ${now} from retired
      where ${machineTerms.machineId} = ${retired.id} and ${machineTerms.validTo} is null
    ), recorded as (${record} from retired)`;
}

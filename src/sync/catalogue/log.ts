import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { alias, type SQL, sql } from '../../db/connection/drizzle.ts';
import { insertInto, nameOf } from '../../db/connection/statements.ts';
import { factsJson } from '../../db/machine-facts.ts';
import { HAS_NO_OTHER_REASON } from '../../db/published-rows.ts';
import { machineChanges, machinePrices, machines, machineTerms } from '../../db/schema.ts';
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
      update ${machines} set ${nameOf(machines.retiredAt)} = ${now} ${from} where ${condition} returning ${machines}.*
    ), closed as (
      update ${machinePrices} set ${nameOf(validTo)} = ${now} from retired
      where ${machineId} = ${retired.id} and ${validTo} is null
    ), closed_terms as (
      update ${machineTerms} set ${nameOf(machineTerms.validTo)} = ${now} from retired
      where ${machineTerms.machineId} = ${retired.id} and ${machineTerms.validTo} is null
    ), recorded as (${record} from retired)`;
}

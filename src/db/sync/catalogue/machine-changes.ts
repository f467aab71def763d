/** What a run changes about machines, written in its own transaction; see schema/changes.ts. */

import { FACT_FIELDS } from '../../../domain/machine-facts.ts';
import type { SessionDatabase } from '../../connection/connect.ts';
import { type Column, type SQL, sql } from '../../connection/drizzle.ts';
import { insertInto } from '../../connection/statements.ts';
import { machineChanges } from '../../schema.ts';
import type { ChangedBy } from '../changed-by.ts';
import { catalogueDiff as d } from './compare.ts';
import { factsJson } from './machine-facts.ts';

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

/** What the diff changes about machines that were stored before; one that only another exchange rate prices is not among them. */
export async function recordChanges(
  db: SessionDatabase,
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

/** `insert … select …` of machines that are retired; what follows says from where, and `gone` has them as they were. */
export function insertRetired(
  { runId, sourceId, now: changedAt }: ChangedBy,
  gone: Record<(typeof RETIRED_COLUMNS)[number], Column>,
): SQL {
  return insertInto(machineChanges, {
    runId,
    sourceId,
    changedAt,
    machineId: gone.id,
    change: 'retired',
    oldCpu: gone.cpu,
    oldRam: gone.ram,
    oldRamUnit: gone.ramUnit,
    oldAmount: gone.sourceAmount,
    oldPer: gone.sourcePer,
    oldCurrency: gone.sourceCurrency,
    oldExcludedReason: gone.excludedReason,
    oldFacts: factsJson(gone),
  });
}

const RETIRED_COLUMNS = [
  'id',
  'cpu',
  'ram',
  'ramUnit',
  'sourceAmount',
  'sourcePer',
  'sourceCurrency',
  'excludedReason',
  ...FACT_FIELDS,
] as const;

/** What `returning` has to give of machines that are retired. */
export function retiredColumns(of: Record<(typeof RETIRED_COLUMNS)[number], Column>): SQL {
  return sql.join(
    RETIRED_COLUMNS.map((column) => sql`${of[column]}`),
    sql`, `,
  );
}

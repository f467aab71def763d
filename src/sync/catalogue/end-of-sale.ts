import type { ClientDatabase } from '../../db/connection/connect.ts';
import { alias, getTableColumns, sql } from '../../db/connection/drizzle.ts';
import { array, insertInto, nameOf } from '../../db/connection/statements.ts';
import { factsJson } from '../../db/machine-facts.ts';
import { HAS_NO_OTHER_REASON } from '../../db/published-rows.ts';
import { machineChanges, machines, providers, regions } from '../../db/schema.ts';
import { RAISE } from '../../db/versions.ts';
import { changedStock, endOfStock } from './log.ts';
import { stateBefore } from './match.ts';

const m = alias(machines, 'm');
const r = alias(regions, 'r');

/** The rule of domain/machine.ts. `least` ignores nulls, and has an index. */
const END = sql`least(${m.orderableUntil}, ${m.retiresAt})`;

/** Reasons that the end of a sale replaces: the machine could return from each of them. */
const PASSING = sql`('sold_out', 'unavailable', 'no_exchange_rate')`;

/**
 * Excludes machines whose sale has ended, and raises the versions of their regions. A run does the same for the machines that its
 * source reports; this is for a source that is unmodified, fails or is disabled. Returns the number of machines.
 *
 * It skips a provider whose rows a run compares or writes. The next call finds its machines again.
 * @param now RFC 3339
 */
export async function discontinueEnded(db: ClientDatabase, now: string): Promise<number> {
  const isDue = sql`${END} <= ${now} and ${m.retiredAt} is null and ${m.sourceId} is not null
    and (${m.excludedReason} is null or ${m.excludedReason} in ${PASSING})`;
  return db.transaction(async (tx) => {
    const free = await tx.execute<{ id: number }>(sql`
      select ${providers.id} from ${providers} where ${providers.id} in (
        select ${r.providerId} from ${machines} m join ${regions} r on ${r.id} = ${m.regionId} where ${isDue})
      order by ${providers.id} for no key update skip locked`);
    if (free.length === 0) return 0;
    const ids = array(
      free.map(({ id }) => id),
      'integer',
    );
    const due = alias(machines, 'due');
    const [row] = await tx.execute<{ count: number }>(sql`
      with due as (
        select ${sql.join(Object.values(getTableColumns(m)), sql`, `)}
        from ${machines} m join ${regions} r on ${r.id} = ${m.regionId}
        where ${isDue} and ${r.providerId} = any(${ids})
      ), excluded as (
        update ${machines} set ${nameOf(machines.excludedReason)} = 'discontinued', ${nameOf(machines.stock)} = case
          when ${due.excludedReason} is null then ${changedStock(machines, now)} else ${machines.stock} end
        from due where ${machines.id} = ${due.id}
      ), out_of_stock as (
        ${endOfStock(due, now)}
      ), recorded as (
        ${insertInto(machineChanges, {
          sourceId: due.sourceId,
          changedAt: now,
          machineId: due.id,
          change: sql`case when ${due.excludedReason} is null then 'withdrawn' else 'excluded' end`,
          ...stateBefore(due),
          cpu: due.cpu,
          ram: due.ram,
          ramUnit: due.ramUnit,
          sourceAmount: due.sourceAmount,
          sourcePer: due.sourcePer,
          sourceCurrency: due.sourceCurrency,
          excludedReason: 'discontinued',
          facts: factsJson(due),
        })} from due
        order by ${due.regionId}, ${due.name} collate "C"
      ), raised as (
        ${RAISE.region} where ${regions.id} in (
          select m.region_id from due m where ${sql.raw(HAS_NO_OTHER_REASON)})
      )
      select count(*)::int as count from due`);
    return row?.count ?? 0;
  });
}

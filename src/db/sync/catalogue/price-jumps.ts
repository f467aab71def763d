/** Price jumps: published prices that a batch changes by more than a factor. */

import { REJECTED_KEPT } from '../../../domain/rejected-rows.ts';
import type { ConnectionDatabase } from '../../connection/connect.ts';
import { type Column, type SQLWrapper, sql } from '../../connection/drizzle.ts';
import { insertInto } from '../../connection/statements.ts';
import { acceptedPrices } from '../../schema.ts';
import { catalogueDiff, catalogueMissing } from './compare.ts';

const d = catalogueDiff;
const a = acceptedPrices;

/** Sets `ratio` and `jumps`, except for accepted prices. It compares amounts, or prices if the source changed the currency. */
export async function markJumps(
  db: ConnectionDatabase,
  sourceId: string,
  { maxRatio: limit, isApproved }: { readonly maxRatio: number; readonly isApproved: boolean },
): Promise<void> {
  const inOwn = (amount: Column, otherPer: Column, price: Column) =>
    sql`case when ${d.sourceCurrency} = ${d.oldCurrency} then ${amount} * ${minutes(otherPer)} else ${price} end`;
  const before = inOwn(d.oldAmount, d.sourcePer, d.oldPrice);
  const after = inOwn(d.sourceAmount, d.oldPer, d.price);
  const ratio = sql`greatest(${after} / ${before}, ${before} / ${after})`;
  const isAccepted = sql`exists (
    select from ${a}
    where ${a.sourceId} = ${sourceId} and ${a.regionCode} = ${d.regionCode} and ${a.name} = ${d.name}
      and (${a.amount}, ${a.per}, ${a.currency}) = (${d.sourceAmount}, ${d.sourcePer}, ${d.sourceCurrency}))`;
  const mayJump = sql`${d.repriced} and (${d.wasPublished} or ${d.wasSoldOut})
    and ${before} > 0 and ${after} > 0 and not ${isAccepted}`;
  await db
    .update(d)
    .set({ ratio, jumps: sql`${ratio} > ${limit}` })
    .where(sql`${mayJump} and ${d.isPublished}`);
  if (isApproved) return;
  // A sold-out machine that jumps keeps its last price, and its batch is not held. The price counts when it is available again.
  await db
    .update(d)
    .set({
      sourceAmount: sql`${d.oldAmount}`,
      sourcePer: sql`${d.oldPer}`,
      sourceCurrency: sql`${d.oldCurrency}`,
      price: sql`${d.oldPrice}`,
      repriced: sql`false`,
      differs: sql`(${d.reshaped} or ${d.factsChanged} or ${d.termsChanged} or ${d.oldExcludedReason} is distinct from ${d.excludedReason})`,
    })
    .where(sql`${mayJump} and ${d.isSoldOut} and ${ratio} > ${limit}`);
}

/** As in domain/price.ts. `ratio` multiplies crosswise, since a quotient would be rounded. */
export const minutes = (per: SQLWrapper) =>
  sql`case ${per} when 'minute' then 1 when 'hour' then 60 else 730 * 60 end`;

/** Removes jumping rows from the diff. Their machines count as seen and keep their last good state. */
export async function setJumpsAside(db: ConnectionDatabase, sourceId: string) {
  const { machineId, regionId, name, regionCode, wasPublished, wasSoldOut } = d;
  const moved = { machineId, regionId, name, regionCode, wasPublished, wasSoldOut, tolerated: true };
  await db.execute(sql`${insertInto(catalogueMissing, moved)} from ${d} where ${d.jumps}`);
  const rows = await db
    .select()
    .from(d)
    .where(sql`${d.jumps}`)
    .orderBy(sql`${d.regionCode} collate "C"`, sql`${d.name} collate "C"`)
    .limit(REJECTED_KEPT + 1);
  const { count } = await db.delete(d).where(sql`${d.jumps}`);
  const rejected = rows.map(({ regionCode, name, ...row }) => {
    const key = `${name}@${regionCode}`;
    const price = { amount: row.sourceAmount, per: row.sourcePer, currency: row.sourceCurrency };
    const before = `${row.oldAmount} ${row.oldCurrency} per ${row.oldPer}`;
    const factor = Number(row.ratio).toPrecision(3);
    const reason = `price goes from ${before} to ${price.amount} ${price.currency} per ${price.per}, a factor of ${factor}; readers keep the last one. If it is right: fleetbook accept ${sourceId} ${key} ${price.amount}`;
    return { key, regionCode, name, code: 'price_jump' as const, reason, price };
  });
  return { count, rejected };
}

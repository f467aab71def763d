/**
 * The currency of every published price in this database, `lineage.currency`. Null says that it is not known: before the
 * first run, and in a database of an earlier release until its prices have been computed anew.
 */

import type { Database, SessionDatabase } from '../connect.ts';
import { COPY_NULL, copyField, copyLines } from '../copy.ts';
import { and, type Column, isNotNull, isNull, numeric, pgTable, type SQL, sql, text } from '../drizzle.ts';
import { minutePrice } from '../schema/columns.ts';
import { diskTypes, lineage, machinePrices, machines, organizations, regions } from '../schema.ts';
import { createTemporary, increment, type RowOf } from '../statements.ts';
import { lockOrganizations } from './lock-organizations.ts';

/** A price as its source states it, in text that is exact. */
export interface StatedPrice {
  readonly amount: string;
  readonly per: 'minute' | 'hour' | 'month';
  readonly currency: string;
}

/** Each stated price with what it is in the new currency, null where there is no rate. */
const restatedPrices = pgTable('restated_prices', {
  amount: numeric('amount').notNull(),
  per: text('per').notNull(),
  currency: text('currency').notNull(),
  price: minutePrice('price'),
});

/**
 * Whether prices in this currency may be written; it stays so until the caller's transaction ends. Whoever changes the
 * currency waits for those who write prices, and they for it.
 */
export async function isPublishedCurrency(db: SessionDatabase, currency: string): Promise<boolean> {
  const [row] = await db.select({ currency: lineage.currency }).from(lineage).for('key share');
  return row?.currency == null || row.currency === currency;
}

export type CurrencyChange =
  | { readonly outcome: 'unchanged' }
  | { readonly outcome: 'changed'; readonly from: string | undefined; readonly prices: number }
  /** Nothing was changed: these currencies, in which sources state prices that readers see, have no exchange rate. */
  | { readonly outcome: 'no rate'; readonly currencies: readonly string[] };

/**
 * Computes every stored price anew in another currency, out of what its source stated, and gives every document a new
 * version, in one transaction: readers find all prices in the one currency or all in the other.
 * @param priceOf the price per minute in the new currency; undefined where there is no rate
 */
export async function changeCurrency(
  db: SessionDatabase,
  currency: string,
  priceOf: (stated: StatedPrice) => string | undefined,
): Promise<CurrencyChange> {
  const restated = restatedPrices;
  await db.execute(createTemporary(restated, 'session'));
  await db.execute(sql`begin`);
  const [before] = await db.select({ currency: lineage.currency }).from(lineage).for('update');
  if (before?.currency === currency) return { outcome: 'unchanged' };
  const stated = await statedPrices(db);
  await copyLines(db, 'restated_prices', lines(stated, priceOf));
  const unrated = await db
    .selectDistinct({ currency: restated.currency })
    .from(restated)
    .where(sql`${restated.price} is null and (
      exists (select from ${machines} where ${machines.excludedReason} is null and ${isRestated(machines)})
      or exists (select from ${diskTypes} where ${isRestated(diskTypes)}))`)
    .orderBy(restated.currency);
  if (unrated.length > 0) return { outcome: 'no rate', currencies: unrated.map((row) => row.currency) };
  for (const table of [machines, machinePrices]) {
    await db
      .update(table)
      .set({ price: restated.price })
      .from(restated)
      .where(and(isNotNull(table.price), isRestated(table)));
  }
  await lockOrganizations(db, sql`select ${organizations.id} from ${organizations}`);
  await db.update(diskTypes).set({ price: restated.price }).from(restated).where(isRestated(diskTypes));
  await db
    .update(regions)
    .set({ version: increment(regions.version) })
    .where(isNull(regions.organizationId));
  await db.update(organizations).set({ clustersVersion: increment(organizations.clustersVersion) });
  await db.update(lineage).set({ currency, providersVersion: increment(lineage.providersVersion) });
  await db.execute(sql`commit`);
  return { outcome: 'changed', from: before?.currency ?? undefined, prices: stated.length };
}

/** Every price that some source has stated, each once. */
async function statedPrices(db: Database): Promise<StatedPrice[]> {
  return await db.execute<RowOf<StatedPrice>>(sql`
    select source_amount::text as amount, source_per as per, source_currency as currency from (
      ${sql.join(
        [machines, machinePrices, diskTypes].map(
          (t) => sql`
          select ${t.sourceAmount}, ${t.sourcePer}, ${t.sourceCurrency} from ${t} where ${t.price} is not null`,
        ),
        sql` union `,
      )}) stated
    where source_amount is not null`);
}

async function* lines(
  stated: readonly StatedPrice[],
  priceOf: (stated: StatedPrice) => string | undefined,
): AsyncGenerator<string> {
  for (const each of stated) {
    const price = priceOf(each) ?? COPY_NULL;
    yield `${each.amount}\t${each.per}\t${copyField(each.currency)}\t${price}\n`;
  }
}

/** Joins what was computed to a row that states such a price. */
function isRestated(t: Record<'sourceAmount' | 'sourcePer' | 'sourceCurrency', Column>): SQL {
  const { amount, per, currency } = restatedPrices;
  return sql`(${t.sourceAmount}, ${t.sourcePer}, ${t.sourceCurrency}) = (${amount}, ${per}, ${currency})`;
}

/**
 * The currency of every published price in this database, `lineage.currency`. Null says that it is not known: before the
 * first run, and in a database of an earlier release until its prices have been computed anew.
 */
import type { SessionSql, Sql } from '../connect.ts';
import { COPY_NULL, copyField, copyLines } from '../copy.ts';
import { lockOrganizations } from './lock-organizations.ts';

/** A price as its source states it, in text that is exact. */
export interface StatedPrice {
  readonly amount: string;
  readonly per: 'minute' | 'hour' | 'month';
  readonly currency: string;
}

export async function storedCurrency(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<{ currency: string | null }[]>`select currency from lineage`;
  return row?.currency ?? undefined;
}

/**
 * Whether prices in this currency may be written; it stays so until the caller's transaction ends. Whoever changes the
 * currency waits for those who write prices, and they for it.
 */
export async function isPublishedCurrency(sql: SessionSql, currency: string): Promise<boolean> {
  const [row] = await sql<{ currency: string | null }[]>`select currency from lineage for key share`;
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
  sql: SessionSql,
  currency: string,
  priceOf: (stated: StatedPrice) => string | undefined,
): Promise<CurrencyChange> {
  await sql`
    create temporary table restated_prices (
      amount numeric not null, per text not null, currency text not null, price numeric(38, 18))`;
  await sql`begin`;
  const [lineage] = await sql<{ currency: string | null }[]>`select currency from lineage for update`;
  if (lineage?.currency === currency) return { outcome: 'unchanged' };
  const stated = await sql<StatedPrice[]>`
    select source_amount::text as amount, source_per as per, source_currency as currency from (
      select source_amount, source_per, source_currency from machines where price is not null
      union select source_amount, source_per, source_currency from machine_prices where price is not null
      union select source_amount, source_per, source_currency from disk_types) stated
    where source_amount is not null`;
  await copyLines(sql, 'restated_prices', lines(stated, priceOf));
  const unrated = await sql<{ currency: string }[]>`
    select distinct r.currency from restated_prices r
    where r.price is null and (
      exists (select from machines m where m.excluded_reason is null and ${isRestated(sql, sql`m`)})
      or exists (select from disk_types t where ${isRestated(sql, sql`t`)}))
    order by 1`;
  if (unrated.length > 0)
    return { outcome: 'no rate', currencies: unrated.map(({ currency: unknown }) => unknown) };
  await sql`
    update machines m set price = r.price from restated_prices r
    where m.price is not null and ${isRestated(sql, sql`m`)}`;
  await sql`
    update machine_prices p set price = r.price from restated_prices r
    where p.price is not null and ${isRestated(sql, sql`p`)}`;
  await lockOrganizations(sql, sql`select id from organizations`);
  await sql`update disk_types t set price = r.price from restated_prices r where ${isRestated(sql, sql`t`)}`;
  await sql`update regions set version = version + 1 where organization_id is null`;
  await sql`update organizations set clusters_version = clusters_version + 1`;
  await sql`update lineage set currency = ${currency}, providers_version = providers_version + 1`;
  await sql`commit`;
  return { outcome: 'changed', from: lineage?.currency ?? undefined, prices: stated.length };
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

/** Joins a row `r` of what was computed to a row that states such a price. */
function isRestated(sql: SessionSql, table: ReturnType<SessionSql>) {
  return sql`(${table}.source_amount, ${table}.source_per, ${table}.source_currency) = (r.amount, r.per, r.currency)`;
}

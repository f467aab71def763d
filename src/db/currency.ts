/**
 * The published currency, `lineage.currency`, and exchange rates. The currency is null before the first run, and in a database of
 * an earlier release until all prices are computed again.
 */

import type { ReferenceRates } from '../domain/exchange-rates.ts';
import { isRateNeeded, type PricedSource } from '../domain/exchange-rates.ts';
import type { RateChange } from '../domain/run.ts';
import type { Sql } from './connection/client.ts';
import type { ConnectionDatabase, Database } from './connection/connect.ts';
import { COPY_NULL, copyField, copyLines } from './connection/copy.ts';
import { alias, and, type Column, eq, isNotNull, pgTable, type SQL, sql } from './connection/drizzle.ts';
import {
  array,
  createTemporary,
  increment,
  insertInto,
  nameOf,
  type RowOf,
} from './connection/statements.ts';
import { lockOrganizations } from './organizations.ts';
import { minutePrice } from './schema/shared-columns.ts';
import {
  diskTypes,
  exchangeRates,
  lineage,
  machinePrices,
  machines,
  organizations,
  regions,
} from './schema.ts';
import type { SourceStatus } from './sources.ts';
import { RAISE } from './versions.ts';

/** Returns the published currency; undefined while unknown. */
export async function storedCurrency(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<{ currency: string | null }[]>`select currency from lineage`;
  return row?.currency ?? undefined;
}

const isFailingRates = ({ kind, verifiedAt, lastEnded }: SourceStatus): boolean =>
  kind === 'rates' && (verifiedAt === null || ['failed', 'interrupted'].includes(lastEnded?.outcome ?? ''));

/**
 * Returns false if a source of exchange rates fails and no price needs its rates.
 * @param statuses all stored sources
 */
export async function areRatesNeeded(
  sql: Sql,
  configured: readonly PricedSource[],
  statuses: readonly SourceStatus[],
): Promise<boolean> {
  if (!statuses.some(isFailingRates)) return true;
  const [published, stated] = await Promise.all([storedCurrency(sql), statedCurrencies(sql)]);
  const wellRead = new Set(statuses.filter(({ verifiedAt }) => verifiedAt !== null).map(({ id }) => id));
  return isRateNeeded(configured, { published, stated, wellRead });
}

/** Returns the currencies of all stated prices. It reads every machine. */
async function statedCurrencies(sql: Sql): Promise<string[]> {
  const rows = await sql<{ currency: string }[]>`
    select distinct source_currency as currency from machines where retired_at is null and source_currency is not null
    union select source_currency from disk_types`;
  return rows.map(({ currency }) => currency);
}

/** A price exactly as its source states it. */
export interface StatedPrice {
  readonly amount: string;
  readonly per: 'minute' | 'hour' | 'month';
  readonly currency: string;
}

/** Each stated price, converted to the new currency; null without a rate. */
const restatedPrices = pgTable('restated_prices', (c) => ({
  amount: c.numeric('amount').notNull(),
  per: c.text('per').notNull(),
  currency: c.text('currency').notNull(),
  price: minutePrice('price'),
}));

/**
 * Returns whether prices in this currency may be written, until the end of the transaction: a change of the currency waits for
 * transactions that write prices, and they wait for it.
 */
export async function isPublishedCurrency(db: ConnectionDatabase, currency: string): Promise<boolean> {
  const [row] = await db.select({ currency: lineage.currency }).from(lineage).for('key share');
  return row?.currency == null || row.currency === currency;
}

export type CurrencyChange =
  | { readonly outcome: 'unchanged' }
  | { readonly outcome: 'changed'; readonly from: string | undefined; readonly prices: number }
  /** Nothing changed: these currencies of published prices have no exchange rate. */
  | { readonly outcome: 'no rate'; readonly currencies: readonly string[] };

/**
 * Converts every stated price to another currency and gives every document a new version, in one transaction: readers find all
 * prices in the same currency.
 * @param priceOf returns the price per minute in the new currency; undefined without a rate
 */
export async function changeCurrency(
  db: ConnectionDatabase,
  currency: string,
  priceOf: (stated: StatedPrice) => string | undefined,
): Promise<CurrencyChange> {
  const restated = restatedPrices;
  await db.execute(createTemporary(restated, 'connection'));
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
  await db.execute(sql`${RAISE.region} where ${regions.organizationId} is null`);
  await db.execute(RAISE.clusters);
  await db.update(lineage).set({ currency, providersVersion: increment(lineage.providersVersion) });
  await db.execute(sql`commit`);
  return { outcome: 'changed', from: before?.currency ?? undefined, prices: stated.length };
}

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

/** Joins a converted price to a row with the stated price. */
function isRestated(t: Record<'sourceAmount' | 'sourcePer' | 'sourceCurrency', Column>): SQL {
  const { amount, per, currency } = restatedPrices;
  return sql`(${t.sourceAmount}, ${t.sourcePer}, ${t.sourceCurrency}) = (${amount}, ${per}, ${currency})`;
}

const { currency, perEuro, asOf } = exchangeRates;
const given = alias(exchangeRates, 'excluded');

/** Returns the latest reference rates; undefined before the first. */
export async function storedRates(db: Database): Promise<ReferenceRates | undefined> {
  const rows = await db
    .select()
    .from(exchangeRates)
    .where(eq(asOf, sql`(select max(${asOf}) from ${exchangeRates})`));
  const [first] = rows;
  if (!first) return undefined;
  return { asOf: first.asOf, perEuro: Object.fromEntries(rows.map((row) => [row.currency, row.perEuro])) };
}

export interface RatesWritten {
  readonly added: number;
  readonly changed: number;
  /** Rates with another value, not those with only another date. */
  readonly rates: readonly RateChange[];
}

/** Stores the rates of a day, unless later ones are stored: a stale mirror must not restore old rates. */
export async function writeRates(db: Database, rates: ReferenceRates): Promise<RatesWritten> {
  const currencies = Object.keys(rates.perEuro);
  const units = Object.values(rates.perEuro);
  const before = await ratesByCurrency(db);
  const rows = await db.execute<{ isNew: boolean; currency: string; perEuro: string }>(sql`
    ${insertInto(exchangeRates, { currency: sql`w.currency`, perEuro: sql`w.per_euro`, asOf: rates.asOf })}
    from unnest(${array(currencies, 'text')}, ${array(units, 'numeric')}) w (currency, per_euro)
    where not exists (select from ${exchangeRates} where ${asOf} > ${rates.asOf})
    on conflict (${nameOf(currency)}) do update
    set ${nameOf(perEuro)} = ${given.perEuro}, ${nameOf(asOf)} = ${given.asOf}
    where (${perEuro}, ${asOf}) is distinct from (${given.perEuro}, ${given.asOf})
    returning xmax = 0 as "isNew", ${currency}, ${perEuro}::text as "perEuro"`);
  const added = rows.filter((row) => row.isNew).length;
  const changes = rows
    .map((row) => ({ currency: row.currency, before: before.get(row.currency) ?? null, after: row.perEuro }))
    .filter((change) => change.before === null || Number(change.before) !== Number(change.after))
    .toSorted((one, other) => (one.currency < other.currency ? -1 : 1));
  return { added, changed: rows.length - added, rates: changes };
}

async function ratesByCurrency(db: Database): Promise<Map<string, string>> {
  const rows = await db.select({ currency, perEuro }).from(exchangeRates);
  return new Map(rows.map((row) => [row.currency, row.perEuro]));
}

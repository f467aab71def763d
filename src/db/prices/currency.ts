/** The published currency, `lineage.currency`, which is null before the first run, and exchange rates. */
import { isRateNeeded, type PricedSource, type ReferenceRates } from '../../domain/prices/exchange-rates.ts';
import type { SourcePrice } from '../../domain/prices/price.ts';
import type { StoredRegionPrice } from '../../domain/prices/region-price.ts';
import type { StoredTerms } from '../../domain/prices/term.ts';
import type { ConnectionDatabase, Database } from '../connection/connect.ts';
import { COPY_NULL, copyField, copyLines } from '../connection/copy.ts';
import {
  and,
  type Column,
  eq,
  isNotNull,
  type PgColumn,
  pgTable,
  type SQL,
  sql,
} from '../connection/drizzle.ts';
import { increment, nameOf, type RowOf } from '../connection/statements.ts';
import { lockOrganizations } from '../organizations.ts';
import { minutePrice } from '../schema/shared-columns.ts';
import {
  clusters,
  databasePlanPrices,
  databasePlans,
  diskTypes,
  exchangeRates,
  lineage,
  machinePrices,
  machines,
  machineTerms,
  organizations,
  priceBookEntries,
  regionPrices,
  regions,
} from '../schema.ts';
import type { SourceStatus } from '../sources.ts';
import { RAISE } from '../versions.ts';
import { storeCreationPrices } from './creation-prices.ts';

export async function storedCurrency(db: Database): Promise<string | undefined> {
  const [row] = await db.select({ currency: lineage.currency }).from(lineage);
  return row?.currency ?? undefined;
}

const isFailingRates = ({ kind, verifiedAt, lastEnded }: SourceStatus): boolean =>
  kind === 'rates' && (verifiedAt === null || ['failed', 'interrupted'].includes(lastEnded?.outcome ?? ''));

/** Returns false if a source of exchange rates fails and no price needs its rates. @param statuses all stored sources */
export async function areRatesNeeded(
  db: Database,
  configured: readonly PricedSource[],
  statuses: readonly SourceStatus[],
): Promise<boolean> {
  if (!statuses.some(isFailingRates)) return true;
  const [published, stated] = await Promise.all([storedCurrency(db), statedCurrencies(db)]);
  const wellRead = new Set(statuses.filter(({ verifiedAt }) => verifiedAt !== null).map(({ id }) => id));
  return isRateNeeded(configured, { published, stated, wellRead });
}

async function statedCurrencies(db: Database): Promise<string[]> {
  const rows = await db.execute<{ currency: string }>(sql`
    select distinct ${machines.sourceCurrency} as currency from ${machines}
    where ${machines.retiredAt} is null and ${machines.sourceCurrency} is not null
    union select ${diskTypes.sourceCurrency} from ${diskTypes}`);
  return rows.map(({ currency }) => currency);
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

/** Converts stored prices to the new currency. Amounts without an exchange rate are left out; null if none is left. */
export interface JsonConverter {
  terms(stored: StoredTerms): StoredTerms | null;
  regionPrices(stored: readonly StoredRegionPrice[]): readonly StoredRegionPrice[] | null;
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
 * @param convert does the same for terms and prices of regions
 */
export async function changeCurrency(
  db: ConnectionDatabase,
  currency: string,
  priceOf: (stated: SourcePrice) => string | undefined,
  convert: JsonConverter,
): Promise<CurrencyChange> {
  const restated = restatedPrices;
  await db.execute(sql`begin`);
  const [before] = await db.select({ currency: lineage.currency }).from(lineage).for('update');
  if (before?.currency === currency) return { outcome: 'unchanged' };
  const stated = await statedPrices(db);
  await copyLines(db, restated, lines(stated, priceOf));
  const unrated = await db
    .selectDistinct({ currency: restated.currency })
    .from(restated)
    .where(sql`${restated.price} is null and (
      exists (select from ${machines} where ${machines.excludedReason} is null and ${isRestated(machines)})
      or exists (select from ${diskTypes} where ${isRestated(diskTypes)}))`)
    .orderBy(restated.currency);
  if (unrated.length > 0) return { outcome: 'no rate', currencies: unrated.map((row) => row.currency) };
  for (const table of [machines, machinePrices, databasePlans, databasePlanPrices]) {
    await db
      .update(table)
      .set({ price: restated.price })
      .from(restated)
      .where(and(isNotNull(table.price), isRestated(table)));
  }
  await convertJsonPrices(db, convert);
  await lockOrganizations(db, sql`select ${organizations.id} from ${organizations}`);
  await db.update(diskTypes).set({ price: restated.price }).from(restated).where(isRestated(diskTypes));
  const from = before?.currency ?? undefined;
  if (from !== undefined && !(await restateFixedPrices(db, from, priceOf)))
    return { outcome: 'no rate', currencies: [from] };
  await db.execute(sql`${RAISE.region} where ${regions.organizationId} is null`);
  // The history of prices has just been converted.
  await db.update(clusters).set({ creationAsOf: null });
  await storeCreationPrices(db, sql`true`, new Date().toISOString());
  await db.execute(RAISE.clusters);
  await db.update(lineage).set({ currency, providersVersion: increment(lineage.providersVersion) });
  await db.execute(sql`commit`);
  return { outcome: 'changed', from, prices: stated.length };
}

async function convertJsonPrices(db: ConnectionDatabase, convert: JsonConverter): Promise<void> {
  await convertJson(db, [machines.terms, machineTerms.terms], convert.terms, sql`'{"terms": {}}'`);
  await convertJson(db, [regions.prices, regionPrices.prices], convert.regionPrices, sql`'[]'`);
}

const convertedJson = pgTable('converted_json', (c) => ({
  before: c.jsonb('before').notNull(),
  after: c.jsonb('after'),
}));

/** @param none the value of a history without any amount */
async function convertJson<T>(
  db: ConnectionDatabase,
  columns: readonly [current: PgColumn, history: PgColumn],
  convert: (stored: T) => T | null,
  none: SQL,
): Promise<void> {
  const stored = await db.execute<RowOf<{ text: string }>>(
    sql.join(
      columns.map(
        (column) => sql`select ${column}::text as text from ${column.table} where ${column} is not null`,
      ),
      sql` union `,
    ),
  );
  if (stored.length === 0) return;
  await copyLines(db, convertedJson, jsonLines(stored, convert));
  const { before, after } = convertedJson;
  for (const column of columns) {
    const value = column.notNull ? sql`coalesce(${after}, ${none})` : after;
    await db.execute(sql`
      update ${column.table} set ${nameOf(column)} = ${value} from ${convertedJson} where ${column} = ${before}`);
  }
  await db.execute(sql`drop table ${convertedJson}`);
}

async function* jsonLines<T>(
  stored: readonly { readonly text: string }[],
  convert: (stored: T) => T | null,
): AsyncGenerator<string> {
  for (const { text } of stored) {
    const after = convert(JSON.parse(text));
    yield `${copyField(text)}\t${after === null ? COPY_NULL : copyField(JSON.stringify(after))}\n`;
  }
}

/**
 * Converts the fixed prices of all price books from a currency, for a change of the published one. Returns false if the
 * currency has no exchange rate.
 */
async function restateFixedPrices(
  db: ConnectionDatabase,
  currency: string,
  priceOf: (stated: SourcePrice) => string | undefined,
): Promise<boolean> {
  const { id, price } = priceBookEntries;
  const fixed = await db.select({ id, price }).from(priceBookEntries).where(isNotNull(price));
  for (const entry of fixed) {
    const converted = priceOf({ amount: entry.price ?? '0', per: 'minute', currency });
    if (converted === undefined) return false;
    await db.update(priceBookEntries).set({ price: converted }).where(eq(id, entry.id));
  }
  return true;
}

async function statedPrices(db: Database): Promise<SourcePrice[]> {
  return await db.execute<RowOf<SourcePrice>>(sql`
    select source_amount::text as amount, source_per as per, source_currency as currency from (
      ${sql.join(
        [machines, machinePrices, databasePlans, databasePlanPrices, diskTypes].map(
          (t) => sql`
          select ${t.sourceAmount}, ${t.sourcePer}, ${t.sourceCurrency} from ${t} where ${t.price} is not null`,
        ),
        sql` union `,
      )}) stated
    where source_amount is not null`);
}

async function* lines(
  stated: readonly SourcePrice[],
  priceOf: (stated: SourcePrice) => string | undefined,
): AsyncGenerator<string> {
  for (const each of stated) {
    const price = priceOf(each) ?? COPY_NULL;
    yield `${each.amount}\t${each.per}\t${copyField(each.currency)}\t${price}\n`;
  }
}

function isRestated(t: Record<'sourceAmount' | 'sourcePer' | 'sourceCurrency', Column>): SQL {
  const { amount, per, currency } = restatedPrices;
  return sql`(${t.sourceAmount}, ${t.sourcePer}, ${t.sourceCurrency}) = (${amount}, ${per}, ${currency})`;
}

export async function storedRates(db: Database): Promise<ReferenceRates | undefined> {
  const rows = await db
    .select()
    .from(exchangeRates)
    .where(eq(exchangeRates.asOf, sql`(select max(${exchangeRates.asOf}) from ${exchangeRates})`));
  const [first] = rows;
  if (!first) return undefined;
  return { asOf: first.asOf, perEuro: Object.fromEntries(rows.map((row) => [row.currency, row.perEuro])) };
}

/** Stores the rates of a day, unless later ones are stored: a stale mirror must not restore old rates. */
export async function writeRates(db: Database, rates: ReferenceRates) {
  const stored = await db.select().from(exchangeRates);
  if (stored.some((row) => row.asOf > rates.asOf)) return { added: 0, changed: 0, rates: [] };
  const before = new Map(stored.map((row) => [row.currency, row]));
  const isSame = (currency: string, perEuro: string) =>
    Number(before.get(currency)?.perEuro) === Number(perEuro);
  const given = Object.entries(rates.perEuro).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const written = given.filter(
    ([currency, perEuro]) => !isSame(currency, perEuro) || before.get(currency)?.asOf !== rates.asOf,
  );
  if (written.length > 0) {
    await db
      .insert(exchangeRates)
      .values(written.map(([currency, perEuro]) => ({ currency, perEuro, asOf: rates.asOf })))
      .onConflictDoUpdate({
        target: exchangeRates.currency,
        set: { perEuro: sql`excluded.per_euro`, asOf: rates.asOf },
      });
  }
  const added = written.filter(([currency]) => !before.has(currency)).length;
  const changes = written
    .filter(([currency, perEuro]) => !isSame(currency, perEuro))
    .map(([currency, after]) => ({ currency, before: before.get(currency)?.perEuro ?? null, after }));
  return { added, changed: written.length - added, rates: changes };
}

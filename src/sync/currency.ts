/** The currency in which prices are stored and published, and the rates into it. */

import type { SessionDatabase, Store } from '../db/connection/connect.ts';
import {
  type CurrencyChange,
  changeCurrency,
  isPublishedCurrency,
  storedCurrency,
  storedRates,
} from '../db/currency.ts';
import { exchangeRates } from '../domain/exchange-rates.ts';
import { type ExchangeRates, pricePerMinute } from '../domain/price.ts';
import { SourceError } from '../sources/source.ts';

/** The published currency, and the rates into it. */
export interface Pricing {
  readonly currency: string;
  readonly rates: ExchangeRates;
}

/** Configured by the operator. */
export interface CurrencySettings {
  readonly CATALOGUE_CURRENCY: string;
  /** Into that currency. */
  readonly CATALOGUE_RATES?: ExchangeRates | undefined;
}

/** The published currency is the database's own; the setting counts for a database that has none yet. */
export async function currentPricing(store: Store, settings: CurrencySettings, now: Date): Promise<Pricing> {
  const currency = (await storedCurrency(store.sql)) ?? settings.CATALOGUE_CURRENCY;
  return { currency, rates: await ratesInto(currency, store, settings, now) };
}

/** Converts all stored prices to the configured currency. */
export async function adoptCurrency(
  store: Store,
  settings: CurrencySettings,
  now: Date,
): Promise<CurrencyChange> {
  const { CATALOGUE_CURRENCY: currency } = settings;
  if ((await storedCurrency(store.sql)) === currency) return { outcome: 'unchanged' };
  const rates = await ratesInto(currency, store, settings, now);
  // Ending the session is the rollback.
  await using session = store.session();
  return await changeCurrency(session.db, currency, (price) => pricePerMinute(price, currency, rates));
}

/**
 * Called in the transaction that stores prices, before any is written.
 * @throws SourceError when the currency was changed since the batch was priced
 */
export async function checkCurrency(db: SessionDatabase, { currency }: Pricing): Promise<void> {
  if (await isPublishedCurrency(db, currency)) return;
  throw new SourceError('retry', 'the published currency was changed while the source was read');
}

/** The configured rates, and the reference rates for all other currencies while these are young enough. */
async function ratesInto(
  currency: string,
  store: Store,
  settings: CurrencySettings,
  now: Date,
): Promise<ExchangeRates> {
  const reference = await storedRates(store.db);
  const known = reference ? exchangeRates(reference, currency, now) : {};
  return currency === settings.CATALOGUE_CURRENCY ? { ...known, ...settings.CATALOGUE_RATES } : known;
}

import type { ConnectionDatabase, Store } from '../db/connection/connect.ts';
import {
  type CurrencyChange,
  changeCurrency,
  isPublishedCurrency,
  storedCurrency,
  storedRates,
} from '../db/prices/currency.ts';
import { exchangeRates } from '../domain/prices/exchange-rates.ts';
import { type ExchangeRates, pricePerMinute } from '../domain/prices/price.ts';
import { restatedRegionPrices } from '../domain/prices/region-price.ts';
import { restatedTerms } from '../domain/prices/term.ts';
import { SourceError } from '../sources/source.ts';

export interface Pricing {
  readonly currency: string;
  readonly rates: ExchangeRates;
}

export interface CurrencySettings {
  readonly CATALOGUE_CURRENCY: string;
  /** Units of that currency for one of each other. */
  readonly CATALOGUE_RATES?: ExchangeRates | undefined;
}

/** Returns the database's currency with its rates. The setting applies only to a database without one. */
export async function currentPricing(store: Store, settings: CurrencySettings, now: Date): Promise<Pricing> {
  const currency = (await storedCurrency(store.db)) ?? settings.CATALOGUE_CURRENCY;
  return { currency, rates: await ratesInto(currency, store, settings, now) };
}

/** Converts all stored prices to the configured currency. */
export async function adoptCurrency(
  store: Store,
  settings: CurrencySettings,
  now: Date,
): Promise<CurrencyChange> {
  const { CATALOGUE_CURRENCY: currency } = settings;
  if ((await storedCurrency(store.db)) === currency) return { outcome: 'unchanged' };
  const rates = await ratesInto(currency, store, settings, now);
  // The end of the connection is the rollback.
  await using connection = store.connection();
  return await changeCurrency(connection.db, currency, (price) => pricePerMinute(price, currency, rates), {
    terms: (stored) => restatedTerms(stored, currency, rates),
    regionPrices: (stored) => restatedRegionPrices(stored, currency, rates),
  });
}

/** @throws SourceError if the currency has changed since the batch was priced */
export async function checkCurrency(db: ConnectionDatabase, { currency }: Pricing): Promise<void> {
  if (await isPublishedCurrency(db, currency)) return;
  throw new SourceError('retry', 'the published currency was changed while the source was read');
}

/** Returns the configured rates, and for all other currencies the reference rates if they are recent. */
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

/** In which currency prices are stored and published, and by which rates they get there. */

import type { SessionSql, Store } from '../db/connect.ts';
import {
  type CurrencyChange,
  changeCurrency,
  isPublishedCurrency,
  storedCurrency,
} from '../db/queries/currency.ts';
import { storedRates } from '../db/queries/rates.ts';
import { minutePricer } from '../domain/minute-price.ts';
import type { ExchangeRates } from '../domain/price.ts';
import { exchangeRates } from '../domain/rates.ts';
import { SourceError } from '../sources/source.ts';
import type { Pricing } from './stage.ts';

/** What an operator has set. */
export interface CurrencySettings {
  readonly CATALOGUE_CURRENCY: string;
  /** Into that currency. */
  readonly CATALOGUE_RATES?: ExchangeRates | undefined;
}

/** The database says in which currency it publishes; the setting speaks for one that does not know yet. */
export async function currentPricing(store: Store, settings: CurrencySettings, now: Date): Promise<Pricing> {
  const currency = (await storedCurrency(store.sql)) ?? settings.CATALOGUE_CURRENCY;
  return { currency, rates: await ratesInto(currency, store, settings, now) };
}

/** Makes the setting's currency the one of all stored prices. */
export async function adoptCurrency(
  store: Store,
  settings: CurrencySettings,
  now: Date,
): Promise<CurrencyChange> {
  const { CATALOGUE_CURRENCY: currency } = settings;
  if ((await storedCurrency(store.sql)) === currency) return { outcome: 'unchanged' };
  const priceOf = minutePricer(currency, await ratesInto(currency, store, settings, now));
  // Ending the session is the rollback.
  await using session = store.session();
  return await changeCurrency(session.sql, currency, priceOf);
}

/**
 * To be called in the transaction that stores prices, before any is written.
 * @throws SourceError when the currency was changed since the batch was priced
 */
export async function checkCurrency(sql: SessionSql, { currency }: Pricing): Promise<void> {
  if (await isPublishedCurrency(sql, currency)) return;
  throw new SourceError('retry', 'the published currency was changed while the source was read');
}

/** The configured rates, and for every other currency the reference rates, as long as these are young enough. */
async function ratesInto(
  currency: string,
  store: Store,
  settings: CurrencySettings,
  now: Date,
): Promise<ExchangeRates> {
  const reference = await storedRates(store.sql);
  const known = reference ? exchangeRates(reference, currency, now) : {};
  return currency === settings.CATALOGUE_CURRENCY ? { ...known, ...settings.CATALOGUE_RATES } : known;
}

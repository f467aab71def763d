import Big from 'big.js';
import type { ExchangeRates } from './price.ts';

const Exact = Big();
Exact.DP = 18;
Exact.RM = Exact.roundHalfEven;
Exact.PE = 40;
Exact.NE = -19;

/** Rates of one day, as the European Central Bank states them: units of each currency for one euro. */
export interface ReferenceRates {
  /** `YYYY-MM-DD`: the day for which they hold. */
  readonly asOf: string;
  readonly perEuro: Readonly<Record<string, string>>;
}

/** Older rates say nothing of today's prices: prices that need them keep their last value. */
const RATES_HOLD_FOR_DAYS = 7;

/**
 * Units of the published currency for one of every other. Empty when the rates are too old on `today`, or do not know
 * the published currency: a price is then held, not guessed.
 */
export function exchangeRates(reference: ReferenceRates, published: string, today: Date): ExchangeRates {
  const age = today.getTime() - Date.parse(`${reference.asOf}T00:00:00Z`);
  if (!(age <= (RATES_HOLD_FOR_DAYS + 1) * 86_400_000)) return {};
  const perEuro: Readonly<Record<string, string>> = { ...reference.perEuro, EUR: '1' };
  const own = perEuro[published];
  if (own === undefined) return {};
  const rates: Record<string, string> = {};
  for (const [currency, units] of Object.entries(perEuro))
    rates[currency] = new Exact(own).div(units).toFixed();
  return rates;
}

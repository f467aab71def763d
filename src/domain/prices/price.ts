import Big from 'big.js';

// Half-even at 18 places: rounding that neither drifts upwards over a million offers nor depends on their order.
const Exact = Big();
Exact.DP = 18;
Exact.RM = Exact.roundHalfEven;
Exact.NE = -19;
Exact.PE = 40;

/** What one amount pays for. A month is 730 hours, the figure that providers themselves use. */
export type BillingPeriod = 'minute' | 'hour' | 'month';

const MINUTES: Record<BillingPeriod, number> = { minute: 1, hour: 60, month: 730 * 60 };

/** A price exactly as its source states it. `amount` is a plain decimal string, e.g. `"0.0052"`. */
export interface SourcePrice {
  readonly amount: string;
  readonly per: BillingPeriod;
  /** ISO 4217 code, upper case. */
  readonly currency: string;
}

/** Units of the published currency for one unit of the other, as decimal strings: `{EUR: "1.08"}`. */
export type ExchangeRates = Readonly<Record<string, string>>;

/**
 * The shortest plain decimal string for what a source sent (`"0.0052000000"` → `"0.0052"`, `1e-7` → `"0.0000001"`),
 * or undefined when it is no finite decimal number.
 */
export function decimal(value: string | number): string | undefined {
  if (typeof value === 'string' && !/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$/.test(value))
    return undefined;
  if (typeof value === 'number' && !Number.isFinite(value)) return undefined;
  // Big reads no leading plus.
  return new Exact(typeof value === 'string' ? value.replace(/^\+/, '') : value).toFixed();
}

/** The exact product of two decimal strings, e.g. of a price in cents and `"0.01"`. */
export function product(amount: string, factor: string): string {
  return new Exact(amount).times(factor).toFixed();
}

/** True when the decimal string is greater than zero. */
export function isPositive(amount: string): boolean {
  return new Exact(amount).gt(0);
}

/**
 * Price per minute in the published currency, a decimal string of at most 18 places; undefined when there is no
 * exchange rate for the source's currency. Source: contract, "Price per minute".
 */
export function pricePerMinute(
  price: SourcePrice,
  publishedCurrency: string,
  rates: ExchangeRates,
): string | undefined {
  const rate = price.currency === publishedCurrency ? '1' : rates[price.currency];
  if (rate === undefined) return undefined;
  return new Exact(price.amount).times(rate).div(MINUTES[price.per]).toFixed();
}

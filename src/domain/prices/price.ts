import Big from 'big.js';

/** Places of a price per minute. */
const SCALE = 18;
/** Places of a price that is calculated from a rounded one. */
const DERIVED_SCALE = 15;
const HOURLY_SCALE = 12;

// Half-even rounding neither drifts upwards over a million offers nor depends on their order.
const Exact = Big();
Exact.DP = SCALE;
Exact.RM = Exact.roundHalfEven;
Exact.NE = -19;
Exact.PE = 40;

/** A month has 730 hours, the figure that providers themselves use. */
export const HOURS_PER_MONTH = 730;
export const PERIOD_MINUTES = { minute: 1, hour: 60, month: HOURS_PER_MONTH * 60 } as const;
export const MINUTES_PER_MONTH = PERIOD_MINUTES.month;
export type BillingPeriod = keyof typeof PERIOD_MINUTES;

const { minute, hour, month } = PERIOD_MINUTES;
const MINUTES = { minute: BigInt(minute), hour: BigInt(hour), month: BigInt(month) } as const;

export interface SourcePrice {
  /** A plain decimal, e.g. `"0.0052"`. */
  readonly amount: string;
  readonly per: BillingPeriod;
  /** ISO 4217 code, upper case. */
  readonly currency: string;
}

/** Units of the published currency for one unit of the other, as decimal strings: `{EUR: "1.08"}`. */
export type ExchangeRates = Readonly<Record<string, string>>;

/** The largest exponent gives a thousand digits. */
const LONGEST_DECIMAL = 1100;
const DECIMAL = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$/;

/** Returns the shortest plain decimal (`"0.0052000000"` → `"0.0052"`, `1e-7` → `"0.0000001"`); undefined for anything else. */
export function decimal(value: string | number): string | undefined {
  if (typeof value === 'string' && !(value.length <= LONGEST_DECIMAL && DECIMAL.test(value)))
    return undefined;
  if (typeof value === 'number' && !Number.isFinite(value)) return undefined;
  // Big rejects a leading plus.
  return new Exact(typeof value === 'string' ? value.replace(/^\+/, '') : value).toFixed();
}

export function product(amount: string, factor: string): string {
  return new Exact(amount).times(factor).toFixed();
}

/** Returns the quotient of two decimal strings, rounded to 18 places. */
export function quotient(amount: string, divisor: string): string {
  return new Exact(amount).div(divisor).toFixed();
}

/**
 * Returns the amount without a percentage of it, rounded half to even at 15 places. The last digits of a price per minute are
 * those of a rounded quotient: a product with as many places would show them, as 0.0002999999999999997 for 0.0003.
 */
export function percentOff(amount: string, percent: string): string {
  const left = new Exact(100).minus(percent).times('0.01');
  return new Exact(amount).times(left).round(DERIVED_SCALE, Big.roundHalfEven).toFixed();
}

/**
 * Returns the price per hour, rounded half to even. The last digits of a price per minute are those of a rounded quotient, and 60
 * times the price would show them. @param places a stated price of 18 places leaves 15
 */
export function pricePerHour(perMinute: string, places = HOURLY_SCALE): string {
  return new Exact(perMinute).times(PERIOD_MINUTES.hour).round(places, Big.roundHalfEven).toFixed();
}

/** Returns the exact difference of two numbers, as their decimals state them. */
export function difference(a: number, b: number): number {
  return new Exact(a).minus(b).toNumber();
}

/** Returns the exact sum of numbers, as their decimals state them. */
export function sumOf(amounts: readonly number[]): number {
  return amounts.reduce((sum, amount) => sum.plus(amount), new Exact(0)).toNumber();
}

/** Returns a quotient of numbers, rounded half to even. */
export function ratio(value: number, of: number, places: number): number {
  return new Exact(value).div(of).round(places, Big.roundHalfEven).toNumber();
}

/** Returns what recurs of an effective price per minute, without a payment once for this many minutes, to 15 places. */
export function recurringPrice(effective: number, once: number, minutes: number): number {
  const left = new Exact(effective)
    .minus(new Exact(once).div(minutes))
    .round(DERIVED_SCALE, Big.roundHalfEven);
  return left.lt(0) ? 0 : left.toNumber();
}

export function isPositive(amount: string): boolean {
  return new Exact(amount).gt(0);
}

/**
 * Returns the price per minute in the published currency, a decimal string of at most 18 places, rounded half to even;
 * undefined without an exchange rate. BigInt: a catalogue has a million prices, and Big takes fifty times as long.
 */
export function pricePerMinute(
  { amount, per, currency }: SourcePrice,
  publishedCurrency: string,
  rates: ExchangeRates,
): string | undefined {
  return converted(unscaled(amount), MINUTES[per], currency, publishedCurrency, rates);
}

type Stated = Readonly<Record<'amount' | 'per' | 'currency', string | null>>;
export const isSamePrice = (one: Stated, other: Stated): boolean =>
  one.amount === other.amount && one.per === other.per && one.currency === other.currency;

/** Does the same as `pricePerMinute` for an amount that is paid once. */
export function amountIn(
  { amount, currency }: Pick<SourcePrice, 'amount' | 'currency'>,
  publishedCurrency: string,
  rates: ExchangeRates,
): string | undefined {
  return converted(unscaled(amount), 1n, currency, publishedCurrency, rates);
}

/** Does the same for a recurring price and a payment once for this many minutes. It rounds the sum once. */
export function spreadPerMinute(
  { amount, per, currency }: SourcePrice,
  once: { readonly amount: string; readonly minutes: number },
  publishedCurrency: string,
  rates: ExchangeRates,
): string | undefined {
  const [units, places] = unscaled(amount);
  const [onceUnits, oncePlaces] = unscaled(once.amount);
  const [minutes, onceMinutes] = [MINUTES[per], BigInt(once.minutes)];
  const most = Math.max(places, oncePlaces);
  const sum =
    units * 10n ** BigInt(most - places) * onceMinutes +
    onceUnits * 10n ** BigInt(most - oncePlaces) * minutes;
  return converted([sum, most], minutes * onceMinutes, currency, publishedCurrency, rates);
}

/** units / 10^places */
export type Unscaled = readonly [units: bigint, places: number];

function converted(
  [units, places]: Unscaled,
  parts: bigint,
  currency: string,
  publishedCurrency: string,
  rates: ExchangeRates,
): string | undefined {
  const rate = currency === publishedCurrency ? '1' : rates[currency];
  if (rate === undefined) return undefined;
  const [rateUnits, ratePlaces] = unscaled(rate);
  const product = units * rateUnits;
  const isNegative = product < 0n;
  const atoms = rounded([isNegative ? -product : product, places + ratePlaces], SCALE, parts);
  const digits = atoms.toString().padStart(SCALE + 1, '0');
  const plain = `${digits.slice(0, -SCALE)}.${digits.slice(-SCALE)}`
    .replace(/(?<!0)0+$/, '')
    .replace(/\.$/, '');
  return isNegative && atoms > 0n ? `-${plain}` : plain;
}

export function unscaled(text: string): Unscaled {
  const plain = /^-?\d+(\.\d*)?$/.test(text) ? text : new Exact(text).toFixed();
  const point = plain.indexOf('.');
  return point < 0 ? [BigInt(plain), 0] : [BigInt(plain.replace('.', '')), plain.length - 1 - point];
}

/** Returns the number nearest to units of 10^-places. It has no more digits than they have. */
export function numberOf(units: bigint, places: number): number {
  const isSafe = units <= Number.MAX_SAFE_INTEGER && units >= Number.MIN_SAFE_INTEGER;
  return isSafe ? Number(units) / 10 ** places : Number(`${units}e-${places}`);
}

/** Returns a value that is not negative, divided, in units of 10^-to, rounded half to even. */
export function rounded([units, places]: Unscaled, to: number, divisor = 1n): bigint {
  const dividend = units * 10n ** BigInt(Math.max(0, to - places));
  const by = divisor * 10n ** BigInt(Math.max(0, places - to));
  const quotient = dividend / by;
  const twiceRest = (dividend % by) * 2n;
  return twiceRest > by || (twiceRest === by && quotient % 2n === 1n) ? quotient + 1n : quotient;
}

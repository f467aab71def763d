import { type BillingPeriod, type ExchangeRates, pricePerMinute, type SourcePrice } from './price.ts';

/** Places of a price per minute. */
const SCALE = 18;
/** Digits of one step of the division. The remainder before it is below a month's minutes, so that the step is exact. */
const CHUNK = 9;
/** A decimal of at most this many characters is an exact integer without its point. */
const SHORT = 15;
const MINUTES: Record<BillingPeriod, number> = { minute: 1, hour: 60, month: 730 * 60 };

/**
 * `pricePerMinute` for a whole catalogue: the same result to the last digit. The short decimals that providers print
 * are converted in whole numbers that a double holds exactly, a tenth of the time; whatever is longer goes the long
 * way.
 */
export function minutePricer(
  publishedCurrency: string,
  rates: ExchangeRates,
): (price: SourcePrice) => string | undefined {
  const factors = new Map<string, Short | undefined>([[publishedCurrency, { units: 1, places: 0 }]]);
  for (const [currency, rate] of Object.entries(rates)) {
    if (currency !== publishedCurrency) factors.set(currency, short(rate));
  }
  return (price) => {
    const factor = factors.get(price.currency);
    const amount = factor && short(price.amount);
    return (
      (amount && divided(amount.units * factor.units, amount.places + factor.places, MINUTES[price.per])) ??
      pricePerMinute(price, publishedCurrency, rates)
    );
  };
}

/** units / 10^places */
interface Short {
  readonly units: number;
  readonly places: number;
}

/** Undefined for what is no short plain decimal without a sign. */
function short(text: string): Short | undefined {
  if (text.length === 0 || text.length > SHORT) return undefined;
  let units = 0;
  let point = -1;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit >= 0 && digit <= 9) units = units * 10 + digit;
    else if (digit === -2 && point < 0) point = i;
    else return undefined;
  }
  return { units, places: point < 0 ? 0 : text.length - 1 - point };
}

/** units / 10^places / divisor at 18 places, half to even; undefined where doubles would not be exact. */
function divided(units: number, places: number, divisor: number): string | undefined {
  if (units > Number.MAX_SAFE_INTEGER || places > SCALE) return undefined;
  let rest = units % divisor;
  let last = (units - rest) / divisor;
  let digits = '';
  let room = Number.MAX_SAFE_INTEGER;
  for (let zeros = SCALE - places; zeros > 0; ) {
    const chunk = Math.min(zeros, CHUNK);
    digits = room > 10 ** CHUNK ? String(last) : digits + padded(last, room);
    room = 10 ** chunk;
    const shifted = rest * room;
    rest = shifted % divisor;
    last = (shifted - rest) / divisor;
    zeros -= chunk;
  }
  if (rest * 2 > divisor || (rest * 2 === divisor && last % 2 === 1)) last += 1;
  // A carry into the digits before it: one price in a billion.
  if (last >= room) return undefined;
  return plain(room > 10 ** CHUNK ? String(last) : digits + padded(last, room));
}

const padded = (value: number, room: number): string => String(value + room).slice(1);

/** A count of 10^-18 as the shortest plain decimal. */
function plain(atoms: string): string {
  const text = atoms.padStart(SCALE + 1, '0');
  let end = text.length;
  while (end > text.length - SCALE && text.charCodeAt(end - 1) === 48) end -= 1;
  const point = text.length - SCALE;
  return end === point ? text.slice(0, point) : `${text.slice(0, point)}.${text.slice(point, end)}`;
}

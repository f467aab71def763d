/** Converts the terms of an offer into stored ones. It rejects each bad term alone, and keeps the machine. */
import type { Offer } from '../../domain/machine.ts';
import { amountIn, MINUTES_PER_MONTH } from '../../domain/prices/price.ts';
import {
  type OfferedTerm,
  type StoredTerm,
  type StoredTerms,
  storedTerm,
  TERM_MINUTES,
  TERMS,
  type Term,
} from '../../domain/prices/term.ts';
import type { RejectedKey, RejectionCode } from '../../domain/rejected-rows.ts';
import type { Pricing } from '../currency.ts';

export interface TermBounds {
  /** The highest price per minute, in the published currency. */
  readonly maxPrice: string;
  /** Largest ratio of a term's price to the on-demand price. */
  readonly maxRatio: number;
}

type Problem = readonly [code: RejectionCode, reason: string];

/** A decimal that is not negative. */
const PLAIN = /^\d+(\.\d+)?$/;

/**
 * Returns the terms of an offer, without bad ones and those without an exchange rate; undefined if none is left.
 * @param price of the offer per minute; undefined without an exchange rate
 * @param reject takes each bad term
 */
export function termsOf(
  offer: Offer,
  price: string | undefined,
  pricing: Pricing,
  { maxPrice, maxRatio }: TermBounds,
  reject: (row: RejectedKey) => void,
): StoredTerms | undefined {
  const limits = { maxPrice: Number(maxPrice), dearest: Number(price ?? 0) * maxRatio };
  const rejectTerm = (what: string, [code, reason]: Problem) =>
    reject({ ...rowOfTerm(offer, what), code, reason });
  const terms: { [T in Term]?: StoredTerm } = {};
  for (const term of TERMS) {
    const source = offer.terms?.[term];
    if (source === undefined) continue;
    const bad = malformed(term, source);
    const stored = bad ? undefined : storedTerm(term, source, pricing.currency, pricing.rates);
    const problem = bad ?? (stored && problemOf(stored.price, limits, inText(source)));
    if (problem) rejectTerm(term, problem);
    else if (stored) terms[term] = stored;
  }
  const cap = capOf(offer, pricing, limits, (problem) => rejectTerm('monthly_cap', problem));
  if (cap === undefined) return Object.keys(terms).length === 0 ? undefined : { terms };
  return { terms, monthly_cap: cap };
}

/** Identifies a term of a machine in the quarantine and among accepted prices. No machine has this name. */
function rowOfTerm({ regionCode, name }: Pick<Offer, 'regionCode' | 'name'>, term: string) {
  return { key: `${name}@${regionCode}/${term}`, regionCode, name: `${name}/${term}` };
}

/** Prices per minute. `dearest` is 0 if the on-demand price is unknown. */
interface Limits {
  readonly maxPrice: number;
  readonly dearest: number;
}

function problemOf(price: string, { maxPrice, dearest }: Limits, stated: string): Problem | undefined {
  if (price === '0') return ['invalid', `price must be above zero; it is ${stated}`];
  if (Number(price) > maxPrice)
    return ['price_limit', `price ${stated} is above the limit maxHourlyPrice; a unit may have changed`];
  if (dearest > 0 && Number(price) > dearest)
    return ['invalid', `price exceeds the on-demand price by more than priceRatio; it is ${stated}`];
  return undefined;
}

function malformed(term: Term, source: OfferedTerm): Problem | undefined {
  const { price, upfront } = source;
  if (!PLAIN.test(price.amount) || (upfront !== undefined && !PLAIN.test(upfront)))
    return ['invalid', `price must be a decimal that is not negative; it is ${inText(source)}`];
  if (upfront !== undefined && TERM_MINUTES[term] === undefined)
    return ['invalid', `price must have no payment upfront; it is ${inText(source)}`];
  return undefined;
}

function inText({ price: { amount, currency, per }, upfront }: OfferedTerm): string {
  return `${amount} ${currency} per ${per}${upfront === undefined ? '' : ` and ${upfront} ${currency} upfront`}`;
}

/** Returns the monthly cap. Its bounds are those of a price for a month of 730 hours. */
function capOf(
  { monthlyCap: amount, price: { currency } }: Offer,
  pricing: Pricing,
  { maxPrice, dearest }: Limits,
  reject: (problem: Problem) => void,
): StoredTerms['monthly_cap'] | undefined {
  if (amount === undefined) return undefined;
  const stated = `${amount} ${currency} per month`;
  if (!PLAIN.test(amount)) {
    reject(['invalid', `monthly cap must be a decimal that is not negative; it is ${stated}`]);
    return undefined;
  }
  const source = { amount, currency };
  const price = amountIn(source, pricing.currency, pricing.rates);
  if (price === undefined) return undefined;
  const monthly = { maxPrice: maxPrice * MINUTES_PER_MONTH, dearest: dearest * MINUTES_PER_MONTH };
  const problem = problemOf(price, monthly, stated);
  if (problem) reject(problem);
  return problem ? undefined : { price, source };
}

/** Terms of price of a machine: the on-demand price has no entry here. */
import { amountIn, type ExchangeRates, pricePerMinute, type SourcePrice, spreadPerMinute } from './price.ts';

/** The terms besides `on_demand`, in the order of every display. */
export const TERMS = ['spot', 'savings_plan_1y', 'savings_plan_3y', 'reserved_1y', 'reserved_3y'] as const;
export type Term = (typeof TERMS)[number];

/** All terms that a request may name. */
export const PRICE_TERMS = ['on_demand', ...TERMS] as const;
export type PriceTerm = (typeof PRICE_TERMS)[number];

/** The price of a term, as a source states it. */
export interface OfferedTerm {
  /** What recurs. It may be zero if everything is paid upfront. */
  readonly price: SourcePrice;
  /** What is paid once for the whole term, a plain decimal in the currency of `price`. Absent: nothing. */
  readonly upfront?: string;
}

/** The terms of one machine. An absent term is not sold, or its price is unknown. */
export type OfferedTerms = { readonly [T in Term]?: OfferedTerm };

/** A term as the database stores it. Amounts are plain decimals. */
export interface StoredTerm {
  /** Per minute in the published currency, with the upfront payment spread over the term. */
  readonly price: string;
  /** Total in the published currency; null if nothing is paid upfront. */
  readonly upfront: string | null;
  /** As the source states it. */
  readonly source: OfferedTerm;
}

/** The column `machines.terms`. `monthly_cap` is the most that a calendar month costs on demand, in the published currency. */
export interface StoredTerms {
  readonly terms: { readonly [T in Term]?: StoredTerm };
  readonly monthly_cap?: { readonly price: string; readonly source: { amount: string; currency: string } };
}

const YEAR = 365 * 24 * 60;

/** Minutes for which a payment upfront lasts. Nothing is paid upfront for a spot machine. */
export const TERM_MINUTES = {
  spot: undefined,
  savings_plan_1y: YEAR,
  savings_plan_3y: 3 * YEAR,
  reserved_1y: YEAR,
  reserved_3y: 3 * YEAR,
} as const satisfies Record<Term, number | undefined>;

/** Returns a term with its effective price; undefined without an exchange rate. The amounts must be plain decimals. */
export function storedTerm(
  term: Term,
  source: OfferedTerm,
  currency: string,
  rates: ExchangeRates,
): StoredTerm | undefined {
  const { price, upfront } = source;
  const minutes = TERM_MINUTES[term];
  if (upfront === undefined || minutes === undefined) {
    const perMinute = pricePerMinute(price, currency, rates);
    return perMinute === undefined ? undefined : { price: perMinute, upfront: null, source };
  }
  const perMinute = spreadPerMinute(price, { amount: upfront, minutes }, currency, rates);
  const once = amountIn({ amount: upfront, currency: price.currency }, currency, rates);
  return perMinute === undefined || once === undefined
    ? undefined
    : { price: perMinute, upfront: once, source };
}

/** Returns the terms in another currency; null if no amount has an exchange rate. */
export function restatedTerms(
  { terms, monthly_cap: cap }: StoredTerms,
  currency: string,
  rates: ExchangeRates,
): StoredTerms | null {
  const restated = TERMS.flatMap((term) => {
    const source = terms[term]?.source;
    const stored = source && storedTerm(term, source, currency, rates);
    return stored ? [[term, stored] as const] : [];
  });
  const price = cap && amountIn(cap.source, currency, rates);
  if (restated.length === 0 && price === undefined) return null;
  return {
    terms: Object.fromEntries(restated),
    ...(cap && price !== undefined && { monthly_cap: { price, source: cap.source } }),
  };
}

/** Returns the change of terms as both sides, e.g. `spot 0.01 USD per hour` and `spot unknown`; undefined if all are equal. */
export function termsChange(
  before: StoredTerms | null,
  after: StoredTerms | null,
): readonly [before: string, after: string] | undefined {
  const [one, other] = [inWords(before), inWords(after)];
  const names = [...TERMS, 'monthly cap'].filter((name) => one.get(name) !== other.get(name));
  if (names.length === 0) return undefined;
  const text = (side: ReadonlyMap<string, string>) =>
    names.map((name) => `${name} ${side.get(name) ?? 'unknown'}`).join(', ');
  return [text(one), text(other)];
}

function inWords(stored: StoredTerms | null): Map<string, string> {
  const words = new Map<string, string>();
  for (const term of TERMS) {
    const source = stored?.terms[term]?.source;
    if (!source) continue;
    const { amount, currency, per } = source.price;
    const upfront = source.upfront === undefined ? '' : ` and ${source.upfront} ${currency} upfront`;
    words.set(term, `${amount} ${currency} per ${per}${upfront}`);
  }
  const cap = stored?.monthly_cap?.source;
  if (cap) words.set('monthly cap', `${cap.amount} ${cap.currency}`);
  return words;
}

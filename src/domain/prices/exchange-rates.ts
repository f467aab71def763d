/** Exchange rates, and which prices need one. */
import { type ExchangeRates, quotient } from './price.ts';

/** Rates of one day from the European Central Bank: units of each currency for one euro. */
export interface ReferenceRates {
  /** `YYYY-MM-DD`. */
  readonly asOf: string;
  readonly perEuro: Readonly<Record<string, string>>;
}

const RATES_HOLD_FOR_DAYS = 7;

/**
 * Returns units of the published currency for one of every other. Empty if the rates are too old on `today`, or lack the
 * published currency: prices that need a rate then keep their last value.
 */
export function exchangeRates(reference: ReferenceRates, published: string, today: Date): ExchangeRates {
  const age = today.getTime() - Date.parse(`${reference.asOf}T00:00:00Z`);
  if (!(age <= (RATES_HOLD_FOR_DAYS + 1) * 86_400_000)) return {};
  const perEuro: Readonly<Record<string, string>> = { ...reference.perEuro, EUR: '1' };
  const own = perEuro[published];
  if (own === undefined) return {};
  return Object.fromEntries(
    Object.entries(perEuro).map(([currency, units]) => [currency, quotient(own, units)]),
  );
}

/** The currencies of a source, by its configuration. */
export interface PricedSource {
  readonly id: string;
  readonly kind: 'catalogue' | 'clusters' | 'rates' | 'lifecycles';
  /** The currency of a catalogue's prices; undefined if each row states its own. */
  readonly currency?: string | undefined;
  /** Of exchange rates: the currencies that CATALOGUE_RATES covers. */
  readonly givenRates?: readonly string[];
}

export interface StoredPrices {
  /** The published currency; undefined before the first run. */
  readonly published: string | undefined;
  /** The currencies of all stated prices. */
  readonly stated: readonly string[];
  /** The ids of sources that were read at least once. */
  readonly wellRead: ReadonlySet<string>;
}

/** Returns true if a price needs a rate that neither CATALOGUE_RATES nor the published currency provides. */
export function isRateNeeded(
  configured: readonly PricedSource[],
  { published, stated, wellRead }: StoredPrices,
): boolean {
  const given = new Set([published, ...configured.flatMap(({ givenRates = [] }) => givenRates)]);
  const expected = configured.filter(({ id, kind }) => kind === 'catalogue' && !wellRead.has(id));
  return stated.some((each) => !given.has(each)) || expected.some(({ currency }) => !given.has(currency));
}

/** Whether a price needs an exchange rate of a source. Pure. */

/** The currencies of a source, by its configuration. */
export interface PricedSource {
  readonly id: string;
  readonly kind: 'catalogue' | 'clusters' | 'rates';
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

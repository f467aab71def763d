import type { PricedSource } from '../domain/exchange-rates.ts';
import type { NamedSource } from './named-sources.ts';
import type { Settings } from './settings.ts';
import type { SourceConfig } from './source-config.ts';

/** Returns the currencies of a source, by its configuration. */
export function pricedSource(
  { id, kind, adapter }: SourceConfig | NamedSource,
  { CATALOGUE_RATES }: Settings,
): PricedSource {
  if (kind === 'rates') return { id, kind, givenRates: Object.keys(CATALOGUE_RATES ?? {}) };
  // An option of the source may name another currency than the adapter.
  const isOption = 'options' in adapter && adapter.options !== undefined && 'currency' in adapter.options;
  return { id, kind, currency: 'currency' in adapter && !isOption ? adapter.currency : undefined };
}

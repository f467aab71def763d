import type { PricedSource } from '../domain/prices/exchange-rates.ts';
import type { NamedSource } from './named-sources.ts';
import type { Settings } from './settings.ts';
import type { SourceConfig } from './source-config.ts';

export function pricedSource(
  { id, kind, adapter }: SourceConfig | NamedSource,
  { CATALOGUE_RATES }: Settings,
): PricedSource {
  if (kind === 'rates') return { id, kind, givenRates: Object.keys(CATALOGUE_RATES ?? {}) };
  return { id, kind, currency: 'currency' in adapter ? adapter.currency : undefined };
}

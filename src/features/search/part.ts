import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import { priceBooks } from '../../market/market.ts';
import { addSearchSeries } from './metrics.ts';
import { searchApi } from './routes.ts';
import { searchReader } from './search-reader.ts';

export function readSearch(context: ReaderContext): ReaderPart {
  const { catalogue, documents } = context;
  return {
    api: searchApi(searchReader(catalogue, priceBooks(documents))),
    addMetrics: (registry) => addSearchSeries(registry, () => catalogue.counts),
  };
}

import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import { addSearchSeries } from './metrics.ts';
import { searchApi } from './routes.ts';
import { searchReader } from './search-reader.ts';

export function readSearch(context: ReaderContext): ReaderPart {
  const { catalogue, books } = context.market;
  return {
    api: searchApi(searchReader(catalogue, books)),
    addMetrics: (registry) => addSearchSeries(registry, () => catalogue.counts),
  };
}

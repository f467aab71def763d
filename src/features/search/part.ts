import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import { addSearchSeries } from './metrics.ts';
import { searchApi } from './routes.ts';
import { searchReader } from './search-reader.ts';
import { Searchable } from './searchable.ts';

export function readSearch(context: ReaderContext): ReaderPart {
  const { config, memory } = context;
  const staleLimitMs = config.settings.STALE_LIMIT * 1000;
  const searchable = new Searchable({ ...context, memoryLimit: memory.search, staleLimitMs });
  return {
    api: searchApi(searchReader(searchable)),
    addMetrics: (registry) => addSearchSeries(registry, () => searchable.counts),
  };
}

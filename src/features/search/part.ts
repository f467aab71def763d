import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import { addSearchSeries } from './metrics.ts';
import { searchApi } from './routes.ts';
import { searchReader } from './search-reader.ts';
import { Searchable } from './searchable.ts';

export function readSearch({
  config: { settings },
  logger,
  documents,
  subscription,
  memory,
}: ReaderContext): ReaderPart {
  const searchable = new Searchable({
    documents,
    subscription,
    logger,
    memoryLimit: memory.search,
    staleLimitMs: settings.STALE_LIMIT * 1000,
  });
  return {
    api: searchApi(searchReader(searchable)),
    addMetrics: (registry) => addSearchSeries(registry, () => searchable.counts),
  };
}

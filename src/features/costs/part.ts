import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import type { ApiFeature } from '../../http/app.ts';
import { clusterCostOperations } from './cluster-routes.ts';
import { type CostsReader, costsReader } from './costs-reader.ts';
import { type ListPrices, listPrices } from './list-prices.ts';
import { priceOperations } from './price-routes.ts';

export const costsApi =
  (costs: CostsReader, prices: ListPrices): ApiFeature =>
  () => ({ operations: [...clusterCostOperations(costs), ...priceOperations(prices)] });

export function readCosts({
  config,
  documents,
  market: { catalogue, books },
  memory,
}: ReaderContext): ReaderPart {
  const staleLimitMs = config.settings.STALE_LIMIT * 1000;
  const costs = costsReader({ documents, catalogue, books, memoryLimit: memory.costs, staleLimitMs });
  return { api: costsApi(costs, listPrices({ documents, catalogue })) };
}

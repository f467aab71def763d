import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import type { ApiFeature } from '../../http/app.ts';
import { clusterCostOperations } from './cluster-routes.ts';
import { type CostsReader, costsReader } from './costs-reader.ts';

export const costsApi =
  (costs: CostsReader): ApiFeature =>
  () => ({ operations: clusterCostOperations(costs) });

export function readCosts({ config, documents, catalogue, memory }: ReaderContext): ReaderPart {
  const staleLimitMs = config.settings.STALE_LIMIT * 1000;
  return { api: costsApi(costsReader({ documents, catalogue, memoryLimit: memory.costs, staleLimitMs })) };
}

import type { FastifyInstance } from 'fastify';
import type { Database } from '../../../db/connection/connect.ts';
import { storedLifecycles } from '../../../db/lifecycles.ts';
import { ENGINES, isEngine } from '../../../domain/engine.ts';
import { dayOf, lifecycleOf } from '../../../domain/lifecycle.ts';
import { choiceOf, idOf, integerOf, NotFound, textOf, windowOf } from '../../../ops/parameters.ts';
import { clusterHistory } from '../queries/changes.ts';
import {
  CLUSTER_SORTS,
  type ClusterTerms,
  clusterDetails,
  clusterTerms,
  type FoundClusters,
  searchClusters,
} from '../queries/clusters.ts';
import type { ClusterAnswer } from './answers.ts';
import type { ConsoleContext } from './context.ts';
import { costOfCluster } from './costs/costs.ts';

export function addClusters(api: FastifyInstance, { db }: ConsoleContext): void {
  api.get('/clusters', async (request): Promise<FoundClusters> => {
    const { query } = request;
    return searchClusters(db, {
      text: textOf(query, 'q'),
      organization: textOf(query, 'organization'),
      providerId: integerOf(query, 'provider', 1, 2_147_483_647),
      status: textOf(query, 'status'),
      engine: await engineOf(db, query),
      version: textOf(query, 'version'),
      retired: choiceOf(query, 'retired', ['no', 'yes', 'all']) ?? 'no',
      sort: choiceOf(query, 'sort', CLUSTER_SORTS) ?? 'name',
      descending: choiceOf(query, 'order', ['asc', 'desc']) === 'desc',
      ...windowOf(query),
    });
  });
  api.get('/cluster-terms', (): Promise<ClusterTerms> => clusterTerms(db));
  api.get('/clusters/:id', async (request): Promise<ClusterAnswer> => {
    const id = idOf(request.params, 'id', 'cluster');
    const { limit, offset } = windowOf(request.query);
    // One more row than the page shows whether there are older ones.
    const [cluster, history] = await Promise.all([
      clusterDetails(db, id),
      clusterHistory(db, id, { limit: limit + 1, offset }),
    ]);
    if (!cluster) throw new NotFound(`there is no cluster ${id}`);
    const cost = await costOfCluster(db, cluster.organizationId, id);
    const { cycles } = await storedLifecycles(db);
    const lifecycle = lifecycleOf(cluster, cycles, dayOf(new Date()));
    return { cluster, lifecycle, cost, history: history.slice(0, limit), hasOlder: history.length > limit };
  });
}

/** Clusters may have words that the vocabulary lacks. @throws BadInput for a word that no cluster has either */
export async function engineOf(db: Database, query: unknown): Promise<string | undefined> {
  const engine = textOf(query, 'engine');
  if (engine === undefined || isEngine(engine)) return engine;
  const { engines } = await clusterTerms(db);
  return choiceOf(query, 'engine', [...ENGINES, ...engines.map((each) => each.engine)]);
}

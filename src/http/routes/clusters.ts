import { z } from 'zod';
import type { ClusterDocument } from '../../domain/cluster.ts';
import type { ClusterReader } from '../../snapshot/document/answer.ts';
import { type Operation, operation } from '../operation.ts';
import { parameter } from '../protocol/parameters.ts';

export const CLUSTER_EXAMPLE: ClusterDocument = {
  name: 'Cluster Test',
  slug: 'cluster-test',
  region: { name: 'Ashburn, Virginia', code: 'us-east-1' },
  provider: { id: 2, name: 'AWS' },
  status: 'Active',
  shards: 3,
  replicas: 1,
  user: { first_name: 'John', last_name: 'Doe' },
  machine: { ram: 8, cpu: 2, id: 1, ram_unit: 'Binary' },
  disks: [
    {
      type: { name: 'gp2', price: 0.00000000045, unit: 'Decimal' },
      size: 150,
      unit: 'GB',
      autoscaling: false,
    },
  ],
  created_at: '2022-02-14T10:11:26.567713',
};

/** Accepts any text: one that no cluster has finds none. */
export const slugParameter = parameter(z.string(), {
  description: 'The slug, unique within the organization of the token',
  example: CLUSTER_EXAMPLE.slug,
  expected: 'a text',
});

/** The organization is the token's, and never anything that a request says. */
export function clusterOperations(clusters: ClusterReader): Operation[] {
  return [
    operation({
      path: '/v1/clusters',
      scope: 'clusters:read',
      parameters: {},
      doc: {
        id: 'listClusters',
        summary: "Clusters of the token's organization",
        description: 'Oldest first, then by slug. Empty where there is none.',
        answers: ({ cluster }) => z.array(cluster),
        example: [CLUSTER_EXAMPLE],
        extension: false,
      },
      read: (_, { organizationId }) => clusters.clusters(organizationId),
      shared: false,
    }),
    operation({
      path: '/v1/clusters/{slug}',
      scope: 'clusters:read',
      parameters: { slug: slugParameter },
      doc: {
        id: 'getCluster',
        summary: "One cluster of the token's organization",
        description: 'The same 404 for a cluster of another organization and for one that does not exist.',
        answers: ({ cluster }) => cluster,
        example: CLUSTER_EXAMPLE,
        extension: false,
      },
      read: ({ slug }, { organizationId }) => clusters.cluster(organizationId, slug),
      shared: false,
    }),
  ];
}

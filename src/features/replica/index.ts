/** Readers on a streaming replica of PostgreSQL, which may be behind its primary. */
import type { Feature } from '../../app/feature.ts';
import { checkReplica } from './doctor.ts';
import { addReplicaSeries } from './metrics.ts';
import { replicaMisfit } from './misfit.ts';
import { ReplicaReads } from './reads.ts';
import { replicaOf } from './tier.ts';

export const replicaFeature: Feature = {
  name: 'replica',

  replica(servers) {
    const reads = new ReplicaReads({ replica: servers.replica.reads, primary: servers.primary.reads });
    return {
      replica: replicaOf(reads),
      misfit: () => replicaMisfit(servers),
      addMetrics: (registry) => addReplicaSeries(registry, reads),
    };
  },

  check: checkReplica,
};

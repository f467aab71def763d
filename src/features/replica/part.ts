import type { ReplicaPart, ReplicaServers } from '../../app/feature.ts';
import { addReplicaSeries } from './metrics.ts';
import { replicaMisfit } from './misfit.ts';
import { ReplicaReads } from './reads.ts';
import { replicaOf } from './tier.ts';

export function openReplica(servers: ReplicaServers): ReplicaPart {
  const reads = new ReplicaReads({ replica: servers.replica.reads, primary: servers.primary.reads });
  return {
    replica: replicaOf(reads),
    misfit: () => replicaMisfit(servers),
    addMetrics: (registry) => addReplicaSeries(registry, reads),
  };
}

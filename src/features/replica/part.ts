import type { ReplicaPart, ReplicaServers } from '../../app/feature.ts';
import { addReplicaSeries } from './metrics.ts';
import { ReplicaReads } from './reads.ts';
import { misfitOf, readReplicaState } from './state.ts';
import { replicaOf } from './tier.ts';

export function openReplica(servers: ReplicaServers): ReplicaPart {
  const reads = new ReplicaReads({ replica: servers.replica.reads, primary: servers.primary.reads });
  return {
    replica: replicaOf(reads),
    async misfit() {
      const states = [servers.replica, servers.primary].map(async ({ reads: server, setting }) => {
        return { state: await server.check(readReplicaState), setting };
      });
      return misfitOf(...((await Promise.all(states)) as Parameters<typeof misfitOf>));
    },
    addMetrics: (registry) => addReplicaSeries(registry, reads),
  };
}

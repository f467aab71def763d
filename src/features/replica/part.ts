import { Counter, Gauge, type Registry } from 'prom-client';
import type { ReplicaPart, ReplicaServers } from '../../app/feature.ts';
import { FENCED_BECAUSE, ReplicaReads } from './reads.ts';
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
    addMetrics: (registry) => addSeries(registry, reads),
  };
}

function addSeries(registry: Registry, reads: ReplicaReads): void {
  const registers = [registry];
  new Gauge({
    name: 'fleetbook_replica_lag_seconds',
    help: 'Seconds from the last transaction of the replica to the read of it; NaN without a read in the last minute',
    registers,
    aggregator: 'max',
    collect() {
      this.set(reads.counts.lagSeconds ?? Number.NaN);
    },
  });
  new Counter({
    name: 'fleetbook_fenced_reads_total',
    help: 'Reads that the primary answered instead of the replica, by reason: older, unknown, behind, away',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      // An alert notices the first read only if the series exists before it.
      for (const reason of FENCED_BECAUSE) this.inc({ reason }, reads.counts.fenced.get(reason) ?? 0);
    },
  });
}

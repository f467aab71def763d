import { Counter, Gauge, type Registry } from 'prom-client';
import { FENCED_BECAUSE, type ReplicaReads } from './reads.ts';

export function addReplicaSeries(registry: Registry, replica: Pick<ReplicaReads, 'counts'>): void {
  const registers = [registry];
  new Gauge({
    name: 'fleetbook_replica_lag_seconds',
    help: 'Seconds from the last transaction of the replica to the read of it; NaN without a read in the last minute',
    registers,
    aggregator: 'max',
    collect() {
      this.set(replica.counts.lagSeconds ?? Number.NaN);
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
      for (const reason of FENCED_BECAUSE) this.inc({ reason }, replica.counts.fenced.get(reason) ?? 0);
    },
  });
}

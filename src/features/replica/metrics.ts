import { Counter, Gauge, type Registry } from 'prom-client';

/** What a reader counts of the replica that it reads. */
export interface ReplicaSeriesOf {
  readonly counts: {
    readonly lagSeconds: number | undefined;
    readonly fenced: ReadonlyMap<string, number>;
  };
}

/** An alert hears of the first one only where the count was there before. */
const REASONS = ['older', 'unknown', 'behind', 'away'];

/** Adds the series of a replica to a registry. */
export function addReplicaSeries(registry: Registry, replica: ReplicaSeriesOf): void {
  const registers = [registry];
  new Gauge({
    name: 'fleetbook_replica_lag_seconds',
    help: 'Seconds between a read of the replica of PostgreSQL and the last transaction that it had then; NaN without a read in the last minute',
    registers,
    aggregator: 'max',
    collect() {
      this.set(replica.counts.lagSeconds ?? Number.NaN);
    },
  });
  new Counter({
    name: 'fleetbook_fenced_reads_total',
    help: 'Reads that the primary answered in place of the replica, by reason: older, unknown, behind, away',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const reason of REASONS) this.inc({ reason }, replica.counts.fenced.get(reason) ?? 0);
    },
  });
}

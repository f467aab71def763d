import { Counter, Gauge, type Registry } from 'prom-client';

/** What a reader counts of the replica that it reads. */
export interface ReplicaSeriesOf {
  readonly counts: {
    readonly lagSeconds: number | undefined;
    readonly lagLimitSeconds: number;
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
    help: 'Seconds by which the replica of PostgreSQL was behind the primary when both were last seen; NaN while that is not known',
    registers,
    aggregator: 'max',
    collect() {
      this.set(replica.counts.lagSeconds ?? Number.NaN);
    },
  });
  new Gauge({
    name: 'fleetbook_replica_lag_limit_seconds',
    help: 'Seconds by which the replica may be behind: beyond, the primary is asked',
    registers,
    aggregator: 'max',
    collect() {
      this.set(replica.counts.lagLimitSeconds);
    },
  });
  new Counter({
    name: 'fleetbook_fenced_reads_total',
    help: 'Reads for which the primary was asked, by why the replica would not do: older, unknown, behind, away',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const reason of REASONS) this.inc({ reason }, replica.counts.fenced.get(reason) ?? 0);
    },
  });
}

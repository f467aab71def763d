import { Counter, Gauge, type Registry } from 'prom-client';

/** What a reader counts of those who follow the changes feed. */
export interface StreamCounts {
  /** How many follow now. */
  readonly size: number;
  readonly counts: { readonly cut: number; readonly refused: number; readonly limited: number };
}

/** Adds the series of `/v1/changes` to a registry. */
export function addStreamSeries(registry: Registry, streams: StreamCounts): void {
  const registers = [registry];
  new Gauge({
    name: 'fleetbook_streams',
    help: 'Streams of /v1/changes, and requests that wait for a change, that are open',
    registers,
    collect() {
      this.set(streams.size);
    },
  });
  new Counter({
    name: 'fleetbook_streams_ended_total',
    help: 'Streams that ended early, by reason; cut: the client did not keep up; refused: the process held as many as it may, see MAX_CONNECTIONS; limited: the token or its organization held its share of it',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const reason of ['cut', 'refused', 'limited'] as const)
        this.inc({ reason }, streams.counts[reason]);
    },
  });
}

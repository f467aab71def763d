import { Counter, Gauge, type Registry } from 'prom-client';
import type { FeedTail } from './feed-tail.ts';

export function addStreamSeries(registry: Registry, streams: Pick<FeedTail, 'size' | 'counts'>): void {
  const registers = [registry];
  new Gauge({
    name: 'fleetbook_streams',
    help: 'Open streams of /v1/changes',
    registers,
    collect() {
      this.set(streams.size);
    },
  });
  new Counter({
    name: 'fleetbook_streams_ended_total',
    help: 'Streams that ended early, by reason; cut: the client was too slow; refused: the process had the most streams, see MAX_CONNECTIONS; limited: the token or its organization had its largest share',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const reason of ['cut', 'refused', 'limited'] as const)
        this.inc({ reason }, streams.counts[reason]);
    },
  });
}

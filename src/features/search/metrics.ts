import { Counter, Gauge, type Registry } from 'prom-client';
import type { SearchCounts } from '../../market/market.ts';

export function addSearchSeries(registry: Registry, counts: () => SearchCounts): void {
  const gauge = (name: string, help: string, value: (counts: SearchCounts) => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value(counts()));
      },
    });
  gauge(
    'fleetbook_search_machines',
    'Machines in the index of searches; 0 until the first search',
    ({ machines }) => machines,
  );
  gauge(
    'fleetbook_search_index_bytes',
    'Bytes of the index of searches, by its own count',
    ({ bytes }) => bytes,
  );
  gauge(
    'fleetbook_search_index_limit_bytes',
    'Most bytes of the index of searches, a part of MEMORY_LIMIT',
    ({ limitBytes }) => limitBytes,
  );
  new Counter({
    name: 'fleetbook_search_failures_total',
    help: 'Failed reads of the index of searches, by reason; too-large: the index does not fit into its limit',
    labelNames: ['reason'],
    registers: [registry],
    collect() {
      this.reset();
      const { failures } = counts();
      for (const reason of ['too-large', 'failed'] as const) this.inc({ reason }, failures[reason]);
    },
  });
}

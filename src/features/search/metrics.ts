import { Counter, Gauge, type Registry } from 'prom-client';

/** What a reader counts of the index that searches are answered from. */
export interface SearchCounts {
  readonly machines: number;
  readonly bytes: number;
  readonly limitBytes: number;
  readonly failures: Readonly<Record<'too-large' | 'failed', number>>;
}

/** Adds the series of searches to a registry. */
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
    'Machines that can be searched; 0 until somebody searches',
    ({ machines }) => machines,
  );
  gauge(
    'fleetbook_search_index_bytes',
    'Bytes that the index of searches takes, by its own count',
    ({ bytes }) => bytes,
  );
  gauge(
    'fleetbook_search_index_limit_bytes',
    'Bytes that it may take, of MEMORY_LIMIT',
    ({ limitBytes }) => limitBytes,
  );
  new Counter({
    name: 'fleetbook_search_failures_total',
    help: 'Times at which the machines could not be read for searches, by reason; too-large: they do not fit',
    labelNames: ['reason'],
    registers: [registry],
    collect() {
      this.reset();
      const { failures } = counts();
      for (const reason of ['too-large', 'failed'] as const) this.inc({ reason }, failures[reason]);
    },
  });
}

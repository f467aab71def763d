import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Seconds by which a copy may lag: publications take milliseconds, the sweep comes every minute. */
const LAGS = [0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300, 3600];

/** What the worker's comparer finds of the cache, as metrics. */
export function cacheComparison(registry: Registry) {
  const registers = [registry];
  const documents = new Counter({
    name: 'fleetbook_cache_compared_documents_total',
    help: 'Documents of the cache that were compared with PostgreSQL, by what was found; ahead, behind, damaged, different and missing are mismatches',
    labelNames: ['verdict'],
    registers,
  });
  const lags = new Histogram({
    name: 'fleetbook_cache_lag_seconds',
    help: 'For how long documents of the cache were seen to lack a version that PostgreSQL had',
    buckets: LAGS,
    registers,
  });
  // Every worker compares the same two: what they tell must not be added up.
  const stalest = new Gauge({
    name: 'fleetbook_cache_stalest_seconds',
    help: 'For how long the cache has lacked what it lacks now, the longest; 0 where it lacks nothing known',
    registers,
    aggregator: 'max',
  });
  const last = new Gauge({
    name: 'fleetbook_cache_compared_timestamp_seconds',
    help: 'When the cache was last compared with PostgreSQL, seconds since 1970',
    registers,
    aggregator: 'max',
  });
  return {
    compared: (verdict: string) => documents.inc({ verdict }),
    caughtUp: (seconds: number) => lags.observe(seconds),
    round(at: number, stalestSeconds: number) {
      last.set(at);
      stalest.set(stalestSeconds);
    },
  };
}

/** What a reader finds of its own memory, as metrics. */
export function memoryComparison(registry: Registry) {
  const registers = [registry];
  const documents = new Counter({
    name: 'fleetbook_memory_compared_documents_total',
    help: 'Documents in memory whose version was compared with the cache, by what was found; behind is a mismatch',
    labelNames: ['verdict'],
    registers,
  });
  const last = new Gauge({
    name: 'fleetbook_memory_compared_timestamp_seconds',
    help: 'When memory was last compared with the cache, seconds since 1970; of several processes the one that is behind',
    registers,
    aggregator: 'min',
  });
  return {
    compared: (verdict: string) => documents.inc({ verdict }),
    round: (at: number) => last.set(at),
  };
}

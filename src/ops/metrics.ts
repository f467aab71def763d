/** The metrics of each kind of process. */
import { readdir, stat } from 'node:fs/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Database } from '../db/connection/client.ts';
import { reasonCounts } from '../db/quarantine.ts';
import { sourceStatus } from '../db/sources.ts';
import { dirtyDocumentCounts } from '../db/versions.ts';
import { RequestCounts } from './request-counts.ts';
import { addRequestSeries } from './request-series.ts';
import { gaugesOf, latest, type Series } from './scrape-reads.ts';
import { addSourceGauges } from './source-gauges.ts';

const LAGS = [0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300, 3600];

export function apiMetrics(counts = new RequestCounts()) {
  const registry = processRegistry('api');
  addRequestSeries(registry, counts);
  return { registry, observe: counts.add };
}

/** @param db read at each scrape @param configured `maxAge` in seconds */
export function workerMetrics(
  db: Database,
  configured: readonly { readonly id: string; readonly maxAge: number }[],
) {
  const registry = processRegistry('worker');
  const { counter, histogram } = seriesOf(registry);
  const runs = counter('fleetbook_sync_runs_total', 'Runs that ended, by source and outcome', [
    'source',
    'outcome',
  ]);
  const runSeconds = histogram(
    'fleetbook_sync_duration_seconds',
    'Time of a run from its start to its commit',
    [0.1, 0.5, 1, 5, 15, 60, 300, 900],
    ['source'],
  );
  const documents = counter('fleetbook_published_documents_total', 'Documents written to the cache');
  const rounds = histogram(
    'fleetbook_publish_duration_seconds',
    'Time of a round of publishing, by outcome; its count is the number of rounds',
    [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
    ['outcome'],
  );
  const readFacts = async () => {
    const [sources, reasons] = await Promise.all([sourceStatus(db), reasonCounts(db)]);
    const reasonsOf = new Map(reasons.map((each) => [each.id, each]));
    return sources.map((source) => ({ ...source, reasons: reasonsOf.get(source.id) }));
  };
  addSourceGauges(registry, readFacts, {
    configured: new Map(configured.map(({ id, maxAge }) => [id, maxAge])),
  });
  const dirty = latest(async () => Object.entries(await dirtyDocumentCounts(db)), []);
  gaugesOf(registry, dirty)(
    'fleetbook_publication_dirty_documents',
    'Documents whose published version is behind their version, by kind: readers do not get these changes yet',
    ['kind'],
    (counts) => counts.map(([kind, documents]): Series => [{ kind }, documents]),
  );
  return {
    registry,
    /** Counts a run that has ended. */
    observe(sourceId: string, outcome: string, seconds: number) {
      runs.inc({ source: sourceId, outcome });
      runSeconds.observe({ source: sourceId }, seconds);
    },
    /** Counts a round of publishing. */
    published(outcome: 'published' | 'failed', count: number, seconds: number) {
      documents.inc(count);
      rounds.observe({ outcome }, seconds);
    },
    comparison: cacheComparison(registry),
  };
}

export function primaryMetrics(wanted: number, ready: () => number) {
  const registry = processRegistry('api-primary');
  const { counter, gauge } = seriesOf(registry);
  gauge('fleetbook_serve_processes', 'Processes that should serve the API').set(wanted);
  const running = gauge('fleetbook_serve_processes_ready', 'Processes that serve the API now', {
    collect: () => running.set(ready()),
  });
  const replacements = counter(
    'fleetbook_serve_processes_replaced_total',
    'Processes that ended while they served, and were replaced',
  );
  return { registry, replaced: () => replacements.inc() };
}

/** Verdicts that are mismatches; see snapshot/publish/compare-document.ts. */
const CACHE_VERDICTS = ['ahead', 'behind', 'damaged', 'different', 'missing'];

export function cacheComparison(registry: Registry) {
  const { counter, gauge, histogram } = seriesOf(registry);
  const documents = counter(
    'fleetbook_cache_compared_documents_total',
    'Documents of the cache that were compared with PostgreSQL, by verdict; ahead, behind, damaged, different and missing are mismatches',
    ['verdict'],
  );
  // An alert on the increase needs the series before the first mismatch.
  for (const verdict of CACHE_VERDICTS) documents.inc({ verdict }, 0);
  const lags = histogram(
    'fleetbook_cache_lag_seconds',
    'Time for which documents of the cache lacked a version of PostgreSQL',
    LAGS,
  );
  // All workers compare the same two servers, so sums would be wrong.
  const stalest = gauge(
    'fleetbook_cache_stalest_seconds',
    'Longest time for which a document of the cache has lacked a version of PostgreSQL; 0 if none lacks one',
    { aggregator: 'max' },
  );
  const last = gauge(
    'fleetbook_cache_compared_timestamp_seconds',
    'Time of the last comparison of the cache with PostgreSQL, seconds since 1970',
    { aggregator: 'max' },
  );
  return {
    compared: (verdict: string) => documents.inc({ verdict }),
    caughtUp: (seconds: number) => lags.observe(seconds),
    round(at: number, stalestSeconds: number) {
      last.set(at);
      stalest.set(stalestSeconds);
    },
  };
}

function seriesOf(registry: Registry) {
  const registers = [registry];
  return {
    counter: <L extends string = never>(name: string, help: string, labelNames: L[] = []) =>
      new Counter({ name, help, labelNames, registers }),
    histogram: <L extends string = never>(
      name: string,
      help: string,
      buckets: number[],
      labelNames: L[] = [],
    ) => new Histogram({ name, help, buckets, labelNames, registers }),
    gauge: (
      name: string,
      help: string,
      more: { readonly aggregator?: 'min' | 'max'; readonly collect?: () => void } = {},
    ) => new Gauge({ name, help, registers, ...more }),
  };
}

/** Gauges of the library that list all connections at a scrape: 10,000 of them hold the event loop for ten milliseconds. */
const SLOW = ['handles', 'requests', 'resources'].flatMap((what) => [
  `nodejs_active_${what}`,
  `nodejs_active_${what}_total`,
]);
const OPEN_FILES = 'process_open_fds';
const OPEN_FILES_FOLDER = '/proc/self/fd';

/** Returns a registry whose series have the kind of the process, so that one page can show several processes. */
function processRegistry(process: 'api' | 'api-primary' | 'worker'): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ process });
  collectDefaultMetrics({ register: registry });
  for (const name of SLOW) registry.removeSingleMetric(name);
  if (registry.getSingleMetric(OPEN_FILES)) replaceOpenFiles(registry);
  return registry;
}

/** The library's gauge lists the files too. */
function replaceOpenFiles(registry: Registry): void {
  registry.removeSingleMetric(OPEN_FILES);
  new Gauge({
    name: OPEN_FILES,
    help: 'Number of open file descriptors.',
    registers: [registry],
    async collect() {
      // Linux before 6.2 does not state the number as the size.
      const { size } = await stat(OPEN_FILES_FOLDER);
      this.set(size || (await readdir(OPEN_FILES_FOLDER)).length);
    },
  });
}

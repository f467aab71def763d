/** What is measured, under which names. Each process makes its own; nothing is global. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Sql } from '../db/connection/connect.ts';
import { reasonCounts } from '../db/quarantine.ts';
import { sourceStatus, sourceTroubles } from '../db/sources.ts';
import { dirtyDocumentCounts } from '../db/versions.ts';
import { gaugesOf, latest, type Series } from './latest.ts';
import { RequestCounts, type RequestOutcome } from './request-counts.ts';
import { addRequestSeries } from './request-series.ts';
import { addSourceGauges } from './source-gauges.ts';

export interface ApiMetrics {
  readonly registry: Registry;
  readonly observe: (facts: RequestOutcome) => void;
  /** The cache held a value that cannot be used, under the key of a document of this kind. */
  readonly unusable: (kind: string) => void;
}

export interface WorkerMetrics {
  readonly registry: Registry;
  /** A run of a source has ended. */
  readonly observe: (sourceId: string, outcome: string, seconds: number) => void;
  /** A round of publishing has ended: how many documents it brought, or that it failed. */
  readonly published: (outcome: 'published' | 'failed', documents: number, seconds: number) => void;
  /** The cache was compared with the database. */
  readonly comparison: ReturnType<typeof cacheComparison>;
}

export interface PrimaryMetrics {
  readonly registry: Registry;
  /** A process ended that had been ready, and another takes its place. */
  readonly replaced: () => void;
}

/** Buckets of the lag: a publication takes milliseconds, and a comparison comes every five seconds. */
const LAGS = [0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300, 3600];

/** @param counts requests that were counted before the metrics were opened */
export function apiMetrics(counts = new RequestCounts()): ApiMetrics {
  const registry = processRegistry('api');
  addRequestSeries(registry, counts);
  return {
    registry,
    observe: counts.add,
    unusable: unusableDocuments(registry),
  };
}

/**
 * @param sql is asked at a scrape, so that what is told of the sources is what the database knows
 * @param configured the sources that this worker runs; `maxAge` in seconds
 */
export function workerMetrics(
  sql: Sql,
  configured: readonly { readonly id: string; readonly maxAge: number }[],
): WorkerMetrics {
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
    const [sources, reasons, troubles] = await Promise.all([
      sourceStatus(sql),
      reasonCounts(sql),
      sourceTroubles(sql),
    ]);
    const byId = <T extends { id: string }>(all: readonly T[]) => new Map(all.map((each) => [each.id, each]));
    const [reasonsOf, troubleOf] = [byId(reasons), byId(troubles)];
    return sources.map((source) => ({
      ...source,
      reasons: reasonsOf.get(source.id),
      trouble: troubleOf.get(source.id),
    }));
  };
  addSourceGauges(registry, readFacts, {
    configured: new Map(configured.map(({ id, maxAge }) => [id, maxAge])),
  });
  const dirty = latest(async () => Object.entries(await dirtyDocumentCounts(sql)), []);
  gaugesOf(registry, dirty)(
    'fleetbook_publication_dirty_documents',
    'Documents whose published version is behind their version, by kind: what readers cannot see yet',
    ['kind'],
    (counts) => counts.map(([kind, documents]): Series => [{ kind }, documents]),
  );
  return {
    registry,
    observe(sourceId, outcome, seconds) {
      runs.inc({ source: sourceId, outcome });
      runSeconds.observe({ source: sourceId }, seconds);
    },
    published(outcome, count, seconds) {
      documents.inc(count);
      rounds.observe({ outcome }, seconds);
    },
    comparison: cacheComparison(registry),
  };
}

/** Of the process that starts others to serve. @param ready how many of them are */
export function primaryMetrics(wanted: number, ready: () => number): PrimaryMetrics {
  const registry = processRegistry('api-primary');
  const { counter, gauge } = seriesOf(registry);
  gauge('fleetbook_serve_processes', 'Processes that are to serve the API').set(wanted);
  const running = gauge('fleetbook_serve_processes_ready', 'Processes that serve the API now', {
    collect: () => running.set(ready()),
  });
  const replacements = counter(
    'fleetbook_serve_processes_replaced_total',
    'Processes that ended while they served, and were replaced',
  );
  return { registry, replaced: () => replacements.inc() };
}

/** Verdicts that are mismatches; see snapshot/publish/compare.ts. */
const CACHE_VERDICTS = ['ahead', 'behind', 'damaged', 'different', 'missing'];
const DOCUMENT_KINDS = ['clusters', 'columns', 'providers', 'region', 'token'];

/** What the worker's comparison of the cache finds. */
export function cacheComparison(registry: Registry) {
  const { counter, gauge, histogram } = seriesOf(registry);
  const documents = counter(
    'fleetbook_cache_compared_documents_total',
    'Documents of the cache that were compared with PostgreSQL, by what was found; ahead, behind, damaged, different and missing are mismatches',
    ['verdict'],
  );
  // An alert hears of the first one only where the count was there before.
  for (const verdict of CACHE_VERDICTS) documents.inc({ verdict }, 0);
  const lags = histogram(
    'fleetbook_cache_lag_seconds',
    'For how long documents of the cache were seen to lack a version that PostgreSQL had',
    LAGS,
  );
  // Every worker compares the same two: what they tell must not be added up.
  const stalest = gauge(
    'fleetbook_cache_stalest_seconds',
    'For how long the cache has lacked what it lacks now, the longest; 0 where it lacks nothing known',
    { aggregator: 'max' },
  );
  const last = gauge(
    'fleetbook_cache_compared_timestamp_seconds',
    'When the cache was last compared with PostgreSQL, seconds since 1970',
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

/** What a reader finds in the cache and cannot use. */
function unusableDocuments(registry: Registry) {
  const documents = seriesOf(registry).counter(
    'fleetbook_cache_unusable_documents_total',
    'Values of the cache that no reader can use, found when they were read, by kind of document; each is replaced',
    ['kind'],
  );
  for (const kind of DOCUMENT_KINDS) documents.inc({ kind }, 0);
  return (kind: string) => documents.inc({ kind });
}

/** Makes the series of a registry. */
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

/** Of the library's own metrics; the same counts, by type, stand in `nodejs_active_handles` and the like. */
const MISNAMED = ['handles', 'requests', 'resources'].map((what) => `nodejs_active_${what}_total`);

/** Every series says what kind of process it is of, so that those of several can be shown on one page. */
function processRegistry(process: 'api' | 'api-primary' | 'worker'): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ process });
  collectDefaultMetrics({ register: registry });
  // Gauges that are called as counters are: Prometheus' own check of names refuses them.
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return registry;
}

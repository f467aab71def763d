/** What is measured, under which names. Each process makes its own; nothing is global. */
import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client';
import type { Sql } from '../db/connect.ts';
import { reasonCounts } from '../db/queries/excluded.ts';
import { sourceStatus } from '../db/queries/status.ts';
import { cacheComparison, memoryComparison } from './compare-metrics.ts';
import { RequestCounts, type RequestFacts } from './request-counts.ts';
import { addRequestSeries } from './request-series.ts';
import { addSourceGauges } from './source-gauges.ts';

export interface ApiMetrics {
  readonly registry: Registry;
  readonly observe: (facts: RequestFacts) => void;
  /** Memory was compared with the cache. */
  readonly comparison: ReturnType<typeof memoryComparison>;
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

/** @param counts what was counted before somebody wanted to know */
export function apiMetrics(counts = new RequestCounts()): ApiMetrics {
  const registry = processRegistry('api');
  addRequestSeries(registry, counts);
  return { registry, observe: counts.add, comparison: memoryComparison(registry) };
}

/**
 * @param sql is asked at a scrape, so that what is told of the sources is what the database knows
 * @param configured ids of the sources that this worker runs
 */
export function workerMetrics(sql: Sql, configured: readonly string[]): WorkerMetrics {
  const registry = processRegistry('worker');
  const registers = [registry];
  const runs = new Counter({
    name: 'fleetbook_sync_runs_total',
    help: 'Runs that ended, by source and outcome',
    labelNames: ['source', 'outcome'],
    registers,
  });
  const runSeconds = new Histogram({
    name: 'fleetbook_sync_duration_seconds',
    help: 'Time of a run from its start to its commit',
    labelNames: ['source'],
    buckets: [0.1, 0.5, 1, 5, 15, 60, 300, 900],
    registers,
  });
  const documents = new Counter({
    name: 'fleetbook_published_documents_total',
    help: 'Documents written to the cache',
    registers,
  });
  const rounds = new Histogram({
    name: 'fleetbook_publish_duration_seconds',
    help: 'Time of a round of publishing, by outcome; its count is the number of rounds',
    labelNames: ['outcome'],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
    registers,
  });
  const readFacts = async () => {
    const [sources, reasons] = await Promise.all([sourceStatus(sql), reasonCounts(sql)]);
    const byId = new Map(reasons.map((each) => [each.id, each]));
    return sources.map((source) => ({ ...source, reasons: byId.get(source.id) }));
  };
  addSourceGauges(registry, readFacts, { configured: new Set(configured) });
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

/** Every series says what kind of process it is of, so that those of several can be shown on one page. */
function processRegistry(process: 'api' | 'worker'): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ process });
  collectDefaultMetrics({ register: registry });
  return registry;
}

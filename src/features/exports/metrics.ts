import { Counter, Histogram, type Registry } from 'prom-client';
import type { Sql } from '../../db/connection/connect.ts';
import { gaugesOf, latest, type Series } from '../../ops/latest.ts';
import { type ExportState, exportState } from './queries.ts';

/** An alert hears of the first failure only where the count was there before. */
const OUTCOMES = ['made', 'failed'];

/**
 * Adds what is told of the files of the catalogue.
 * @param everySeconds how often they are made; 0 for never
 * @returns what hears of attempts to make them
 */
export function addExportSeries(registry: Registry, sql: Sql, everySeconds: number) {
  const registers = [registry];
  const attempts = new Counter({
    name: 'fleetbook_export_attempts_total',
    help: 'Attempts to make the files of the catalogue, by outcome; busy: another worker made them',
    labelNames: ['outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'fleetbook_export_duration_seconds',
    help: 'Time that it took to make and store the files of the catalogue',
    buckets: [0.5, 1, 5, 15, 60, 300, 900],
    registers,
  });
  if (everySeconds > 0) {
    for (const outcome of OUTCOMES) attempts.inc({ outcome }, 0);
    const gauge = gaugesOf(
      registry,
      latest<ExportState | undefined>(() => exportState(sql), undefined),
    );
    const one = (value: number | undefined): Series[] => (value === undefined ? [] : [[{}, value]]);
    gauge(
      'fleetbook_exports_behind_seconds',
      'For how long the catalogue has been ahead of the files that are given away; 0 while they are current',
      [],
      (state) => one(state?.behindSeconds),
    );
    gauge('fleetbook_exports_interval_seconds', 'How often files of the catalogue are made', [], () =>
      one(everySeconds),
    );
    gauge(
      'fleetbook_exports_timestamp_seconds',
      'When the catalogue was in the state of the newest files, seconds since 1970',
      [],
      (state) => one(state?.made ? Date.parse(state.made.createdAt) / 1000 : undefined),
    );
  }
  return (outcome: string, took: number): void => {
    attempts.inc({ outcome });
    if (outcome === 'made') seconds.observe(took);
  };
}

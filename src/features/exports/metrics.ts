import { Counter, Histogram, type Registry } from 'prom-client';
import type { Sql } from '../../db/connection/connect.ts';
import { gaugesOf, latest, type Series } from '../../ops/latest.ts';
import type { ExportObserver } from './job.ts';
import { type ExportState, exportState } from './queries.ts';

/** @param everySeconds how often files are made; 0 for never @returns the function that counts an attempt */
export function addExportSeries(registry: Registry, sql: Sql, everySeconds: number): ExportObserver {
  const registers = [registry];
  const attempts = new Counter({
    name: 'fleetbook_export_attempts_total',
    help: 'Attempts to make the files of the catalogue, by outcome; busy: another worker makes them',
    labelNames: ['outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'fleetbook_export_duration_seconds',
    help: 'Time to make and store the files of the catalogue',
    buckets: [0.5, 1, 5, 15, 60, 300, 900],
    registers,
  });
  if (everySeconds > 0) {
    // An alert notices the first failure only if the series exists before it.
    for (const outcome of ['made', 'failed']) attempts.inc({ outcome }, 0);
    const state = latest<ExportState | undefined>(() => exportState(sql), undefined);
    const gauge = gaugesOf(registry, state);
    const one = (value: number | undefined): Series[] => (value === undefined ? [] : [[{}, value]]);
    gauge(
      'fleetbook_exports_behind_seconds',
      'Seconds since the catalogue changed without new files; 0 while the files are current',
      [],
      (found) => one(found?.behindSeconds),
    );
    gauge('fleetbook_exports_interval_seconds', 'Seconds from one version of the files to the next', [], () =>
      one(everySeconds),
    );
    gauge(
      'fleetbook_exports_timestamp_seconds',
      'Time of the catalogue state in the newest files, seconds since 1970',
      [],
      (found) => one(found?.made ? Date.parse(found.made.createdAt) / 1000 : undefined),
    );
  }
  return (outcome, took) => {
    attempts.inc({ outcome });
    if (outcome === 'made') seconds.observe(took);
  };
}

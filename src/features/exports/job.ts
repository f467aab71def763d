/** The worker's part: it makes files when they are due, in a thread, and counts the attempts. */
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Logger } from 'pino';
import { Counter, Histogram, type Registry } from 'prom-client';
import { databaseUrls } from '../../app/connections.ts';
import type { Disposer } from '../../app/disposer.ts';
import type { Config } from '../../config/config.ts';
import { ownScript } from '../../config/package.ts';
import { settingsOf } from '../../config/settings.ts';
import type { ClientDatabase, Store } from '../../db/connection/connect.ts';
import { readLineage } from '../../db/lineage.ts';
import { withTimeout } from '../../domain/clock.ts';
import { messageOf } from '../../domain/errors.ts';
import { gaugesOf, latest, type Series } from '../../ops/scrape-reads.ts';
import { type ExportState, exportState } from './export-state.ts';
import type { Made } from './make.ts';
import type { MakeThreadData, MakeThreadMessage } from './make-thread.ts';
import { EXPORT_SETTINGS } from './settings.ts';

const END_WITHIN_MS = 3000;

interface WorkerParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly closing: Disposer;
  readonly store: Store;
  /** Undefined in a worker without metrics. */
  readonly registry: Registry | undefined;
}

export function makeExports({ config, store: { db }, logger, registry, closing }: WorkerParts): void {
  const { EXPORT_EVERY: every } = settingsOf(config, EXPORT_SETTINGS);
  const observe = registry && addExportSeries(registry, db, every);
  if (every === 0) return;
  const job = runExports({ db, ...databaseUrls(config), everyMs: every * 1000, logger, observe });
  closing.defer(() => withTimeout(END_WITHIN_MS, job[Symbol.asyncDispose]()));
}

/** Counts an attempt. `busy`: another worker makes the files. @param seconds how long it took */
export type ExportObserver = (outcome: Made['outcome'] | 'failed', seconds: number) => void;

export interface ExportsOptions {
  readonly db: ClientDatabase;
  readonly url: string;
  readonly directUrl: string;
  /** Milliseconds from one version to the next. */
  readonly everyMs: number;
  readonly logger: Logger;
  readonly observe?: ExportObserver | undefined;
  /** Milliseconds between two checks whether files are due. */
  readonly checkEveryMs?: number;
  /** Milliseconds until the first retry. The pause doubles, up to ten minutes. */
  readonly retryMs?: number;
}

const CHECK_EVERY_MS = 10_000;
const RETRY_MS = 10_000;
const RETRY_AT_MOST_MS = 600_000;

/** Checks regularly whether files are due, and makes them. Disposing it ends an attempt. */
export function runExports(options: ExportsOptions): AsyncDisposable {
  const stopping = new AbortController();
  const running = checkUntil(stopping.signal, options);
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
    },
  };
}

async function checkUntil(signal: AbortSignal, options: ExportsOptions): Promise<void> {
  const { logger, checkEveryMs = CHECK_EVERY_MS, retryMs = RETRY_MS } = options;
  let failures = 0;
  for (let pauseMs = checkEveryMs; ; ) {
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    const began = performance.now();
    const observe = (outcome: Parameters<ExportObserver>[0]) =>
      options.observe?.(outcome, (performance.now() - began) / 1000);
    try {
      const made = await makeIfDue(options, signal);
      [pauseMs, failures] = [checkEveryMs, 0];
      if (made) observe(made.outcome);
      if (made?.outcome === 'made') logMade(logger, made, performance.now() - began);
    } catch (error) {
      if (signal.aborted) return;
      observe('failed');
      pauseMs = Math.max(checkEveryMs, Math.min(retryMs * 2 ** failures, RETRY_AT_MOST_MS));
      failures += 1;
      logger.warn(
        { reason: messageOf(error), failures, pauseMs },
        'files of the catalogue could not be made; the previous ones stay, and the worker retries',
      );
    }
  }
}

async function makeIfDue(
  { db, url, directUrl, everyMs }: ExportsOptions,
  signal: AbortSignal,
): Promise<Made | undefined> {
  const { version, made } = await exportState(db);
  if (version === null || made?.version === version) return undefined;
  if (made && made.ageSeconds * 1000 < everyMs) return undefined;
  // One maker at a time for a database: an existing folder is of an attempt that ended.
  const folder = join(tmpdir(), `fleetbook-exports-${await readLineage(db.$client)}`);
  return makeInThread({ url, directUrl, folder }, signal);
}

function logMade(logger: Logger, { version, rows, bytes }: Made & { outcome: 'made' }, ms: number): void {
  logger.info(
    { version, rows, bytes, seconds: Math.round(ms / 100) / 10 },
    'files of the catalogue were made',
  );
}

/** MiB of the thread's heap: it has a group of rows as strings and in columns. */
const HEAP_MIB = 512;

/** @param signal ends the thread, which then stores nothing @throws Error with the reason */
export async function makeInThread(data: MakeThreadData, signal: AbortSignal): Promise<Made> {
  const worker = new Worker(ownScript('src/features/exports/make-thread'), {
    workerData: data,
    name: 'exports',
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
  });
  try {
    const ended = once(worker, 'exit').then(() => {
      throw new Error('the thread that makes the files ended');
    });
    const [message]: MakeThreadMessage[] = await Promise.race([once(worker, 'message', { signal }), ended]);
    if (message?.outcome === 'failed') throw new Error(message.message);
    return message as Made;
  } finally {
    await worker.terminate();
  }
}

/** @param everySeconds how often files are made; 0 for never @returns the function that counts an attempt */
function addExportSeries(registry: Registry, db: ClientDatabase, everySeconds: number): ExportObserver {
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
    const state = latest<ExportState | undefined>(() => exportState(db), undefined);
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

/** Has files of the whole catalogue made whenever it has changed, but not too often. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Sql } from '../../db/connection/client.ts';
import { readLineage } from '../../db/lineage.ts';
import { messageOf } from '../../lib/driver-error.ts';
import type { Made } from './make.ts';
import { makeInThread } from './make-in-thread.ts';
import { exportState } from './queries.ts';

/** Hears how an attempt ended: `busy` where another worker was at it. Durations in seconds. */
export type ExportObserver = (outcome: Made['outcome'] | 'failed', seconds: number) => void;

export interface ExportsOptions {
  /** Acts as the worker. */
  readonly sql: Sql;
  readonly url: string;
  readonly directUrl: string;
  /** Milliseconds from one version to the next; whatever changes between them waits. */
  readonly everyMs: number;
  readonly logger: Logger;
  readonly observe?: ExportObserver | undefined;
  /** Milliseconds between two looks whether files are due. */
  readonly lookEveryMs?: number;
  /** Milliseconds to the next attempt after a failure; twice as long each time, up to ten minutes. */
  readonly againMs?: number;
}

const LOOK_EVERY_MS = 10_000;
const AGAIN_MS = 10_000;
const AGAIN_AT_MOST_MS = 600_000;

/** Looks now and then, until it is disposed of, which ends what is under way. */
export function exportNowAndThen(options: ExportsOptions): AsyncDisposable {
  const { logger, lookEveryMs = LOOK_EVERY_MS, againMs = AGAIN_MS } = options;
  const stopping = new AbortController();
  let failures = 0;
  let under: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout;
  const look = async () => {
    let pauseMs = lookEveryMs;
    const began = performance.now();
    const observe = (outcome: Parameters<ExportObserver>[0]) =>
      options.observe?.(outcome, (performance.now() - began) / 1000);
    try {
      const made = await makeIfDue(options, stopping.signal);
      failures = 0;
      if (made) observe(made.outcome);
      if (made?.outcome === 'made') logMade(logger, made, performance.now() - began);
    } catch (error) {
      if (stopping.signal.aborted) return;
      observe('failed');
      pauseMs = Math.max(lookEveryMs, Math.min(againMs * 2 ** failures, AGAIN_AT_MOST_MS));
      failures += 1;
      logger.warn(
        { reason: messageOf(error), failures, pauseMs },
        'files of the catalogue could not be made; the ones before stay, and it is tried again',
      );
    }
    next(pauseMs);
  };
  const next = (ms: number) => {
    if (stopping.signal.aborted) return;
    timer = setTimeout(() => {
      under = look();
    }, ms);
  };
  next(lookEveryMs);
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      clearTimeout(timer);
      await under;
    },
  };
}

/** Undefined where nothing is due. */
async function makeIfDue(
  { sql, url, directUrl, everyMs }: ExportsOptions,
  signal: AbortSignal,
): Promise<Made | undefined> {
  const { version, made } = await exportState(sql);
  if (version === null || made?.version === version) return undefined;
  if (made && made.ageSeconds * 1000 < everyMs) return undefined;
  // One maker at a time for a database: what is there already is left over.
  const folder = join(tmpdir(), `fleetbook-exports-${await readLineage(sql)}`);
  return makeInThread({ url, directUrl, folder }, signal);
}

function logMade(logger: Logger, { version, rows, bytes }: Made & { outcome: 'made' }, ms: number): void {
  logger.info(
    { version, rows, bytes, seconds: Math.round(ms / 100) / 10 },
    'files of the catalogue were made',
  );
}

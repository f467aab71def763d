import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Sql } from '../../db/connection/client.ts';
import { readLineage } from '../../db/lineage.ts';
import { messageOf } from '../../domain/errors.ts';
import type { Made } from './make.ts';
import { makeInThread } from './make-in-thread.ts';
import { exportState } from './queries.ts';

/** Counts an attempt. `busy`: another worker makes the files. @param seconds how long it took */
export type ExportObserver = (outcome: Made['outcome'] | 'failed', seconds: number) => void;

export interface ExportsOptions {
  readonly sql: Sql;
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
  { sql, url, directUrl, everyMs }: ExportsOptions,
  signal: AbortSignal,
): Promise<Made | undefined> {
  const { version, made } = await exportState(sql);
  if (version === null || made?.version === version) return undefined;
  if (made && made.ageSeconds * 1000 < everyMs) return undefined;
  // One maker at a time for a database: an existing folder is of an attempt that ended.
  const folder = join(tmpdir(), `fleetbook-exports-${await readLineage(sql)}`);
  return makeInThread({ url, directUrl, folder }, signal);
}

function logMade(logger: Logger, { version, rows, bytes }: Made & { outcome: 'made' }, ms: number): void {
  logger.info(
    { version, rows, bytes, seconds: Math.round(ms / 100) / 10 },
    'files of the catalogue were made',
  );
}

/** Composes a worker: a writer that also runs sources. */
import type { Logger } from 'pino';
import type { Config, SourceConfig } from '../config/config.ts';
import { type CurrencyChange, storedCurrency } from '../db/prices/currency.ts';
import { seedProviders } from '../db/providers.ts';
import { REQUEST_RETRIES, RequestRetries, type Retry, type RetryPolicy } from '../sources/http/retries.ts';
import { catalogueAdapters } from '../sources/registry.ts';
import { adoptCurrency } from '../sync/currency.ts';
import type { SyncResult } from '../sync/pipeline.ts';
import { LiveRuns } from '../sync/runs/live.ts';
import { inSomeLogContext } from './log-context.ts';
import { type RunOptions, runSource } from './run-source.ts';
import { composeWriter, type Writer, type WriterOptions } from './writer.ts';

export interface Worker extends Writer {
  /** The runs of this worker. */
  readonly liveRuns: LiveRuns;
  /** Converts all prices to the configured currency, once. Every run calls it first. */
  adoptCurrency(): Promise<void>;
  runSource(source: SourceConfig, options?: Omit<RunOptions, 'retries'>): Promise<SyncResult>;
}

export interface WorkerOptions extends WriterOptions {
  /** False keeps the currency of the database, if it has one. */
  readonly decidesCurrency?: boolean;
  readonly requestRetries?: RetryPolicy | undefined;
}

export function composeWorker(
  config: Config,
  logger: Logger,
  { decidesCurrency = true, requestRetries = REQUEST_RETRIES, ...observers }: WorkerOptions = {},
): Worker {
  const writer = composeWriter(config, logger, observers);
  const { store } = writer;
  const liveRuns = new LiveRuns(store.connection);
  let seeded: Promise<void> | undefined;
  const seed = () => {
    seeded ??= seedProviders(
      store.db,
      catalogueAdapters.flatMap(({ provider }) => provider ?? []),
    ).catch((error: unknown) => {
      seeded = undefined;
      throw error;
    });
    return seeded;
  };
  let adopted = false;
  let lastChange: CurrencyChange['outcome'] | undefined;
  const adopt = async () => {
    if (adopted || (!decidesCurrency && (await storedCurrency(store.db)) !== undefined)) return;
    const change = await adoptCurrency(store, config.settings, new Date());
    adopted = change.outcome !== 'no rate';
    // Every run tries again, but the same outcome is logged once.
    if (change.outcome !== lastChange) logCurrencyChange(logger, config.settings.CATALOGUE_CURRENCY, change);
    lastChange = change.outcome;
  };
  return {
    ...writer,
    liveRuns,
    adoptCurrency: adopt,
    runSource: (source, options = {}) =>
      inSomeLogContext(async () => {
        await seed();
        // A failure that also stops the run is recorded with it.
        await adopt().catch((error: unknown) =>
          logger.warn({ err: error }, 'the currency could not be changed; the next run tries again'),
        );
        const retries = new RequestRetries(requestRetries, (retry) => logRetry(logger, source.id, retry));
        return runSource(config, store, liveRuns, source, { ...options, retries });
      }),
    async [Symbol.asyncDispose]() {
      await Promise.all([liveRuns[Symbol.asyncDispose](), writer[Symbol.asyncDispose]()]);
    },
  };
}

function logRetry(logger: Logger, sourceId: string, { failure, attempt, pauseMs, ofRun }: Retry): void {
  logger.warn(
    { sourceId, attempt, pauseMs: Math.round(pauseMs), repeatedInRun: ofRun },
    `${failure.message}; the request is retried in ${(pauseMs / 1000).toFixed(1)} s`,
  );
}

function logCurrencyChange(logger: Logger, currency: string, change: CurrencyChange): void {
  if (change.outcome === 'changed' && change.from !== undefined)
    logger.info(
      { from: change.from, to: currency },
      'all prices are published in the configured currency from now on',
    );
  if (change.outcome === 'no rate')
    logger.warn(
      { currency, lacking: change.currencies },
      'prices keep their currency: exchange rates to CATALOGUE_CURRENCY are missing; set them in CATALOGUE_RATES',
    );
}

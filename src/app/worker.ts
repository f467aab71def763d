/** Puts together what `work` and the commands write with. */
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Config, SourceConfig } from '../config/config.ts';
import { openStore, type Store } from '../db/connect.ts';
import { type CurrencyChange, storedCurrency } from '../db/queries/currency.ts';
import { seedProviders } from '../db/queries/providers.ts';
import { withFence } from '../snapshot/publish/fence.ts';
import { type LineageObserver, Publisher, type PublishObserver } from '../snapshot/publish/publisher.ts';
import { catalogueAdapters } from '../sources/registry.ts';
import { adoptCurrency } from '../sync/currency.ts';
import type { SyncResult } from '../sync/result.ts';
import { cacheRedis, databaseUrl, openLoggedRedis } from './connections.ts';
import { Closing } from './disposer.ts';
import { type RunOptions, runSource } from './run-source.ts';

export interface WriteTier extends AsyncDisposable {
  readonly store: Store;
  readonly publisher: Publisher;
  /** The cache's connection, for what follows its coming back. */
  readonly cache: Redis;
  /** Makes the setting's currency that of all prices, once; every run does so before it begins. */
  adoptCurrency(): Promise<void>;
  runSource(source: SourceConfig, options?: RunOptions): Promise<SyncResult>;
}

export interface WriteTierOptions {
  readonly onPublish?: PublishObserver | undefined;
  /** Hears that the database was found to be a restored one: every schedule's latest slot is due again. */
  readonly onNewLineage?: LineageObserver;
  /** False for who keeps to the currency that the database publishes in, if there is one, whatever the setting says. */
  readonly decidesCurrency?: boolean;
}

/** Statements of a transaction follow each other at once: a writer that is silent for so long is frozen. */
const SILENT_IN_TRANSACTION_MS = 60_000;

/** Everything that `work` and the commands write with. */
export function composeWriteTier(
  config: Config,
  logger: Logger,
  { onPublish, onNewLineage = () => {}, decidesCurrency = true }: WriteTierOptions = {},
): WriteTier {
  const closing = new Closing();
  const store = closing.use(
    openStore({
      url: databaseUrl(config),
      role: 'worker',
      connections: 8,
      statementTimeoutMs: config.settings.WRITE_STATEMENT_TIMEOUT * 1000,
      silentInTransactionMs: SILENT_IN_TRANSACTION_MS,
    }),
  );
  const cache = withFence(openLoggedRedis(cacheRedis(config), 'publisher', logger));
  closing.defer(() => cache.disconnect());
  const publisher = new Publisher(store.sql, cache, onPublish, (begun, why) => {
    const { id, revokedAgain, forgotten } = begun;
    logger.warn(
      { lineage: id, revokedAgain, forgottenTokens: forgotten },
      `${why}: the database gets a new lineage, all documents are published anew and every source runs again`,
    );
    onNewLineage(begun, why);
  });
  let seeded: Promise<void> | undefined;
  const seed = () => {
    seeded ??= seedProviders(
      store.sql,
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
    if (adopted || (!decidesCurrency && (await storedCurrency(store.sql)) !== undefined)) return;
    const change = await adoptCurrency(store, config.settings, new Date());
    adopted = change.outcome !== 'no rate';
    // Every run tries again; to say it once is enough.
    if (change.outcome !== lastChange) tellOfCurrency(logger, config.settings.CATALOGUE_CURRENCY, change);
    lastChange = change.outcome;
  };
  return {
    store,
    publisher,
    cache,
    adoptCurrency: adopt,
    async runSource(source, options = {}) {
      await seed();
      // What fails here fails in the run too, or not at all: the run is what is recorded.
      await adopt().catch((error: unknown) =>
        logger.warn({ err: error }, 'the currency could not be changed'),
      );
      return runSource(config, store, source, options);
    },
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  };
}

function tellOfCurrency(logger: Logger, currency: string, change: CurrencyChange): void {
  if (change.outcome === 'changed' && change.from !== undefined)
    logger.info(
      { from: change.from, to: currency },
      'all prices are published in another currency from now on',
    );
  if (change.outcome === 'no rate')
    logger.warn(
      { currency, lacking: change.currencies },
      'prices stay in the currency that they are in: CATALOGUE_CURRENCY is another one, into which exchange rates are lacking; give them in CATALOGUE_RATES',
    );
}

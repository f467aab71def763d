/** Puts together what `work` and the commands write with. */
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { Closing } from './closing.ts';
import type { Config, SourceConfig } from './config.ts';
import { cacheRedisUrl, databaseUrl, openLoggedRedis } from './connections.ts';
import { type RunOptions, runSource } from './run-source.ts';
import { withFence } from './snapshot/fence.ts';
import { type LineageObserver, Publisher, type PublishObserver } from './snapshot/publish.ts';
import { catalogueAdapters } from './sources/registry.ts';
import { openStore, type Store } from './store/connect.ts';
import { seedProviders } from './store/providers.ts';
import type { SyncResult } from './sync/sync-catalogue.ts';

export interface WriteTier extends AsyncDisposable {
  readonly store: Store;
  readonly publisher: Publisher;
  /** The cache's connection, for what follows its coming back. */
  readonly cache: Redis;
  runSource(source: SourceConfig, options?: RunOptions): Promise<SyncResult>;
}

/** Statements of a transaction follow each other at once: a writer that is silent for so long is frozen. */
const SILENT_IN_TRANSACTION_MS = 60_000;

/**
 * Everything that `work` and the commands write with.
 * @param onNewLineage hears that the database was found to be a restored one: every schedule's latest slot is due again
 */
export function composeWriteTier(
  config: Config,
  logger: Logger,
  onPublish?: PublishObserver,
  onNewLineage: LineageObserver = () => {},
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
  const cache = withFence(openLoggedRedis(cacheRedisUrl(config), 'publisher', logger));
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
  return {
    store,
    publisher,
    cache,
    async runSource(source, options = {}) {
      await seed();
      return runSource(config, store, source, options);
    },
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  };
}

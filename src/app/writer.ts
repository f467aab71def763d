/** Composes a writer: PostgreSQL, the cache and the publisher. It loads no adapters. */
import type { Logger } from 'pino';
import type { Configured } from '../config/settings.ts';
import { openStore, type Store } from '../db/connection/connect.ts';
import type { RedisClient } from '../redis/redis.ts';
import type { ComparisonObserver } from '../snapshot/publish/comparison.ts';
import { withFence } from '../snapshot/publish/fence.ts';
import type { LineageObserver } from '../snapshot/publish/new-lineage.ts';
import { type PublicationFollower, Publisher, type PublishObserver } from '../snapshot/publish/publisher.ts';
import { cacheRedis, databaseUrls, openLoggedRedis } from './connections.ts';
import { Disposer } from './disposer.ts';

export interface Writer extends AsyncDisposable {
  readonly store: Store;
  readonly publisher: Publisher;
  readonly cache: RedisClient;
}

export interface WriterOptions {
  readonly onPublish?: PublishObserver | undefined;
  readonly comparison?: ComparisonObserver | undefined;
  /** Called if the database was restored: every schedule's latest slot is due again. */
  readonly onNewLineage?: LineageObserver;
}

/** A writer's transaction without a statement for this long hangs, and blocks the next run of its source. */
const SILENT_IN_TRANSACTION_MS = 20_000;

export function composeWriter(
  config: Configured,
  logger: Logger,
  { onPublish, comparison, onNewLineage = () => {} }: WriterOptions = {},
): Writer {
  const closing = new Disposer();
  const store = closing.use(
    openStore({
      ...databaseUrls(config),
      role: 'worker',
      connections: 8,
      statementTimeoutMs: config.settings.WRITE_STATEMENT_TIMEOUT * 1000,
      silentInTransactionMs: SILENT_IN_TRANSACTION_MS,
    }),
  );
  const cache = withFence(openLoggedRedis(cacheRedis(config), 'publisher', logger));
  closing.defer(() => cache.disconnect());
  const appendToFeed: PublicationFollower = async (which) =>
    (await import('../features/feed/append-changes.ts')).feedFollower({ db: store.db, redis: cache })(which);
  const publisher = new Publisher(store.db, cache, {
    followers: [appendToFeed],
    observe: onPublish,
    onLineage: (begun, why) => {
      const { id, revokedAgain, forgotten } = begun;
      logger.warn(
        { lineage: id, revokedAgain, forgottenTokens: forgotten },
        `${why}: the database gets a new lineage, all documents are republished, and every source runs again`,
      );
      onNewLineage(begun, why);
    },
    comparison: { logger, observe: comparison },
  });
  return { store, publisher, cache, [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose]() };
}

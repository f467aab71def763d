/** Puts the parts together: the one place that knows them all. */
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { Closing } from './closing.ts';
import type { Config, SourceConfig } from './config.ts';
import type { TokenVerifier } from './domain/grant.ts';
import { type RunOptions, runSource } from './run-source.ts';
import { BadSetting } from './settings.ts';
import { type CatalogueReader, type ClusterReader, Unavailable } from './snapshot/answer.ts';
import { CacheLink } from './snapshot/cache-link.ts';
import { Documents } from './snapshot/documents.ts';
import { withFence } from './snapshot/fence.ts';
import { Publisher, type PublishObserver } from './snapshot/publish.ts';
import { catalogueReader, clusterReader, tokenVerifier } from './snapshot/readers.ts';
import { catalogueAdapters } from './sources/registry.ts';
import { openStore, type Store } from './store/connect.ts';
import { seedProviders } from './store/providers.ts';
import { openRedis, type RedisUse } from './store/redis.ts';
import type { SyncResult } from './sync/sync-catalogue.ts';

/** @throws BadSetting that says what to give, and that `up` would bring a database of its own. */
export function databaseUrl(config: Config): string {
  const url = config.settings.DATABASE_URL;
  if (url) return url;
  throw new BadSetting(
    'DATABASE_URL is not set; give postgres://user:password@host/database, or use `fleetbook up`, which brings its own',
  );
}

function cacheRedisUrl(config: Config): string {
  return redisUrl(config, 'CACHE_REDIS_URL');
}

export function queueRedisUrl(config: Config): string {
  return redisUrl(config, 'QUEUE_REDIS_URL');
}

function redisUrl(config: Config, name: 'CACHE_REDIS_URL' | 'QUEUE_REDIS_URL'): string {
  const url = config.settings[name] ?? config.settings.REDIS_URL;
  if (url) return url;
  throw new BadSetting(
    `neither ${name} nor REDIS_URL is set; give redis://host:6379, or use \`fleetbook up\`, which brings its own`,
  );
}

/** Opens a connection that tells of trouble once, not at every attempt. */
export function openLoggedRedis(url: string, use: RedisUse, logger: Logger): Redis {
  let told = false;
  const redis = openRedis(url, use, (error) => {
    logger[told ? 'debug' : 'warn'](
      { use, code: (error as NodeJS.ErrnoException).code },
      `Redis: ${error.message}`,
    );
    told = true;
  });
  redis.on('ready', () => {
    if (told) logger.info({ use }, 'Redis is back');
    told = false;
  });
  return redis;
}

export interface ReadTier extends AsyncDisposable {
  readonly catalogue: CatalogueReader;
  readonly clusters: ClusterReader;
  readonly tokens: TokenVerifier;
  /** Ready when the lineage is known and the list of providers can be answered. */
  readiness(): Promise<{ ready: boolean; checks: Record<string, string> }>;
}

/** Everything that `serve` reads with. Nothing has to be up yet: what is missing shows in `readiness`. */
export function composeReadTier(config: Config, logger: Logger): ReadTier {
  const { settings } = config;
  const closing = new Closing();
  const store = closing.use(
    openStore({
      url: settings.READER_DATABASE_URL ?? databaseUrl(config),
      role: 'reader',
      connections: settings.POSTGRES_READS,
      statementTimeoutMs: 2500,
    }),
  );
  const url = cacheRedisUrl(config);
  const link = closing.use(
    new CacheLink({
      commands: withFence(openLoggedRedis(url, 'reader', logger)),
      subscriber: openLoggedRedis(url, 'subscriber', logger),
      logger,
    }),
  );
  const documents = new Documents({
    sql: store.sql,
    link,
    logger,
    memoryLimit: settings.MEMORY_LIMIT,
    postgresReads: settings.POSTGRES_READS,
    onHang: () => store.renew(),
    staleLimitMs: settings.STALE_LIMIT * 1000,
    tokenStaleLimitMs: settings.TOKEN_STALE_LIMIT * 1000,
  });
  return {
    catalogue: catalogueReader(documents),
    clusters: clusterReader(documents),
    tokens: tokenVerifier(documents),
    async readiness() {
      const catalogue = await documents.get({ kind: 'providers' }).then(
        () => 'ok',
        (error: unknown) => (error instanceof Unavailable ? error.message : 'cannot be read'),
      );
      return { ready: catalogue === 'ok', checks: { catalogue, cache: link.linked ? 'ok' : 'not linked' } };
    },
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  };
}

export interface WriteTier extends AsyncDisposable {
  readonly store: Store;
  readonly publisher: Publisher;
  /** The cache's connection, for what follows its coming back. */
  readonly cache: Redis;
  runSource(source: SourceConfig, options?: RunOptions): Promise<SyncResult>;
}

/** Everything that `work` and the commands write with. */
export function composeWriteTier(config: Config, logger: Logger, onPublish?: PublishObserver): WriteTier {
  const closing = new Closing();
  const store = closing.use(openStore({ url: databaseUrl(config), role: 'worker', connections: 8 }));
  const cache = withFence(openLoggedRedis(cacheRedisUrl(config), 'publisher', logger));
  closing.defer(() => cache.disconnect());
  const publisher = new Publisher(store.sql, cache, onPublish);
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

/** Puts together what serves. Nothing that only writers need is loaded here: a reader has to start at once. */
import type { Logger } from 'pino';
import { type Settings, snapshotDirLimit } from '../config/settings.ts';
import { openStore, type Store } from '../db/connect.ts';
import { postgresProblem, type ServerSetting } from '../db/server-problem.ts';
import { TokenUse } from '../db/tokens.ts';
import type { ExportReader } from '../domain/export-files.ts';
import { exportReader } from '../exports/stored-exports.ts';
import { FeedTail } from '../feed/feed-tail.ts';
import type { ApiDeps } from '../http/app.ts';
import { ResponseCache } from '../http/response-cache.ts';
import type { DiskCopyCounts } from '../snapshot/disk/copy-health.ts';
import { DiskCopy } from '../snapshot/disk/disk-copy.ts';
import {
  type CatalogueReader,
  type ClusterReader,
  type Tier,
  type TokenReader,
  Unavailable,
} from '../snapshot/document/answer.ts';
import { withFence } from '../snapshot/publish/fence.ts';
import { memoryBudget } from '../snapshot/read/budget.ts';
import { CacheSubscription } from '../snapshot/read/cache-subscription.ts';
import { Documents } from '../snapshot/read/documents.ts';
import { watchLineage } from '../snapshot/read/lineage-watch.ts';
import { POSTGRES_DEADLINE_MS, PostgresReads } from '../snapshot/read/postgres/postgres-reads.ts';
import { ReplicaReads } from '../snapshot/read/postgres/replica-reads.ts';
import { catalogueReader, clusterReader } from '../snapshot/read/readers.ts';
import { type SearchReader, searchReader } from '../snapshot/read/search-reader.ts';
import { Searchable, type SearchCounts } from '../snapshot/read/searchable.ts';
import { tokenVerifier } from '../snapshot/read/tokens.ts';
import {
  type Configured,
  cacheRedis,
  openLoggedRedis,
  readerDatabase,
  readerPrimary,
} from './connections.ts';
import { tellReaderMisfit } from './database-misfit.ts';
import { Disposer } from './disposer.ts';

export interface Reader extends AsyncDisposable {
  readonly catalogue: CatalogueReader;
  readonly clusters: ClusterReader;
  readonly search: SearchReader;
  /** What is counted of the index that searches are answered from. */
  searchCounts(): SearchCounts;
  readonly tokens: TokenReader;
  readonly exports: ExportReader;
  readonly responses: ResponseCache;
  readonly feed: FeedTail;
  /** What is counted of its copy on disk, where it keeps one. */
  readonly diskCopy: DiskCopyCounts | undefined;
  /** What is counted of the replica, where it may read one. */
  readonly replica: Pick<ReplicaReads, 'counts'> | undefined;
  /** Ready when the lineage is known and the list of providers can be answered. */
  readiness(): Promise<{ ready: boolean; checks: Record<string, string> }>;
}

/** The share of successful answers that is logged: thousands a second would cost more than they say. */
const LOGGED_SHARE = 0.001;

/** What the settings say about the API itself. */
export function apiOptions(
  settings: Settings,
): Pick<ApiDeps, 'trustProxy' | 'corsOrigins' | 'logSuccesses' | 'limits' | 'docs'> {
  return {
    docs: settings.API_DOCS === 'on',
    trustProxy: settings.TRUST_PROXY,
    corsOrigins: settings.CORS_ORIGINS,
    logSuccesses: ['debug', 'trace'].includes(settings.LOG_LEVEL) ? 1 : LOGGED_SHARE,
    limits: {
      maxConnections: settings.MAX_CONNECTIONS,
      ...(settings.MAX_CONNECTIONS > 0 && { streamsAtMost: Math.ceil(settings.MAX_CONNECTIONS / 2) }),
      maxEventLoopDelayMs: settings.MAX_EVENT_LOOP_DELAY,
      requestsPerMinute: settings.RATE_LIMIT,
    },
  };
}

export interface ReaderObserver {
  /** Hears of each value of the cache that could not be used, by the kind of its document. */
  readonly onUnusable?: (kind: string) => void;
}

/** Everything that `serve` reads with. Nothing has to be up yet: what is missing shows in `readiness`. */
export function composeReader(config: Configured, logger: Logger, observer: ReaderObserver = {}): Reader {
  const { settings } = config;
  const closing = new Disposer();
  const database = readerDatabase(config);
  const store = closing.use(
    openStore({
      url: database.url,
      role: 'reader',
      connections: settings.POSTGRES_READS,
      statementTimeoutMs: 2500,
    }),
  );
  const staleLimitMs = settings.STALE_LIMIT * 1000;
  const tokenStaleLimitMs = settings.TOKEN_STALE_LIMIT * 1000;
  const { SNAPSHOT_DIR: folder } = settings;
  const limits = { bytes: snapshotDirLimit(settings), staleLimitMs, tokenStaleLimitMs };
  const diskCopy = folder ? closing.use(new DiskCopy({ folder, limits, logger })) : undefined;
  const cache = cacheRedis(config);
  const subscription = closing.use(
    new CacheSubscription({
      commands: withFence(openLoggedRedis(cache, 'reader', logger)),
      subscriber: openLoggedRedis(cache, 'subscriber', logger),
      logger,
    }),
  );
  const memory = memoryBudget(settings.MEMORY_LIMIT);
  const primary = openPrimary(config, closing);
  const replica = primary && replicaReads(config, store, primary, logger);
  const tokenUse = closing.use(new TokenUse({ sql: (primary ?? store).sql, logger }));
  // What comes is heard by the documents, and read by their way to Postgres.
  const feed: FeedTail = new FeedTail({
    run: (read, check) => documents.postgres(read, check),
    atOnce: Math.ceil(settings.POSTGRES_READS / 4),
    logger,
  });
  closing.defer(() => feed[Symbol.dispose]());
  const documents = new Documents({
    onFeed: (position) => feed.heard(position),
    onLineage: () => feed.reset(),
    sql: store.sql,
    replica,
    subscription,
    logger,
    memory,
    postgresReads: settings.POSTGRES_READS,
    postgresProblem: (error) => postgresProblem(error, database),
    onHang: () => store.renew(),
    onUnusable: observer.onUnusable,
    staleLimitMs,
    tokenStaleLimitMs,
    copy: diskCopy,
  });
  const searchable = new Searchable({
    documents,
    subscription,
    logger,
    memoryLimit: memory.search,
    staleLimitMs,
  });
  const watching = watchLineage(() => documents.checkPostgres());
  closing.defer(() => watching[Symbol.dispose]());
  for (const each of [store, primary]) each?.onLost(() => watching.lookNow());
  const telling = tellReaderMisfit({ store, server: database, primary, logger });
  closing.defer(() => telling[Symbol.dispose]());
  return {
    catalogue: catalogueReader(documents, { pricesLimit: memory.prices, staleLimitMs }),
    clusters: clusterReader(documents),
    search: searchReader(searchable),
    searchCounts: () => searchable.counts,
    tokens: tokenVerifier(documents, {
      used: (tokenId) => tokenUse.used(tokenId),
      memoryLimit: memory.acceptedTokens,
      postgresReads: settings.POSTGRES_READS,
    }),
    exports: openExports(database, logger, closing),
    responses: new ResponseCache(documents, memory.responses),
    feed,
    diskCopy: diskCopy?.counts,
    replica,
    async readiness() {
      let catalogue = 'ok';
      let tier: Tier | undefined;
      try {
        ({ tier } = await documents.get({ kind: 'providers' }));
      } catch (error) {
        catalogue = error instanceof Unavailable ? error.message : 'cannot be read';
      }
      return {
        ready: catalogue === 'ok',
        checks: {
          catalogue,
          cache: cacheState(subscription),
          // Whoever watches a reader with a copy on disk wants to know that it lives on it.
          ...(diskCopy && tier ? { tier } : {}),
        },
      };
    },
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  };
}

function cacheState({ linked, isConnected, publisher }: CacheSubscription): string {
  if (linked) return 'ok';
  return isConnected && publisher === 'silent' ? 'not linked: no worker reaches it' : 'not linked';
}

/** Connections for downloads alone, of all of them together. */
const EXPORT_CONNECTIONS = 2;

function openExports(server: ServerSetting, logger: Logger, closing: Disposer): ExportReader {
  const { sql, renew } = closing.use(
    openStore({
      url: server.url,
      role: 'reader',
      connections: EXPORT_CONNECTIONS,
      statementTimeoutMs: 2500,
    }),
  );
  const reads = new PostgresReads({
    sql,
    logger,
    now: Date.now,
    atOnce: EXPORT_CONNECTIONS,
    deadlineMs: POSTGRES_DEADLINE_MS,
    onHang: renew,
    problemOf: (error) => postgresProblem(error, server),
  });
  return exportReader({ reads, now: Date.now });
}

/** A share of what readers may read from PostgreSQL: the primary has the writes as well. */
const SHARE_OF_PRIMARY = 1 / 4;

interface Primary extends Store {
  readonly server: ServerSetting;
  /** Reads at once. */
  readonly atOnce: number;
}

/** Undefined where readers have no other place to read than the primary. */
function openPrimary(config: Configured, closing: Disposer): Primary | undefined {
  const server = readerPrimary(config);
  if (!server) return undefined;
  const atOnce = Math.ceil(config.settings.POSTGRES_READS * SHARE_OF_PRIMARY);
  const store = closing.use(
    openStore({ url: server.url, role: 'reader', connections: atOnce, statementTimeoutMs: 2500 }),
  );
  return { ...store, server, atOnce };
}

function replicaReads(config: Configured, store: Store, primary: Primary, logger: Logger): ReplicaReads {
  const { settings } = config;
  const reads = ({ sql, renew }: Store, server: ServerSetting, most: number) =>
    new PostgresReads({
      sql,
      logger,
      now: Date.now,
      atOnce: most,
      deadlineMs: POSTGRES_DEADLINE_MS,
      onHang: renew,
      problemOf: (error) => postgresProblem(error, server),
    });
  return new ReplicaReads({
    replica: reads(store, readerDatabase(config), settings.POSTGRES_READS),
    primary: reads(primary, primary.server, primary.atOnce),
  });
}

/** Puts together what serves. Nothing that only writers need is loaded here: a reader has to start at once. */
import type { Logger } from 'pino';
import type { Settings } from '../config/settings.ts';
import { openSqlStore } from '../db/open.ts';
import { TokenUse } from '../db/reads/token-use.ts';
import { addReport } from '../db/reports.ts';
import { postgresProblem } from '../db/server-problem.ts';
import type { ApiDeps } from '../http/app.ts';
import { ResponseCache } from '../http/response-cache.ts';
import { DiskCopy, type DiskCopyCounts } from '../snapshot/disk/disk-copy.ts';
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
import { checkNowAndThen, MemoryCheck, type MemoryObserver } from '../snapshot/read/memory-check.ts';
import { catalogueReader, clusterReader } from '../snapshot/read/readers.ts';
import { tokenVerifier } from '../snapshot/read/tokens.ts';
import { type Configured, cacheRedis, openLoggedRedis, readerDatabase } from './connections.ts';
import { Disposer } from './disposer.ts';

export interface Reader extends AsyncDisposable {
  readonly catalogue: CatalogueReader;
  readonly clusters: ClusterReader;
  readonly tokens: TokenReader;
  readonly responses: ResponseCache;
  /** What is counted of its copy on disk, where it keeps one. */
  readonly diskCopy: DiskCopyCounts | undefined;
  /** Ready when the lineage is known and the list of providers can be answered. */
  readiness(): Promise<{ ready: boolean; checks: Record<string, string> }>;
  /** Sends a report of this process (src/domain/report.ts); false where the cache is away. It never fails. */
  report(text: string): Promise<boolean>;
}

/** What the settings say about the API itself. */
export function apiOptions(settings: Settings): Pick<ApiDeps, 'trustProxy' | 'logSuccesses' | 'limits'> {
  return {
    trustProxy: settings.TRUST_PROXY,
    logSuccesses: settings.LOG_SUCCESSES,
    limits: {
      maxConnections: settings.MAX_CONNECTIONS,
      maxEventLoopDelayMs: settings.MAX_EVENT_LOOP_DELAY,
      requestsPerMinute: settings.RATE_LIMIT,
    },
  };
}

export interface ReaderObserver {
  /** Hears of memory that was compared with the cache; nothing is compared for nobody. */
  readonly onCompared?: MemoryObserver;
  /** Hears of each value of the cache that could not be used, by the kind of its document. */
  readonly onUnusable?: (kind: string) => void;
}

/** Everything that `serve` reads with. Nothing has to be up yet: what is missing shows in `readiness`. */
export function composeReader(config: Configured, logger: Logger, observer: ReaderObserver = {}): Reader {
  const { settings } = config;
  const closing = new Disposer();
  const database = readerDatabase(config);
  const store = closing.use(
    openSqlStore({
      url: database.url,
      role: 'reader',
      connections: settings.POSTGRES_READS,
      statementTimeoutMs: 2500,
    }),
  );
  const tokenUse = closing.use(new TokenUse({ sql: store.sql, logger }));
  const staleLimitMs = settings.STALE_LIMIT * 1000;
  const tokenStaleLimitMs = settings.TOKEN_STALE_LIMIT * 1000;
  const { SNAPSHOT_DIR: folder, SNAPSHOT_DIR_LIMIT: bytes } = settings;
  const limits = { bytes, staleLimitMs, tokenStaleLimitMs };
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
  const documents = new Documents({
    sql: store.sql,
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
  const { onCompared } = observer;
  if (onCompared && settings.COMPARE_EVERY > 0) {
    const check = new MemoryCheck({
      documents,
      subscription,
      observe: onCompared,
      sample: settings.COMPARE_DOCUMENTS,
    });
    const checking = checkNowAndThen(check, settings.COMPARE_EVERY * 1000);
    closing.defer(() => checking[Symbol.dispose]());
  }
  return {
    catalogue: catalogueReader(documents, { pricesLimit: memory.prices, staleLimitMs }),
    clusters: clusterReader(documents),
    tokens: tokenVerifier(documents, {
      used: (tokenId) => tokenUse.used(tokenId),
      memoryLimit: memory.acceptedTokens,
      unknownTokens: {
        perSecond: settings.UNKNOWN_TOKENS,
        perSecondAndAddress: settings.UNKNOWN_TOKENS_PER_ADDRESS,
      },
      postgresReads: settings.POSTGRES_READS,
    }),
    responses: new ResponseCache(documents, memory.responses),
    diskCopy: diskCopy?.counts,
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
          cache: subscription.linked ? 'ok' : 'not linked',
          // Whoever watches a reader with a copy on disk wants to know that it lives on it.
          ...(diskCopy && tier ? { tier } : {}),
        },
      };
    },
    async report(text) {
      const { keys } = subscription;
      if (!keys) return false;
      return (
        (await subscription.ask((redis) => addReport(redis, keys.reports, text).then(() => true))) ?? false
      );
    },
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  };
}

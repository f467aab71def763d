/** Puts together what serves. Nothing that only writers need is loaded here: a reader has to start at once. */
import type { Logger } from 'pino';
import type { Settings } from '../config/settings.ts';
import { openSqlStore } from '../db/open.ts';
import { postgresProblem } from '../db/queries/server-problem.ts';
import { TokenUse } from '../db/queries/token-use.ts';
import type { ApiDeps } from '../http/app.ts';
import {
  type CatalogueReader,
  type ClusterReader,
  type TokenReader,
  Unavailable,
} from '../snapshot/document/answer.ts';
import { withFence } from '../snapshot/publish/fence.ts';
import { CacheLink } from '../snapshot/read/cache-subscription.ts';
import { Documents } from '../snapshot/read/documents.ts';
import { checkNowAndThen, MemoryCheck, type MemoryObserver } from '../snapshot/read/memory-check.ts';
import { catalogueReader, clusterReader, tokenVerifier } from '../snapshot/read/readers.ts';
import { type Configured, cacheRedis, openLoggedRedis, readerDatabase } from './connections.ts';
import { Closing } from './disposer.ts';

export interface ReadTier extends AsyncDisposable {
  readonly catalogue: CatalogueReader;
  readonly clusters: ClusterReader;
  readonly tokens: TokenReader;
  /** Ready when the lineage is known and the list of providers can be answered. */
  readiness(): Promise<{ ready: boolean; checks: Record<string, string> }>;
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

/** Everything that `serve` reads with. Nothing has to be up yet: what is missing shows in `readiness`. */
export function composeReadTier(config: Configured, logger: Logger, onCompared?: MemoryObserver): ReadTier {
  const { settings } = config;
  const closing = new Closing();
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
  const cache = cacheRedis(config);
  const link = closing.use(
    new CacheLink({
      commands: withFence(openLoggedRedis(cache, 'reader', logger)),
      subscriber: openLoggedRedis(cache, 'subscriber', logger),
      logger,
    }),
  );
  const documents = new Documents({
    sql: store.sql,
    link,
    logger,
    memoryLimit: settings.MEMORY_LIMIT,
    postgresReads: settings.POSTGRES_READS,
    unknownTokens: settings.UNKNOWN_TOKENS,
    unknownTokensPerAddress: settings.UNKNOWN_TOKENS_PER_ADDRESS,
    postgresProblem: (error) => postgresProblem(error, database),
    onHang: () => store.renew(),
    staleLimitMs: settings.STALE_LIMIT * 1000,
    tokenStaleLimitMs: settings.TOKEN_STALE_LIMIT * 1000,
  });
  if (onCompared && settings.COMPARE_EVERY > 0) {
    const check = new MemoryCheck({
      documents,
      link,
      observe: onCompared,
      sample: settings.COMPARE_DOCUMENTS,
    });
    const checking = checkNowAndThen(check, settings.COMPARE_EVERY * 1000);
    closing.defer(() => checking[Symbol.dispose]());
  }
  return {
    catalogue: catalogueReader(documents),
    clusters: clusterReader(documents),
    tokens: tokenVerifier(documents, { used: (tokenId) => tokenUse.used(tokenId) }),
    async readiness() {
      let catalogue = 'ok';
      try {
        await documents.get({ kind: 'providers' });
      } catch (error) {
        catalogue = error instanceof Unavailable ? error.message : 'cannot be read';
      }
      return { ready: catalogue === 'ok', checks: { catalogue, cache: link.linked ? 'ok' : 'not linked' } };
    },
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  };
}

/** Composes a reader: the tiers of documents, what it answers, and its features. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Settings } from '../config/settings.ts';
import { openStore } from '../db/connection/connect.ts';
import { postgresProblem, type ServerSetting } from '../db/connection/server-problem.ts';
import { TokenUse } from '../db/token-use.ts';
import { steadyNow } from '../domain/clock.ts';
import { lazily } from '../domain/lazily.ts';
import type { ApiDeps, ApiFeature } from '../http/app.ts';
import { ResponseCache } from '../http/hot/response-cache.ts';
import type { FindSource } from '../http/protocol/max-age.ts';
import {
  type CatalogueReader,
  type ClusterReader,
  type Tier,
  type TokenReader,
  Unavailable,
} from '../snapshot/document/answer.ts';
import { withFence } from '../snapshot/publish/fence.ts';
import { memoryBudget } from '../snapshot/read/budget.ts';
import { Documents } from '../snapshot/read/documents.ts';
import { Dump } from '../snapshot/read/dump.ts';
import { watchLineage } from '../snapshot/read/lineage.ts';
import { CacheLink, type LinkState } from '../snapshot/read/link.ts';
import { PostgresReads } from '../snapshot/read/postgres-reads.ts';
import { catalogueReader, clusterReader } from '../snapshot/read/readers.ts';
import { tokenVerifier } from '../snapshot/read/tokens.ts';
import { watchReaderDatabase } from './check-database.ts';
import {
  type Configured,
  cacheRedis,
  openLoggedRedis,
  readerDatabase,
  readerPrimary,
} from './connections.ts';
import { Disposer } from './disposer.ts';
import type { ReaderContext, ReaderPart } from './feature.ts';
import { FEATURES } from './features.ts';
import { sourceFinder } from './find-source.ts';

export interface Reader extends AsyncDisposable {
  readonly catalogue: CatalogueReader;
  readonly clusters: ClusterReader;
  readonly tokens: TokenReader;
  /** Loads and opens the features at the first call. */
  readonly features: () => Promise<readonly ApiFeature[]>;
  /** Loads the features too: they have metrics. */
  addMetrics(registry: Registry): Promise<void>;
  readonly responses: ResponseCache;
  readonly findSource: FindSource;
  /** Ready if it knows the lineage and can answer the list of providers. */
  readiness(): Promise<{ ready: boolean; checks: Record<string, string> }>;
}

/** The logged share of successful answers: there may be thousands a second. */
const LOGGED_SHARE = 0.001;

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

/**
 * Opens a reader. No server has to be up yet: `readiness` shows what is missing.
 * @param onUnusable receives the document's kind for each unusable value of the cache
 */
export async function composeReader(
  config: Configured,
  logger: Logger,
  onUnusable?: (kind: string) => void,
): Promise<Reader> {
  const { settings } = config;
  const primaryServer = readerPrimary(config);
  const openReplica = primaryServer && (await import('../features/replica/replica.ts')).openReplica;
  const closing = new Disposer();
  const database = readerDatabase(config);
  const open = (server: ServerSetting, atOnce: number) => openServer(server, atOnce, closing, logger);
  const store = open(database, settings.POSTGRES_READS);
  const staleLimitMs = settings.STALE_LIMIT * 1000;
  const cache = cacheRedis(config);
  const link = closing.use(
    new CacheLink({
      commands: withFence(openLoggedRedis(cache, 'reader', logger)),
      stream: openLoggedRedis(cache, 'stream', logger),
      logger,
    }),
  );
  const memory = memoryBudget(settings.MEMORY_LIMIT);
  const primary = primaryServer && open(primaryServer, Math.ceil(settings.POSTGRES_READS * SHARE_OF_PRIMARY));
  const replica = primary && openReplica?.({ replica: store, primary });
  const tokenUse = closing.use(new TokenUse({ db: (primary ?? store).db, logger }));
  const documents = new Documents({
    postgres: replica?.source ?? store,
    link,
    logger,
    memory,
    onUnusable,
    staleLimitMs,
    tokenStaleLimitMs: settings.TOKEN_STALE_LIMIT * 1000,
  });
  const folder = settings.SNAPSHOT_DIR;
  const dump =
    folder === undefined
      ? undefined
      : closing.use(new Dump({ folder, documents, logger, limit: memory.documents }));
  const watching = closing.use(watchLineage(() => documents.checkPostgres()));
  for (const each of [store, primary]) each?.onLost(() => watching.checkNow());
  closing.use(watchReaderDatabase(store, database, replica, logger));
  const parts = lazily(() =>
    openFeatures({
      config,
      logger,
      closing,
      documents,
      link,
      memory,
      openReads: (connections) => open(database, connections).reads,
    }),
  );
  return {
    catalogue: catalogueReader(documents, { pricesLimit: memory.prices, staleLimitMs }),
    clusters: clusterReader(documents),
    tokens: tokenVerifier(documents, {
      used: tokenUse.used,
      postgresReads: settings.POSTGRES_READS,
    }),
    features: async () => (await parts()).flatMap(({ api }) => api ?? []),
    addMetrics: async (registry) => {
      await addSeries(registry, link, dump);
      replica?.addMetrics(registry);
      for (const { addMetrics } of await parts()) addMetrics?.(registry);
    },
    responses: new ResponseCache(documents, memory.responses),
    findSource: sourceFinder(documents, link),
    readiness: () => readiness(documents, link, dump),
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  };
}

/** Loads the features' code, and opens their parts. Requests have a turn between two features. */
async function openFeatures(context: Omit<ReaderContext, 'market'>): Promise<ReaderPart[]> {
  const { openMarket } = await import('../market/market.ts');
  const openers: ((context: ReaderContext) => ReaderPart)[] = [];
  for (const { read } of FEATURES) {
    if (!read) continue;
    await nextTurn();
    openers.push(await read());
  }
  const { config, documents, link, logger, memory } = context;
  const staleLimitMs = config.settings.STALE_LIMIT * 1000;
  const market = openMarket({ documents, link, logger, memory, staleLimitMs });
  return openers.map((openPart) => openPart({ ...context, market }));
}

async function addSeries(registry: Registry, link: CacheLink, dump: Dump | undefined): Promise<void> {
  const { Gauge } = await import('prom-client');
  const registers = [registry];
  new Gauge({
    name: 'fleetbook_reader_linked',
    help: '1 while every publication reaches the reader through the cache, so that memory and cache answer without PostgreSQL; else 0',
    registers,
    aggregator: 'min',
    collect() {
      this.set(Number(link.linked));
    },
  });
  if (!dump) return;
  new Gauge({
    name: 'fleetbook_dump_failing',
    help: '1 while the dump in SNAPSHOT_DIR cannot be written, else 0',
    registers,
    aggregator: 'max',
    collect() {
      this.set(Number(dump.isFailing));
    },
  });
}

/** @param dump adds the tier and a failed write of the dump. The tier shows a monitor that the reader answers from its dump. */
async function readiness(documents: Documents, link: CacheLink, dump: Pick<Dump, 'isFailing'> | undefined) {
  let catalogue = 'ok';
  let tier: Tier | undefined;
  try {
    ({ tier } = await documents.get({ kind: 'providers' }));
  } catch (error) {
    catalogue = error instanceof Unavailable ? error.message : 'cannot be read';
  }
  const cache = cacheState(link);
  const checks = {
    catalogue,
    cache,
    ...(dump && tier && { tier }),
    // The reader is ready without a dump: it lacks one only after a restart while all servers are away.
    ...(dump?.isFailing && { dump: 'cannot be written' }),
  };
  return { ready: catalogue === 'ok', checks };
}

const WHY_NOT_LINKED: Readonly<Record<Exclude<LinkState, 'linked'>, string>> = {
  away: 'this reader cannot read it',
  joining: 'this reader joins its stream',
  following: 'no worker reaches it',
};

function cacheState({ state, keys }: CacheLink): string {
  if (state === 'linked') return 'ok';
  return `not linked: ${keys ? WHY_NOT_LINKED[state] : 'the lineage is not known'}`;
}

/** Share of POSTGRES_READS for the primary, which also has the writes. */
const SHARE_OF_PRIMARY = 1 / 4;

function openServer(server: ServerSetting, atOnce: number, closing: Disposer, logger: Logger) {
  const store = closing.use(
    openStore({ url: server.url, role: 'reader', connections: atOnce, statementTimeoutMs: 2500 }),
  );
  const reads = new PostgresReads({
    sql: store.sql,
    logger,
    now: steadyNow,
    atOnce,
    onHang: store.renew,
    problemOf: (error) => postgresProblem(error, server),
  });
  return { ...store, reads, setting: server.setting };
}

/** A database, a cache, a publisher and readers, composed as in src/app/reader.ts, with test clocks. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { type Logger, pino } from 'pino';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { Pool } from '../../src/db/connection/client.ts';
import { openStore, type Sql, type Store } from '../../src/db/connection/connect.ts';
import { readLineage } from '../../src/db/lineage.ts';
import { steadyNow } from '../../src/domain/clock.ts';
import { availabilityApi } from '../../src/features/availability/routes.ts';
import { costsReader } from '../../src/features/costs/answers.ts';
import { listPrices } from '../../src/features/costs/list-prices.ts';
import { costsApi } from '../../src/features/costs/routes.ts';
import { databasesApi } from '../../src/features/databases/routes.ts';
import { FeedTail } from '../../src/features/feed/follow-changes.ts';
import { feedApi } from '../../src/features/feed/routes.ts';
import { lifecycleApi } from '../../src/features/lifecycle/routes.ts';
import { ReplicaReads } from '../../src/features/replica/reads.ts';
import { replicaOf } from '../../src/features/replica/replica.ts';
import { type SearchAnswers, searchAnswers } from '../../src/features/search/answers.ts';
import { searchApi } from '../../src/features/search/routes.ts';
import type { ApiFeature } from '../../src/http/app.ts';
import { ResponseCache } from '../../src/http/hot/response-cache.ts';
import { openMarket, type ReadableMarket } from '../../src/market/market.ts';
import type { SearchCounts } from '../../src/market/searchable.ts';
import { openRedis, type RedisClient, redisReady } from '../../src/redis/redis.ts';
import type { CatalogueReader, ClusterReader, TokenReader } from '../../src/snapshot/document/answer.ts';
import { CacheKeys, FEED_ID } from '../../src/snapshot/document/keys.ts';
import { withFence } from '../../src/snapshot/publish/fence.ts';
import { Publisher } from '../../src/snapshot/publish/publisher.ts';
import { memoryBudget } from '../../src/snapshot/read/budget.ts';
import { Documents } from '../../src/snapshot/read/documents.ts';
import { Dump } from '../../src/snapshot/read/dump.ts';
import { CacheLink } from '../../src/snapshot/read/link.ts';
import { PostgresReads } from '../../src/snapshot/read/postgres-reads.ts';
import { catalogueReader, clusterReader } from '../../src/snapshot/read/readers.ts';
import { tokenVerifier } from '../../src/snapshot/read/tokens.ts';
import { createDatabase, emptyDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { addSample, type Sample } from './rows.ts';

const silent = pino({ level: 'silent' });

export class TestClock {
  #ahead = 0;
  readonly now = (): number => Date.now() + this.#ahead;
  forward(ms: number): void {
    this.#ahead += ms;
  }
}

export interface ReaderOptions {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** A replica, which is read before the database. */
  readonly replicaUrl?: string;
  /** Replaces the reader's store, e.g. by one that counts. */
  readonly sql?: Sql;
  /** An open store of the database, which outlives the reader. By default the reader has its own. */
  readonly kept?: Store;
  /** The address for `caughtUp`; that of the cache by default. */
  readonly writerUrl?: string;
  /** The address of the stream; that of the cache by default. */
  readonly streamUrl?: string;
  readonly now?: () => number;
  /** Milliseconds that a read of the stream waits. */
  readonly blockMs?: number;
  /** Milliseconds between two uses of an idle connection for documents. */
  readonly confirmBothEveryMs?: number;
  /** Milliseconds until a reply of the cache is late. */
  readonly cacheDeadlineMs?: number;
  /** Milliseconds without a publisher's heartbeat. By default readers need none, since scenes have no worker. */
  readonly silentAfterMs?: number;
  readonly memoryLimit?: number;
  /** Bytes for the index of machines. */
  readonly searchLimit?: number;
  readonly postgresReads?: number;
  readonly postgresDeadlineMs?: number;
  readonly onHang?: () => void;
  readonly onUnusable?: (kind: string) => void;
  readonly staleLimitMs?: number;
  readonly tokenStaleLimitMs?: number;
  readonly unknownTokens?: number;
  readonly unknownTokensPerAddress?: number;
  readonly used?: (tokenId: number) => void;
  /** The folder of the dump; undefined without one. */
  readonly snapshotDir?: string | undefined;
  readonly dumpLimit?: number;
  /** Milliseconds between two dumps. By default a test writes them itself. */
  readonly dumpEveryMs?: number;
  readonly logger?: Logger;
}

export interface TestReader extends AsyncDisposable {
  readonly link: CacheLink;
  readonly documents: Documents;
  readonly catalogue: CatalogueReader;
  readonly clusters: ClusterReader;
  readonly market: ReadableMarket;
  readonly search: SearchAnswers;
  readonly searchCounts: () => SearchCounts;
  readonly tokens: TokenReader;
  readonly responses: ResponseCache;
  readonly feed: FeedTail;
  /** For `buildApp`. */
  readonly features: () => Promise<readonly ApiFeature[]>;
  readonly dump: Dump | undefined;
  readonly replica: ReplicaReads | undefined;
  /** Resolves once the reader has every entry of the stream until now. */
  caughtUp(): Promise<void>;
}

/** Returns a function that resolves once the reader has received a new entry, after all earlier ones. */
function barrierOf(documents: Documents, link: CacheLink, redisUrl: string) {
  const seen = new Set<string>();
  let writer: RedisClient | undefined;
  let barriers = 0;
  documents.addPublicationListener({ onPublished: (id) => seen.add(id), onLineage: () => {} });
  return {
    async caughtUp() {
      writer ??= withFence(openRedis(redisUrl, 'publisher', () => {}));
      await redisReady(writer, 5000);
      barriers += 1;
      const barrier = `barrier:${barriers}`;
      // A reader that joins finds the end of the stream, and not this entry. An absent stream has no entry.
      await until(async () => {
        const { stream = '' } = link.keys ?? {};
        const isThere = await writer?.fleetbookAnnounce(stream, barrier, '1', randomUUID());
        await sleep(5);
        return seen.has(barrier) || (isThere === 0 && link.state !== 'joining');
      });
    },
    close: () => writer?.disconnect(),
  };
}

/** The `sql` of a reader's store, which records each statement. */
export function countingSql(databaseUrl: string): { sql: Sql; statements: string[] } & AsyncDisposable {
  const statements: string[] = [];
  const pool = new Pool(databaseUrl, {
    max: 8,
    connection: { role: 'fleetbook_reader', TimeZone: 'UTC' },
    debug: (_connection, query) => statements.push(query.replaceAll(/\s+/g, ' ').trim()),
  });
  return { sql: pool.sql, statements, [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose]() };
}

/** Milliseconds that a test's reader waits for each server. The product's shorter ones pass on a busy machine without a fault. */
const CACHE_DEADLINE_MS = 1000;
const POSTGRES_DEADLINE_MS = 20_000;
const POSTGRES_READS = 16;

function patient<Client extends ReturnType<typeof openRedis>>(client: Client): Client {
  Object.assign(client instanceof Redis ? client.options : (client.options.redisOptions ?? {}), {
    socketTimeout: 2 * CACHE_DEADLINE_MS,
  });
  return client;
}

/** The reading part of one reader process. No server has to be up. */
function openReader({
  postgresDeadlineMs = POSTGRES_DEADLINE_MS,
  postgresReads = POSTGRES_READS,
  cacheDeadlineMs = CACHE_DEADLINE_MS,
  logger = silent,
  ...options
}: ReaderOptions): TestReader {
  const store = options.kept ?? openReaderStore(options.databaseUrl, postgresReads);
  const now = options.now ?? steadyNow;
  const link = new CacheLink({
    commands: withFence(patient(openRedis(options.redisUrl, 'reader', () => {}))),
    stream: openRedis(options.streamUrl ?? options.redisUrl, 'stream', () => {}),
    logger: silent,
    now,
    silentAfterMs: options.silentAfterMs ?? Number.POSITIVE_INFINITY,
    deadlineMs: cacheDeadlineMs,
    ...(options.blockMs === undefined ? {} : { blockMs: options.blockMs }),
    ...(options.confirmBothEveryMs === undefined ? {} : { confirmBothEveryMs: options.confirmBothEveryMs }),
  });
  const memory = memoryBudget(options.memoryLimit ?? 64_000_000);
  const staleLimitMs = options.staleLimitMs ?? 3_600_000;
  const tokenStaleLimitMs = options.tokenStaleLimitMs ?? 900_000;
  const replicaStore = options.replicaUrl === undefined ? undefined : openReaderStore(options.replicaUrl, 4);
  const reads = (sql: Sql, atOnce: number) =>
    new PostgresReads({
      sql,
      logger: silent,
      now,
      atOnce,
      deadlineMs: postgresDeadlineMs,
      onHang: options.onHang,
    });
  const replica =
    replicaStore &&
    new ReplicaReads({
      replica: reads(replicaStore.sql, postgresReads),
      primary: reads(options.sql ?? store.sql, Math.ceil(postgresReads / 4)),
      now,
    });
  const feed: FeedTail = new FeedTail({
    run: (read, options) => documents.postgres(read, options),
    atOnce: 4,
    logger: silent,
    now,
  });
  const documents = new Documents({
    postgres: replica ? replicaOf(replica) : { reads: reads(options.sql ?? store.sql, postgresReads) },
    link,
    logger,
    now,
    memory,
    onUnusable: options.onUnusable,
    staleLimitMs,
    tokenStaleLimitMs,
  });
  const barrier = barrierOf(documents, link, options.writerUrl ?? options.redisUrl);
  const { snapshotDir: folder, dumpLimit: limit = 64_000_000, dumpEveryMs: everyMs = 600_000 } = options;
  const dump = folder === undefined ? undefined : new Dump({ folder, documents, logger, limit, everyMs });
  const market = openMarket({
    documents,
    link,
    logger: silent,
    now,
    memory: { ...memory, search: options.searchLimit ?? memory.search },
    staleLimitMs,
  });
  const { catalogue: searchable, books } = market;
  const search = searchAnswers(market);
  const memoryLimit = memory.costs;
  const costs = costsReader({ documents, catalogue: searchable, books, memoryLimit, now: options.now });
  const prices = listPrices({ documents, catalogue: searchable });
  documents.addPublicationListener({
    onPublished(id, position) {
      if (id === FEED_ID) feed.advanceTo(position);
    },
    onLineage: () => feed.reset(),
  });
  return {
    link,
    documents,
    catalogue: catalogueReader(documents, { now, pricesLimit: memory.prices, staleLimitMs }),
    clusters: clusterReader(documents),
    market,
    search,
    features: async () => [
      searchApi(search),
      feedApi(feed),
      costsApi(costs, prices),
      availabilityApi({ documents, catalogue: searchable }),
      databasesApi({ documents, catalogue: searchable }),
      lifecycleApi({ documents, now: options.now }),
    ],
    searchCounts: () => searchable.counts,
    tokens: tokenVerifier(documents, {
      now: options.now,
      ...(options.used && { used: options.used }),
      unknownTokens: {
        perSecond: options.unknownTokens ?? 100,
        perSecondAndAddress: options.unknownTokensPerAddress ?? 10,
      },
      postgresReads,
      postgresDeadlineMs,
    }),
    responses: new ResponseCache(documents, memory.responses),
    feed,
    dump,
    replica,
    caughtUp: barrier.caughtUp,
    async [Symbol.asyncDispose]() {
      barrier.close();
      feed[Symbol.dispose]();
      await dump?.[Symbol.asyncDispose]();
      await link[Symbol.asyncDispose]();
      await replicaStore?.[Symbol.asyncDispose]();
      if (store !== options.kept) await store[Symbol.asyncDispose]();
    },
  };
}

function openReaderStore(url: string, connections: number): Store {
  return openStore({ url, role: 'reader', connections, statementTimeoutMs: POSTGRES_DEADLINE_MS });
}

/** Appends an entry that follows a lost one: every reader of the stream finds a gap. */
export async function loseEntry({ cache, keys }: Pick<Scene, 'cache' | 'keys'>): Promise<void> {
  await cache.xadd(keys.stream, '*', 'mark', randomUUID(), 'before', 'lost', 'what', 'feed', 'value', '0');
}

/** Ends the connections of readers that wait for entries. @returns how many */
export async function cutStreams({ cache }: Pick<Scene, 'cache'>): Promise<number> {
  const clients = String(await cache.call('CLIENT', 'LIST')).split('\n');
  const waiting = clients.filter((each) => each.includes('cmd=xread'));
  for (const each of waiting) await cache.call('CLIENT', 'KILL', 'ID', /id=(\d+)/.exec(each)?.[1] ?? '');
  return waiting.length;
}

/** Returns the documents of the stream's entries, in order. */
export async function announcedIn({ cache, keys }: Pick<Scene, 'cache' | 'keys'>): Promise<string[]> {
  const entries = await cache.xrange(keys.stream, '-', '+');
  const isDocument = (what: string) => what === 'providers' || what.includes(':');
  return entries.map(([, fields]) => fields[5] ?? '').filter(isDocument);
}

export interface Scene extends AsyncDisposable {
  readonly db: TestDatabase;
  /** Acts as the worker. */
  readonly store: Store;
  readonly sql: Sql;
  readonly cache: ReturnType<typeof openRedis>;
  readonly publisher: Publisher;
  readonly keys: CacheKeys;
  reader(options?: Partial<ReaderOptions>): TestReader;
  /** Another publisher, as in another process. */
  secondPublisher(): Promise<Publisher>;
}

/**
 * Caches may be shared, since keys contain the lineage. Disposing also closes its readers.
 * @param given an existing database, which is not disposed; by default a new one
 * @param kept stores of this database, which are not disposed; by default new ones
 */
export async function openScene(
  redis: Pick<TestRedis, 'url'>,
  given?: TestDatabase,
  kept?: KeptStores,
): Promise<Scene> {
  await using opened = new AsyncDisposableStack();
  const db = given ?? opened.use(await createDatabase());
  const store = kept?.worker ?? opened.use(openWorkerStore(db));
  const cache = withFence(openRedis(redis.url, 'publisher', () => {}));
  opened.defer(() => cache.disconnect());
  await redisReady(cache, 5000);
  const keys = new CacheKeys(await readLineage(store.sql));
  const closing = opened.move();
  return {
    db,
    store,
    sql: store.sql,
    cache,
    keys,
    publisher: new Publisher(store.db, cache),
    reader(options = {}) {
      const isOwn = options.databaseUrl !== undefined || options.postgresReads !== undefined;
      const shared = kept === undefined || isOwn ? {} : { kept: kept.reader };
      return closing.use(
        openReader({ databaseUrl: db.url, redisUrl: redis.url, writerUrl: redis.url, ...shared, ...options }),
      );
    },
    async secondPublisher() {
      const second = withFence(openRedis(redis.url, 'publisher', () => {}));
      closing.defer(() => second.disconnect());
      await redisReady(second, 5000);
      return new Publisher(store.db, second);
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

const openWorkerStore = ({ url }: TestDatabase) => openStore({ url, role: 'worker', connections: 4 });

/** A new connection costs as much as fifty statements, so the tests of a file share them. */
interface KeptStores {
  readonly worker: Store;
  readonly reader: Store;
}

/** The current test's scene, with the sample's unpublished rows in its database. */
export interface TestScene extends Scene {
  readonly redis: TestRedis;
  readonly sample: Sample;
  /** A reader that receives publications. */
  linkedReader(options?: Partial<ReaderOptions>): Promise<TestReader>;
}

/**
 * Hooks: one database with its connections for the file, reset for each test, and a Redis for the file or, if tests break
 * it, for each test. The result refers to the current test's scene.
 */
export function sceneForEachTest(options: { redis?: 'of the file' | 'of the test' } = {}): TestScene {
  const file = new AsyncDisposableStack();
  let db: TestDatabase | undefined;
  let kept: KeptStores | undefined;
  let owner: Sql | undefined;
  let shared: TestRedis | undefined;
  let current: TestScene | undefined;
  beforeAll(async () => {
    db = file.use(await createDatabase());
    kept = {
      worker: file.use(openWorkerStore(db)),
      reader: file.use(openReaderStore(db.url, POSTGRES_READS)),
    };
    const sql = postgres(db.url, { max: 1, onnotice: () => {} });
    file.defer(() => sql.end({ timeout: 5 }));
    owner = sql;
    if (options.redis !== 'of the test') shared = file.use(await startTestRedis());
  });
  afterAll(() => file.disposeAsync());
  beforeEach(async () => {
    if (!db || !owner) throw new Error('unreachable: beforeAll has made them');
    await using opened = new AsyncDisposableStack();
    const redis = shared ?? opened.use(await startTestRedis());
    await emptyDatabase(owner);
    await owner`update lineage set currency = 'USD'`;
    const scene = opened.use(await openScene(redis, db, kept));
    const sample = await addSample(owner);
    current = { ...scene, redis, sample, linkedReader: (given) => linked(scene.reader(given)) };
    const closing = opened.move();
    return async () => {
      current = undefined;
      await closing.disposeAsync();
    };
  });
  return new Proxy<TestScene>(Object.create(null), {
    get: (_, name) => Reflect.get(current ?? failOutside(), name),
  });
}

async function linked(reader: TestReader): Promise<TestReader> {
  await reader.catalogue.providers();
  await until(() => reader.link.linked);
  return reader;
}

function failOutside(): never {
  throw new Error('a scene is there inside a test only');
}

/** A database, a cache and a publisher, and readers of them: put together as compose.ts does, with clocks of ours. */
import { pino } from 'pino';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import type { TokenVerifier } from '../../src/domain/grant.ts';
import type { CatalogueReader, ClusterReader } from '../../src/snapshot/answer.ts';
import { CacheLink } from '../../src/snapshot/cache-link.ts';
import { Documents } from '../../src/snapshot/documents.ts';
import { withFence } from '../../src/snapshot/fence.ts';
import { CacheKeys } from '../../src/snapshot/keys.ts';
import { Publisher } from '../../src/snapshot/publish.ts';
import { catalogueReader, clusterReader, tokenVerifier } from '../../src/snapshot/readers.ts';
import { openStore, type Sql, type Store } from '../../src/store/connect.ts';
import { openRedis, redisReady } from '../../src/store/redis.ts';
import { readLineage } from '../../src/store/versions.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { addSample, type Sample } from './rows.ts';

export const silent = pino({ level: 'silent' });

/** A pool that has lost a connection takes seconds to end: that goes on beside the tests that follow. */
const storesEnding: PromiseLike<void>[] = [];
afterAll(() => Promise.all(storesEnding));

/** A clock that runs, and can be put forward. */
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
  /** Instead of a store of the reader's own, e.g. one that counts. */
  readonly sql?: Sql;
  readonly subscriberUrl?: string;
  readonly now?: () => number;
  readonly pollMs?: number;
  readonly memoryLimit?: number;
  readonly postgresReads?: number;
  readonly staleLimitMs?: number;
  readonly tokenStaleLimitMs?: number;
}

export interface TestReader extends AsyncDisposable {
  readonly link: CacheLink;
  readonly documents: Documents;
  readonly catalogue: CatalogueReader;
  readonly clusters: ClusterReader;
  readonly tokens: TokenVerifier;
}

/** A store's `sql` as the reader has it, which notes every statement. */
export function countingSql(databaseUrl: string): { sql: Sql; statements: string[] } & AsyncDisposable {
  const statements: string[] = [];
  const sql: Sql = postgres(databaseUrl, {
    max: 8,
    connection: { role: 'fleetbook_reader', TimeZone: 'UTC' },
    debug: (_connection, query) => statements.push(query.replaceAll(/\s+/g, ' ').trim()),
  });
  return { sql, statements, [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) };
}

/** One reader process' worth of reading. Nothing has to be up. */
export function openReader(options: ReaderOptions): TestReader {
  const store = openStore({
    url: options.databaseUrl,
    role: 'reader',
    connections: options.postgresReads ?? 16,
    statementTimeoutMs: 2500,
  });
  const now = options.now ?? Date.now;
  const link = new CacheLink({
    commands: withFence(openRedis(options.redisUrl, 'reader', () => {})),
    subscriber: openRedis(options.subscriberUrl ?? options.redisUrl, 'subscriber', () => {}),
    logger: silent,
    now,
    ...(options.pollMs === undefined ? {} : { pollMs: options.pollMs }),
  });
  const documents = new Documents({
    sql: options.sql ?? store.sql,
    link,
    logger: silent,
    now,
    memoryLimit: options.memoryLimit ?? 64_000_000,
    postgresReads: options.postgresReads ?? 16,
    staleLimitMs: options.staleLimitMs ?? 3_600_000,
    tokenStaleLimitMs: options.tokenStaleLimitMs ?? 900_000,
  });
  return {
    link,
    documents,
    catalogue: catalogueReader(documents, now),
    clusters: clusterReader(documents),
    tokens: tokenVerifier(documents, now),
    async [Symbol.asyncDispose]() {
      storesEnding.push(store[Symbol.asyncDispose]());
      await link[Symbol.asyncDispose]();
    },
  };
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
  /** One more publisher, as another process would have it. */
  secondPublisher(): Promise<Publisher>;
}

/** A database of its own in a cache that tests may share: keys hold the lineage. Disposing closes its readers too. */
export async function openScene(redis: TestRedis): Promise<Scene> {
  await using opened = new AsyncDisposableStack();
  const db = opened.use(await createDatabase());
  const store = opened.use(openStore({ url: db.url, role: 'worker', connections: 4 }));
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
    publisher: new Publisher(store.sql, cache),
    reader(options = {}) {
      return closing.use(openReader({ databaseUrl: db.url, redisUrl: redis.url, ...options }));
    },
    async secondPublisher() {
      const second = withFence(openRedis(redis.url, 'publisher', () => {}));
      closing.defer(() => second.disconnect());
      await redisReady(second, 5000);
      return new Publisher(store.sql, second);
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** The test's own scene, with the sample's rows in its database and nothing published yet. */
export interface TestScene extends Scene {
  readonly redis: TestRedis;
  readonly sample: Sample;
  /** A reader that hears of publications. */
  linkedReader(options?: Partial<ReaderOptions>): Promise<TestReader>;
}

/** Hooks: one Redis for the file, and for each test a scene; what is returned stands for the current test's. */
export function sceneForEachTest(): TestScene {
  let redis: TestRedis | undefined;
  let current: TestScene | undefined;
  beforeAll(async () => {
    redis = await startTestRedis();
  });
  afterAll(async () => {
    await redis?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    if (!redis) throw new Error('unreachable: beforeAll has started it');
    const scene = await openScene(redis);
    const sample = await addSample(scene.sql);
    current = { ...scene, redis, sample, linkedReader: (options) => linked(scene.reader(options)) };
    return async () => {
      current = undefined;
      await scene[Symbol.asyncDispose]();
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

/** PostgreSQL, a Redis for the cache and one for the queues, readers and a worker, in separate processes. */
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore, type Store } from '../../../src/db/connection/connect.ts';
import { migrate } from '../../../src/db/migration/migrate.ts';
import { createToken } from '../../../src/db/tokens.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/dev/postgres.ts';
import { freePort } from '../../../src/processes/port.ts';
import { openRedis, type RedisClient, redisReady } from '../../../src/redis/redis.ts';
import { withFence } from '../../../src/snapshot/publish/fence.ts';
import { Publisher } from '../../../src/snapshot/publish/publisher.ts';
import {
  addCluster,
  addMachine,
  addOrganization,
  addProvider,
  addRegion,
  addSource,
  verify,
} from '../../snapshot/rows.ts';
import { type FaultProxy, faultProxy } from '../../support/fault-proxy.ts';
import { CLI, type Program, startProgram } from '../../support/program.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';

const REGIONS = 12;
const MACHINES_OF_REGION = 25;
const ORGANIZATIONS = 150;

export interface Machine {
  readonly id: number;
  readonly regionId: number;
}

export interface Organization {
  readonly id: number;
  readonly clusterId: number;
  readonly token: string;
}

export interface Reader {
  readonly name: string;
  readonly url: string;
  readonly program: Program;
}

export interface Stack extends AsyncDisposable {
  readonly postgres: TestPostgres;
  /** The proxy to PostgreSQL for all processes. */
  readonly database: FaultProxy;
  /** Throws if the stack has an engine, as do its proxy and the queues' server. */
  readonly cache: TestRedis;
  /** The proxy to the cache for readers and worker. */
  readonly cacheWay: FaultProxy;
  /** The proxy for the worker alone. It leads to `cacheWay`. */
  readonly workerCacheWay: FaultProxy;
  /** The proxy of the readers to their database. Throws if the stack has none. */
  readonly readersWay: FaultProxy;
  /** Sends commands to the cache without the proxy. */
  readonly cacheClient: RedisClient;
  readonly queue: TestRedis;
  readonly store: Store;
  readonly publisher: Publisher;
  /** The readers that get requests. A test may add and remove some. */
  readonly readers: Reader[];
  readonly worker: Program;
  readonly provider: number;
  readonly machines: readonly Machine[];
  readonly organizations: readonly Organization[];
  /** Starts another reader, of this release or of another one. Add it to `readers` to send requests to it. */
  startReader(name: string, cli?: string): Promise<Reader>;
  startWorker(cli?: string): Promise<Program>;
}

export interface StackOptions {
  /** The command line of the first release; this one unless given. */
  readonly cli?: string;
  readonly migrations?: string;
  /** Starts its PostgreSQL; a new server unless given. */
  readonly postgres?: () => Promise<TestPostgres>;
  /** Starts the servers of cache and queues, e.g. a Redis Cluster; unless given, a new Redis for each. */
  readonly engine?: () => Promise<Engine>;
  readonly settings?: Readonly<Record<string, string>>;
  /** Command and arguments before Node's, for readers. */
  readonly through?: readonly string[];
  /** Starts a proxy of the readers to PostgreSQL or to replicas; the worker's unless given. */
  readonly readersDatabase?: () => Promise<FaultProxy>;
}

/** The server of cache and queues together. */
interface Engine extends AsyncDisposable {
  readonly url: string;
}

export interface TestPostgres extends AsyncDisposable {
  readonly url: string;
  readonly dataDir: string;
  /** Kills the server with SIGKILL. Its backends end at once. */
  kill(): Promise<void>;
  /** Restarts it on the same port, and waits for recovery. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** @param dataDir created if missing */
export async function startTestPostgres(dataDir: string): Promise<TestPostgres> {
  const port = await freePort();
  const start = () => startEmbeddedPostgres({ dataDir, port, maxConnections: 200 });
  let server: EmbeddedPostgres = await start();
  const { url } = server;
  return {
    url,
    dataDir,
    async kill() {
      process.kill(server.pid, 'SIGKILL');
      await server.exited;
      await server.stop();
    },
    async restart() {
      await server.stop();
      server = await start();
    },
    stop: () => server.stop(),
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

export async function openStack({
  cli = CLI,
  migrations,
  postgres: start,
  engine: startEngine,
  settings,
  through = [],
  readersDatabase,
}: StackOptions = {}): Promise<Stack> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-faults-')));
  const postgres = opened.use(await (start?.() ?? startTestPostgres(join(folder.path, 'postgres'))));
  const redis = await openServers(opened, startEngine);
  await migrate(postgres.url, migrations === undefined ? {} : { folder: migrations });
  const database = opened.use(await faultProxy(postgres.url));
  // A hung process must not delay the end of a test.
  opened.defer(() => database.heal());
  const store = opened.use(openStore({ url: database.url, role: 'worker', connections: 4 }));
  const connection = withFence(openRedis(redis.cacheUrl, 'publisher', () => {}));
  opened.defer(() => connection.disconnect());
  await redisReady(connection, 5000);
  const rows = await fill(store);
  const publisher = new Publisher(store.db, connection);
  // On the schema of another release only its worker can publish: this publisher needs later migrations.
  if (migrations === undefined) await publisher.publishDirty();
  const env = {
    PATH: process.env.PATH,
    DATABASE_URL: database.url,
    CACHE_REDIS_URL: redis.readersUrl,
    QUEUE_REDIS_URL: redis.queueUrl,
    LOG_LEVEL: 'warn',
    // The load is that of many clients, with one token.
    RATE_LIMIT: '1000000000',
  };
  const readersWay = await readersDatabase?.();
  if (readersWay) opened.use(readersWay);
  const ofReaders = {
    ...env,
    ...(readersWay && { READER_DATABASE_URL: `${readersWay.url}?connect_timeout=5` }),
    ...settings,
  };
  // Readers that a test starts end with the rest.
  const programs = opened.use(new AsyncDisposableStack());
  const startReader = async (name: string, of = CLI): Promise<Reader> => {
    const [port, opsPort] = [await freePort(), await freePort()];
    const program = programs.use(
      await startProgram(of, ['serve'], {
        env: { ...ofReaders, PORT: String(port), OPS_PORT: String(opsPort) },
        through,
      }),
    );
    return { name, url: `http://127.0.0.1:${port}`, program };
  };
  const startWorker = async (of = CLI): Promise<Program> =>
    programs.use(
      await startProgram(of, ['work'], {
        env: {
          ...env,
          CACHE_REDIS_URL: redis.workerUrl,
          CATALOGUE_RATES: 'EUR:1.1',
          OPS_PORT: String(await freePort()),
        },
      }),
    );
  const readers = [await startReader('a', cli), await startReader('b', cli)];
  const worker = await startWorker(cli);
  for (const reader of readers) await readerReady(reader);
  const closing = opened.move();
  return {
    postgres,
    database,
    get cache() {
      return redis.own().cache;
    },
    get cacheWay() {
      return redis.own().cacheWay;
    },
    get readersWay() {
      if (!readersWay) throw new Error('readers take the way of the worker');
      return readersWay;
    },
    cacheClient: connection,
    get workerCacheWay() {
      return redis.own().workerCacheWay;
    },
    get queue() {
      return redis.own().queue;
    },
    store,
    publisher,
    readers,
    worker,
    startReader: async (name, of) => {
      const reader = await startReader(name, of);
      await readerReady(reader);
      return reader;
    },
    startWorker,
    ...rows,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** Starts the cache and the queues, and their proxies; new servers unless the stack has an engine. */
async function openServers(opened: AsyncDisposableStack, startEngine: StackOptions['engine']) {
  if (startEngine) {
    const { url } = opened.use(await startEngine());
    const own = (): never => {
      throw new Error('the stack has an engine, and no separate cache and queue');
    };
    return { cacheUrl: url, readersUrl: url, workerUrl: url, queueUrl: url, own };
  }
  const [cache, queue] = [opened.use(await startTestRedis()), opened.use(await startTestRedis())];
  const cacheWay = opened.use(await faultProxy(cache.url));
  const workerCacheWay = opened.use(await faultProxy(cacheWay.url));
  const own = () => ({ cache, cacheWay, workerCacheWay, queue });
  const [readersUrl, workerUrl] = [cacheWay.url, workerCacheWay.url];
  return { cacheUrl: cache.url, readersUrl, workerUrl, queueUrl: queue.url, own };
}

async function readerReady({ name, url, program }: Reader): Promise<void> {
  await until(async () => (await fetch(`${url}/readyz`)).ok, {
    what: `reader ${name} is ready: ${program.output()}`,
    timeoutMs: 60_000,
    everyMs: 100,
  });
}

async function fill({ sql, db }: Store): Promise<Pick<Stack, 'provider' | 'machines' | 'organizations'>> {
  await addSource(sql, 'cloud', 'catalogue');
  await verify(sql, 'cloud', '2026-01-02T03:04:05.678Z');
  await addSource(sql, 'plane', 'clusters');
  await verify(sql, 'plane', '2026-01-01T00:00:00.000Z');
  await sql`update lineage set currency = 'USD'`;
  const provider = await addProvider(sql, 1, 'Cloud');
  const machines: Machine[] = [];
  for (let r = 0; r < REGIONS; r++) {
    const regionId = await addRegion(sql, provider, `r${r}`, `Region ${r}`);
    for (let m = 0; m < MACHINES_OF_REGION; m++)
      machines.push({
        regionId,
        id: await addMachine(sql, regionId, { name: `m${m}`, price: '0.0001', source: 'cloud' }),
      });
  }
  const organizations: Organization[] = [];
  for (let o = 0; o < ORGANIZATIONS; o++) {
    const id = await addOrganization(sql, `org-${o}`);
    const machine = machines[o % machines.length] as Machine;
    const clusterId = await addCluster(sql, id, {
      slug: 'main',
      name: `${id} 0`,
      source: 'plane',
      regionId: machine.regionId,
      machineId: machine.id,
    });
    const { token } = await createToken(db, {
      organizationId: id,
      scopes: ['machines:read', 'clusters:read'],
    });
    organizations.push({ id, clusterId, token });
  }
  return { provider, machines, organizations };
}

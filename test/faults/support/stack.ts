/** PostgreSQL, a Redis for the cache and one for the queues, readers and a worker, each a process of its own. */
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore, type Store } from '../../../src/db/connect.ts';
import { migrate } from '../../../src/db/migrate.ts';
import { createToken } from '../../../src/db/queries/tokens.ts';
import { openRedis, redisReady } from '../../../src/db/redis.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/dev/postgres.ts';
import { freePort } from '../../../src/processes/port.ts';
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
import { type Program, startProgram } from '../../support/program.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';

const CLI = new URL('../../../src/cli.ts', import.meta.url).pathname;
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
  /** The way to PostgreSQL of all that reads and writes. */
  readonly database: FaultProxy;
  readonly cache: TestRedis;
  readonly queue: TestRedis;
  readonly store: Store;
  readonly publisher: Publisher;
  readonly readers: readonly Reader[];
  readonly provider: number;
  readonly machines: readonly Machine[];
  readonly organizations: readonly Organization[];
}

/** A PostgreSQL that commits as one in production does, and can be killed. */
export interface TestPostgres extends AsyncDisposable {
  readonly url: string;
  readonly dataDir: string;
  /** SIGKILL of the server; its backends end at once. */
  kill(): Promise<void>;
  /** Starts it again on the same port, and waits for its recovery. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

async function startTestPostgres(dataDir: string): Promise<TestPostgres> {
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

export async function openStack(): Promise<Stack> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-faults-')));
  const postgres = opened.use(await startTestPostgres(join(folder.path, 'postgres')));
  const [cache, queue] = [opened.use(await startTestRedis()), opened.use(await startTestRedis())];
  await migrate(postgres.url);
  const database = opened.use(await faultProxy(postgres.url));
  // What hangs must not keep the rows of a test that ends.
  opened.defer(() => database.heal());
  const store = opened.use(openStore({ url: database.url, role: 'worker', connections: 4 }));
  const connection = withFence(openRedis(cache.url, 'publisher', () => {}));
  opened.defer(() => connection.disconnect());
  await redisReady(connection, 5000);
  const rows = await fill(store);
  const publisher = new Publisher(store.db, connection);
  await publisher.publishDirty();
  const env = {
    PATH: process.env.PATH,
    DATABASE_URL: database.url,
    CACHE_REDIS_URL: cache.url,
    QUEUE_REDIS_URL: queue.url,
    LOG_LEVEL: 'warn',
  };
  const readers: Reader[] = [];
  for (const name of ['a', 'b']) {
    const [port, opsPort] = [await freePort(), await freePort()];
    const program = opened.use(
      await startProgram(CLI, ['serve'], { env: { ...env, PORT: String(port), OPS_PORT: String(opsPort) } }),
    );
    readers.push({ name, url: `http://127.0.0.1:${port}`, program });
  }
  opened.use(
    await startProgram(CLI, ['work'], {
      env: { ...env, CATALOGUE_RATES: 'EUR:1.1', OPS_PORT: String(await freePort()) },
    }),
  );
  for (const reader of readers)
    await until(async () => (await fetch(`${reader.url}/readyz`)).ok, {
      what: `reader ${reader.name} is ready: ${reader.program.output()}`,
      timeoutMs: 60_000,
      everyMs: 100,
    });
  const closing = opened.move();
  return {
    postgres,
    database,
    cache,
    queue,
    store,
    publisher,
    readers,
    ...rows,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
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

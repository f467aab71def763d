/** The servers of all histories, and their faults. */
import { randomBytes } from 'node:crypto';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setInterval } from 'node:timers/promises';
import { migrate } from '../../src/db/migration/migrate.ts';
import { isCluster, mastersOf, openRedis, type RedisClient, redisReady } from '../../src/redis/redis.ts';
import { startTestCluster } from '../engines/redis-cluster.ts';
import { startTestPostgres, type TestPostgres } from '../faults/support/stack.ts';
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { databaseUrl, run } from '../support/postgres.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import type { Health } from './judge.ts';
import { loadRelease, type OracleRelease } from './release.ts';

const TEMPLATE = 'oracle_template';
/** A new connection that needs more milliseconds shows a busy machine. An idle one needs about 20. */
const BUSY_MS = 500;

export type Broken = 'killed' | 'hung';

/** One Redis, or a Redis Cluster. One node at a time is broken. */
type Breakable = Pick<TestRedis, 'url' | 'kill' | 'pause' | 'restart'> & {
  resume(): void | Promise<void>;
};

/** A Redis, and whether it is broken. */
export class BreakableRedis {
  readonly server: Breakable;
  #broken: Broken | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #remembered: ReadonlyMap<string, Buffer> = new Map();

  constructor(server: Breakable) {
    this.server = server;
  }

  get broken(): Broken | undefined {
    return this.#broken;
  }

  kill(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#heal();
      this.#broken = 'killed';
      await this.server.kill();
    });
  }

  hang(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#heal();
      this.#broken = 'hung';
      this.server.pause();
    });
  }

  heal(): Promise<void> {
    return this.#inTurn(() => this.#heal());
  }

  /** Runs one operation at a time: a slow one may still run when the history begins the next. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  async #heal(): Promise<void> {
    if (this.#broken === 'hung') await this.server.resume();
    if (this.#broken === 'killed') await this.server.restart();
    this.#broken = undefined;
  }

  async flush(): Promise<void> {
    await this.#run(flushAll);
    this.#remembered = new Map();
  }

  /** Ends every connection that waits for entries of the stream. Readers connect again. */
  async cutStreams(): Promise<void> {
    await this.#run(async (redis) => {
      for (const node of isCluster(redis) ? redis.nodes('all') : [redis]) {
        const clients = String(await node.call('CLIENT', 'LIST')).split('\n');
        for (const each of clients.filter((client) => client.includes('cmd=xread')))
          await node.call('CLIENT', 'KILL', 'ID', /id=(\d+)/.exec(each)?.[1] ?? '');
      }
    });
  }

  /** Deletes the streams, as an evicting cache may. */
  async evictStreams(): Promise<void> {
    await this.#run(async (redis) => {
      for (const master of mastersOf(redis))
        for (const key of await master.keys('fb:*:stream')) await master.del(key);
    });
  }

  /** Copies the current content for `goBack`. */
  async remember(): Promise<void> {
    this.#remembered = await this.#run(async (redis) => {
      const values = new Map<string, Buffer>();
      for (const master of mastersOf(redis))
        for (const key of await master.keys('*')) {
          const value = await master.dumpBuffer(key);
          if (value) values.set(key, value);
        }
      return values;
    });
  }

  /** Restores the copied content, and ends all connections: a failover to a replica that was behind. */
  async goBack(): Promise<void> {
    await this.#run(async (redis) => {
      await flushAll(redis);
      for (const [key, value] of this.#remembered) await redis.restore(key, 0, value, 'REPLACE');
      await endClients(redis);
    });
  }

  async #run<T>(command: (redis: RedisClient) => Promise<T>): Promise<T> {
    const connection = openRedis(this.server.url, 'publisher', () => {});
    try {
      await redisReady(connection, 5000);
      return await command(connection);
    } finally {
      connection.disconnect();
    }
  }
}

async function flushAll(redis: RedisClient): Promise<void> {
  for (const master of mastersOf(redis)) await master.flushall();
}

/** All connections but this one. */
async function endClients(redis: RedisClient): Promise<void> {
  for (const node of isCluster(redis) ? redis.nodes('all') : [redis])
    await node.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
}

/** A fault breaks one node of a cluster, another one each time. Its replica takes over. */
async function openCluster(closing: AsyncDisposableStack): Promise<Breakable> {
  const { url, nodes, whole } = closing.use(await startTestCluster());
  let broken = 0;
  const node = () => nodes[broken % nodes.length] as (typeof nodes)[0];
  return {
    url,
    kill: () => node().kill(),
    pause: () => node().pause(),
    async resume() {
      node().resume();
      broken += 1;
      await whole();
    },
    async restart() {
      await node().restart();
      broken += 1;
      await whole();
    },
  };
}

export interface Database extends AsyncDisposable {
  /** The address of the database, without the proxy. */
  readonly url: string;
  /** The proxy for readers and workers, which can hang. */
  readonly proxiedUrl: string;
}

export class Servers implements AsyncDisposable {
  /** The releases of readers and workers, in turn. */
  readonly releases: readonly OracleRelease[];
  readonly cache: BreakableRedis;
  readonly queue: BreakableRedis;
  readonly #postgres: TestPostgres;
  readonly #proxy: FaultProxy;
  readonly #closing: AsyncDisposableStack;
  #database: Broken | undefined;
  #databaseWellSince = performance.now();
  #wellSince = performance.now();

  private constructor(
    parts: {
      releases: readonly OracleRelease[];
      cache: Breakable;
      queue: Breakable;
      postgres: TestPostgres;
      proxy: FaultProxy;
    },
    closing: AsyncDisposableStack,
  ) {
    this.releases = parts.releases;
    this.cache = new BreakableRedis(parts.cache);
    this.queue = new BreakableRedis(parts.queue);
    this.#postgres = parts.postgres;
    this.#proxy = parts.proxy;
    this.#closing = closing;
  }

  /**
   * @param otherFolder the source folder of another release that also runs
   * @param withCluster true for a Redis Cluster as the cache
   */
  static async open(otherFolder?: string, withCluster = false): Promise<Servers> {
    await using closing = new AsyncDisposableStack();
    const releases = [
      await loadRelease(),
      ...(otherFolder === undefined ? [] : [await loadRelease(otherFolder)]),
    ];
    const folder = closing.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-oracle-')));
    const server = closing.use(await startTestPostgres(join(folder.path, 'postgres')));
    // Only processes are killed, never the machine: a commit is safe without a flush to disk.
    await run(server.url, "alter system set fsync = 'off'");
    await run(server.url, 'select pg_reload_conf()');
    await run(server.url, `create database ${TEMPLATE}`);
    await migrate(databaseUrl(server.url, TEMPLATE));
    const proxy = closing.use(await faultProxy(server.url));
    const cache = withCluster ? await openCluster(closing) : closing.use(await startTestRedis());
    const queue = closing.use(await startTestRedis());
    const measuring = new AbortController();
    closing.defer(() => measuring.abort());
    const servers = new Servers({ releases, cache, queue, postgres: server, proxy }, closing.move());
    void servers.#measureMachine(measuring.signal);
    return servers;
  }

  /** Creates the database of one history, and heals and empties all servers. */
  async database(): Promise<Database> {
    await this.heal();
    await Promise.all([this.cache.flush(), this.queue.flush()]);
    const name = `oracle_${randomBytes(8).toString('hex')}`;
    const { url } = this.#postgres;
    await run(url, `create database ${name} template ${TEMPLATE}`);
    await run(databaseUrl(url, name), 'update lineage set id = gen_random_uuid()');
    return {
      url: databaseUrl(url, name),
      proxiedUrl: databaseUrl(this.#proxy.url, name),
      [Symbol.asyncDispose]: () => run(url, `drop database if exists ${name} with (force)`),
    };
  }

  async killDatabase(): Promise<void> {
    if (this.#database === 'killed') return;
    this.#database = 'killed';
    await this.#postgres.kill();
  }

  hangDatabase(): void {
    if (this.#database === undefined) this.#database = 'hung';
    this.#proxy.hang();
  }

  /** Ends all connections of readers and workers. New ones work. */
  cutDatabase(): void {
    this.#proxy.cut();
    if (this.#database === undefined) this.#databaseWellSince = performance.now();
    this.noteTrouble();
  }

  async heal(): Promise<void> {
    await Promise.all([this.cache.heal(), this.queue.heal()]);
    if (this.#database === 'killed') await this.#postgres.restart();
    await this.#proxy.heal();
    if (this.#database !== undefined) this.#databaseWellSince = performance.now();
    this.#database = undefined;
    this.noteTrouble();
  }

  /** Notes that a server was broken until now. */
  noteTrouble(): void {
    this.#wellSince = performance.now();
  }

  /** Notes a busy machine as trouble: the deadlines of readers pass there without a fault. */
  async #measureMachine(signal: AbortSignal): Promise<void> {
    try {
      for await (const _ of setInterval(250, undefined, { signal })) {
        const began = performance.now();
        await run(this.#postgres.url, 'select 1').catch(() => {});
        if (performance.now() - began > BUSY_MS) this.noteTrouble();
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  get isDatabaseKilled(): boolean {
    return this.#database === 'killed';
  }

  get health(): Health {
    const isWell = !(this.#database || this.cache.broken || this.queue.broken);
    return {
      wellSince: isWell ? this.#wellSince : undefined,
      databaseWellSince: this.#database ? undefined : this.#databaseWellSince,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.heal();
    await this.#closing.disposeAsync();
  }
}

/** The servers that many histories share, one after the other, and what breaks them. */
import { randomBytes } from 'node:crypto';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import postgres from 'postgres';
import { migrate } from '../../src/db/migration/migrate.ts';
import { isCluster, mastersOf, openRedis, type RedisClient, redisReady } from '../../src/redis/redis.ts';
import { startTestPostgres, type TestPostgres } from '../faults/support/stack.ts';
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { startTestCluster } from '../support/redis-cluster.ts';
import type { Health } from './judge.ts';
import { loadRelease, type OracleRelease } from './release.ts';

const TEMPLATE = 'oracle_template';

export type Broken = 'killed' | 'hung';

/** One Redis, or a Redis Cluster of which one node at a time is broken. */
type Breakable = Pick<TestRedis, 'url' | 'kill' | 'pause' | 'restart'> & {
  resume(): void | Promise<void>;
};

/** A Redis, and whether it is well. */
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

  /** An operation that takes long goes on beside the next ones. */
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
    await this.#ask(flushAll);
    this.#remembered = new Map();
  }

  /** Ends every subscription; clients make them anew. */
  async silenceSubscribers(): Promise<void> {
    await this.#ask((redis) => endClients(redis, 'pubsub'));
  }

  /** Keeps what is stored now, for `goBack`. */
  async remember(): Promise<void> {
    this.#remembered = await this.#ask(async (redis) => {
      const values = new Map<string, Buffer>();
      for (const master of mastersOf(redis))
        for (const key of await master.keys('*')) {
          const value = await master.dumpBuffer(key);
          if (value) values.set(key, value);
        }
      return values;
    });
  }

  /** Holds what it held then, and every client has to connect anew: a failover to a replica that was behind. */
  async goBack(): Promise<void> {
    await this.#ask(async (redis) => {
      await flushAll(redis);
      for (const [key, value] of this.#remembered) await redis.restore(key, 0, value, 'REPLACE');
      await endClients(redis, 'pubsub');
      await endClients(redis, 'normal');
    });
  }

  async #ask<T>(command: (redis: RedisClient) => Promise<T>): Promise<T> {
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

/** Everybody's but one's own. */
async function endClients(redis: RedisClient, type: 'pubsub' | 'normal'): Promise<void> {
  for (const node of isCluster(redis) ? redis.nodes('all') : [redis])
    await node.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
}

/** What breaks of a cluster is a node, another one each time; its replica takes over. */
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
  /** The database's own, past the proxy. */
  readonly url: string;
  /** The way of readers and workers, which can hang. */
  readonly proxiedUrl: string;
}

export class Servers implements AsyncDisposable {
  /** What readers and workers are started of, by turns. */
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
   * @param beside the root of another release's source, to run beside this one
   * @param withCluster whether the cache is a Redis Cluster
   */
  static async open(beside?: string, withCluster = false): Promise<Servers> {
    await using closing = new AsyncDisposableStack();
    const releases = [await loadRelease(), ...(beside === undefined ? [] : [await loadRelease(beside)])];
    const folder = closing.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-oracle-')));
    const server = closing.use(await startTestPostgres(join(folder.path, 'postgres')));
    // Processes are killed here, never the machine: what is committed is kept without waiting for a disk.
    await run(server.url, "alter system set fsync = 'off'");
    await run(server.url, 'select pg_reload_conf()');
    await run(server.url, `create database ${TEMPLATE}`);
    await migrate(named(server.url, TEMPLATE));
    const proxy = closing.use(await faultProxy(server.url));
    const cache = withCluster ? await openCluster(closing) : closing.use(await startTestRedis());
    const queue = closing.use(await startTestRedis());
    return new Servers({ releases, cache, queue, postgres: server, proxy }, closing.move());
  }

  /** A database of one history. Everything is well, and empty, then. */
  async database(): Promise<Database> {
    await this.heal();
    await Promise.all([this.cache.flush(), this.queue.flush()]);
    const name = `oracle_${randomBytes(8).toString('hex')}`;
    const { url } = this.#postgres;
    await run(url, `create database ${name} template ${TEMPLATE}`);
    await run(named(url, name), 'update lineage set id = gen_random_uuid()');
    return {
      url: named(url, name),
      proxiedUrl: named(this.#proxy.url, name),
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

  /** Every connection of readers and workers breaks off; new ones work. */
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

  /** Something was broken until now. */
  noteTrouble(): void {
    this.#wellSince = performance.now();
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

function named(url: string, database: string): string {
  const parsed = new URL(url);
  parsed.pathname = `/${database}`;
  return parsed.href;
}

async function run(url: string, statement: string): Promise<void> {
  const sql = postgres(url, { max: 1, connect_timeout: 10, onnotice: () => {} });
  try {
    await sql.unsafe(statement);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

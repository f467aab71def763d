/** The servers that many histories share, one after the other, and what breaks them. */
import { randomBytes } from 'node:crypto';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { Redis } from 'ioredis';
import postgres from 'postgres';
import { migrate } from '../../src/db/migrate.ts';
import { openRedis, redisReady } from '../../src/db/redis.ts';
import { startTestPostgres, type TestPostgres } from '../faults/support/stack.ts';
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import type { Health } from './judge.ts';
import { loadRelease, type OracleRelease } from './release.ts';

const TEMPLATE = 'oracle_template';

export type Broken = 'killed' | 'hung';

/** A Redis, and whether it is well. */
export class BreakableRedis {
  readonly server: TestRedis;
  #broken: Broken | undefined;
  #remembered: ReadonlyMap<string, Buffer> = new Map();

  constructor(server: TestRedis) {
    this.server = server;
  }

  get broken(): Broken | undefined {
    return this.#broken;
  }

  async kill(): Promise<void> {
    await this.heal();
    this.#broken = 'killed';
    await this.server.kill();
  }

  async hang(): Promise<void> {
    await this.heal();
    this.#broken = 'hung';
    this.server.pause();
  }

  async heal(): Promise<void> {
    if (this.#broken === 'hung') this.server.resume();
    if (this.#broken === 'killed') await this.server.restart();
    this.#broken = undefined;
  }

  async flush(): Promise<void> {
    await this.#ask((redis) => redis.flushall());
    this.#remembered = new Map();
  }

  /** Ends every subscription; clients make them anew. */
  async silenceSubscribers(): Promise<void> {
    await this.#ask((redis) => redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub'));
  }

  /** Keeps what is stored now, for `goBack`. */
  async remember(): Promise<void> {
    this.#remembered = await this.#ask(async (redis) => {
      const values = new Map<string, Buffer>();
      for (const key of await redis.keys('*')) {
        const value = await redis.dumpBuffer(key);
        if (value) values.set(key, value);
      }
      return values;
    });
  }

  /** Holds what it held then, and every client has to connect anew: a failover to a replica that was behind. */
  async goBack(): Promise<void> {
    await this.#ask(async (redis) => {
      const back = redis.multi().flushall();
      for (const [key, value] of this.#remembered) back.restore(key, 0, value);
      await back.exec();
      await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    });
  }

  async #ask<T>(command: (redis: Redis) => Promise<T>): Promise<T> {
    const connection = openRedis(this.server.url, 'publisher', () => {}) as Redis;
    try {
      await redisReady(connection, 5000);
      return await command(connection);
    } finally {
      connection.disconnect();
    }
  }
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
      cache: TestRedis;
      queue: TestRedis;
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

  /** @param beside the root of another release's source, to run beside this one */
  static async open(beside?: string): Promise<Servers> {
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
    const [cache, queue] = [closing.use(await startTestRedis()), closing.use(await startTestRedis())];
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

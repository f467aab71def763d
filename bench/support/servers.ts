/** The benchmark's real servers, in a temporary folder that is removed with them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import type { Sql } from '../../src/db/connection/connect.ts';
import { migrate } from '../../src/db/migration/migrate.ts';
import { acquireRedisServer } from '../../src/dev/install-redis.ts';
import { startEmbeddedPostgres } from '../../src/dev/postgres.ts';
import { startRedis } from '../../src/dev/redis.ts';

export interface Servers extends AsyncDisposable {
  readonly redisUrl: string;
  lastLines(): Promise<string>;
  /** An empty migrated database. */
  database(name: string): Promise<Database>;
}

export interface Database extends AsyncDisposable {
  readonly url: string;
  readonly sql: Sql;
}

/**
 * PostgreSQL as `fleetbook up` starts it, durable. The benchmark runs statistics and vacuum between the measured
 * steps, never during one. `countStatements` adds the extension pg_stat_statements.
 */
export async function startServers(options: { readonly countStatements?: boolean } = {}): Promise<Servers> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-bench-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const embedded = { dataDir: join(folder, 'postgres'), database: 'template' };
  if (options.countStatements) await preload(embedded, 'pg_stat_statements');
  const server = opened.use(await startEmbeddedPostgres(embedded));
  const redis = opened.use(await startRedis({ binary: await acquireRedisServer(), dir: folder }));
  await migrate(server.url);
  const admin = connect(urlOf(server.url, 'postgres'));
  opened.defer(() => admin.end({ timeout: 5 }));
  await admin`alter system set autovacuum = off`;
  await admin`select pg_reload_conf()`;
  const closing = opened.move();
  return {
    redisUrl: redis.url,
    lastLines: () => server.lastLines(),
    async database(name) {
      await admin`create database ${admin(name)} template template`;
      const url = urlOf(server.url, name);
      const sql = connect(url);
      // Two databases with one lineage would share snapshots.
      await sql`update lineage set id = gen_random_uuid()`;
      return {
        url,
        sql,
        async [Symbol.asyncDispose]() {
          await sql.end({ timeout: 5 });
          await admin`drop database ${admin(name)} with (force)`;
        },
      };
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** Settings from the server's start on. */
async function preload(embedded: { dataDir: string; database: string }, library: string): Promise<void> {
  await using server = await startEmbeddedPostgres(embedded);
  const sql = connect(server.url);
  await sql`alter system set shared_preload_libraries = ${sql.unsafe(library)}`;
  await sql.end({ timeout: 5 });
}

function connect(url: string): Sql {
  return postgres(url, { max: 1, onnotice: () => {} });
}

function urlOf(url: string, database: string): string {
  const parsed = new URL(url);
  parsed.pathname = `/${database}`;
  return parsed.href;
}

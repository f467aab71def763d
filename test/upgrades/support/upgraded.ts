/** A database of an earlier release, migrated to today, with the cache of that release and processes of this one. */
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import postgres from 'postgres';
import { inject } from 'vitest';
import { FEATURE_CONFIG } from '../../../src/app/feature-config.ts';
import { apiOptions, composeReader } from '../../../src/app/reader.ts';
import { readConfig } from '../../../src/config/config.ts';
import { VERSION } from '../../../src/config/package.ts';
import { openStore, type Store } from '../../../src/db/connection/connect.ts';
import { migrate } from '../../../src/db/migration/migrate.ts';
import { dirtyDocuments } from '../../../src/db/versions.ts';
import { buildApp } from '../../../src/http/app.ts';
import { openRedis, type RedisClient, redisReady } from '../../../src/redis/redis.ts';
import { FORMAT } from '../../../src/snapshot/document/format.ts';
import { startWorker } from '../../../workers/main.ts';
import { migrationsOf } from '../../db/older-migrations.ts';
import { createDatabase, databaseUrl, run } from '../../support/postgres.ts';
import { startTestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { loadCache } from './cache-values.ts';
import { loadRows } from './database-rows.ts';
import { type Fixture, readFixture } from './fixture.ts';
import { differences, type RecordedAnswer } from './recorded-answers.ts';

const silent = pino({ level: 'silent' });

export interface Upgraded extends AsyncDisposable {
  readonly fixture: Fixture;
  /** Copies the migrated database. The copy continues its lineage. */
  open(options?: { readonly cache?: 'old' | 'empty' }): Promise<Installation>;
}

export interface Installation extends AsyncDisposable {
  readonly sql: Store['sql'];
  /** One connection of the owner. */
  readonly owner: postgres.Sql;
  readonly cache: RedisClient;
  /** Starts a reader of this release. Returns its address. */
  reader(): Promise<string>;
  /** Starts a worker of this release. */
  worker(): Promise<void>;
  /** Waits until everything is published in the form of this release. */
  published(): Promise<void>;
  /** Starts a reader, and returns the differences between its answers and the recorded ones, or some of them. */
  differences(recorded?: readonly RecordedAnswer[]): Promise<string[]>;
}

export async function upgradedFrom(release: string): Promise<Upgraded> {
  await using opening = new AsyncDisposableStack();
  const fixture = await readFixture(release);
  const database = opening.use(await createDatabase({ migrated: false }));
  {
    await using earlier = await migrationsOf({ last: fixture.migration });
    await migrate(database.url, { folder: earlier.path });
  }
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  await loadRows(sql, fixture.rows);
  await sql.end();
  await migrate(database.url);
  const opened = opening.move();
  return {
    fixture,
    open: async ({ cache = 'old' } = {}) =>
      openInstallation(fixture, database.name, cache === 'old' ? fixture.cache : []),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

async function openInstallation(
  fixture: Fixture,
  template: string,
  values: Fixture['cache'],
): Promise<Installation> {
  await using opening = new AsyncDisposableStack();
  const redis = opening.use(await startTestRedis());
  const { adminUrl } = inject('postgres');
  const name = `${template}_${++copies}`;
  const url = databaseUrl(adminUrl, name);
  await run(adminUrl, `create database ${name} template ${template}`);
  opening.defer(() => run(adminUrl, `drop database ${name} with (force)`));
  await run(url, 'update lineage set database_identity = database_identity()');
  const store = opening.use(openStore({ url, role: 'worker', connections: 2 }));
  const owner = postgres(url, { max: 1, onnotice: () => {} });
  opening.defer(() => owner.end({ timeout: 5 }));
  const cache = openRedis(redis.url, 'publisher', () => {});
  opening.defer(() => cache.disconnect());
  await redisReady(cache, 5000);
  await loadCache(cache, values);
  const config = readConfig(
    {
      DATABASE_URL: url,
      REDIS_URL: redis.url,
      // Rows of a fixture get older with each year, and must not be deleted.
      CHANGES_KEPT: '3650',
      EXPORT_EVERY: '0',
      MAX_EVENT_LOOP_DELAY: '0',
    },
    FEATURE_CONFIG,
  );
  const processes = opening.use(new AsyncDisposableStack());
  const reader = async (): Promise<string> => {
    const composed = processes.use(await composeReader(config, silent));
    const options = { ...apiOptions(config.settings), logger: false, version: VERSION } as const;
    const app = buildApp({ ...composed, ...options });
    processes.defer(() => app.close());
    await app.listen({ host: '127.0.0.1', port: 0 });
    // Only with a worker's heartbeats a reader trusts the cache.
    await until(async () => {
      const { ready, checks } = await composed.readiness();
      return ready && (!hasWorker || checks.cache === 'ok');
    });
    return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  };
  let hasWorker = false;
  const worker = async (): Promise<void> => {
    hasWorker = true;
    processes.use(await startWorker(config, silent));
  };
  const published = async (): Promise<void> => {
    await until(async () => {
      const [row] = await store.sql<{ id: string }[]>`select id from lineage`;
      const hasAges = (await cache.hlen(`fb:{${row?.id}}:stamps`)) > 0;
      const regions = await cache.keys(`fb:{${row?.id}}:region:*`);
      const formats = await Promise.all(regions.map((key) => cache.getrange(key, 0, FORMAT.length - 1)));
      const isPublished = regions.length > 0 && formats.every((format) => format === FORMAT);
      return hasAges && isPublished && (await dirtyDocuments(store.db, 1)).length === 0;
    });
  };
  const opened = opening.move();
  return {
    sql: store.sql,
    owner,
    cache,
    reader,
    worker,
    published,
    differences: async (recorded = fixture.answers) => differences(await reader(), recorded, fixture.tokens),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

let copies = 0;

/** PgBouncer in transaction mode between Fleetbook and PostgreSQL. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkConnections } from '../../src/cli/doctor/database.ts';
import { databaseUrls, readSettings } from '../../src/config/settings.ts';
import { openStore, type StoreRole } from '../../src/db/connection/connect.ts';
import {
  checkPooler,
  checkReader,
  postgresFacts,
  postgresProblem,
} from '../../src/db/connection/server-problem.ts';
import { migrate } from '../../src/db/migration/migrate.ts';
import { createToken } from '../../src/db/tokens.ts';
import { hashToken } from '../../src/domain/token.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { loadContent } from '../../src/snapshot/document/load.ts';
import { withFence } from '../../src/snapshot/publish/fence.ts';
import { Publisher } from '../../src/snapshot/publish/publisher.ts';
import { addSample } from '../snapshot/rows.ts';
import { needs, PGBOUNCER } from '../support/needs.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestRedis } from '../support/redis.ts';
import { type PgBouncer, pgbouncer, startPgBouncer } from './pgbouncer.ts';

describe('behind PgBouncer in transaction mode', needs(pgbouncer !== undefined, PGBOUNCER), () => {
  let db: TestDatabase;
  let pooler: PgBouncer;
  const closing = new AsyncDisposableStack();
  beforeAll(async () => {
    db = closing.use(await createDatabase());
    pooler = closing.use(await startPgBouncer(db.url));
  });
  afterAll(() => closing.disposeAsync());

  const open = (role: StoreRole, connections = 8) =>
    openStore({
      url: `${pooler.url}?pool_mode=transaction`,
      directUrl: db.url,
      role,
      connections,
      statementTimeoutMs: 2345,
    });

  it('each statement has its role and its limits on any connection', async () => {
    await using reader = open('reader');
    await using worker = open('worker');
    const queries = Array.from({ length: 40 }, (_, i) => {
      const [store, role] = i % 2 === 0 ? [reader, 'fleetbook_reader'] : [worker, 'fleetbook_worker'];
      return store.sql`select current_user as role, current_setting('statement_timeout') as limit, ${i}::int as i`.then(
        ([row]) => expect(row).toEqual({ role, limit: '2345ms', i }),
      );
    });
    await Promise.all(queries);
    // A setting ends with its transaction.
    await using owner = open('owner', 4);
    const left = await Promise.all(
      Array.from({ length: 8 }, () => owner.sql`select current_user <> session_user as differs`),
    );
    expect(left.every(([row]) => row?.differs === false)).toBe(true);
  });

  it('it serves writes, publications and reads', async () => {
    await using redis = await startTestRedis();
    await using store = open('worker');
    await using reader = open('reader');
    const sample = await addSample(store.sql);
    const { token } = await createToken(store.db, { organizationId: sample.a, scopes: ['clusters:read'] });
    const cache = withFence(openRedis(redis.url, 'publisher', () => {}));
    try {
      await redisReady(cache, 5000);
      expect((await new Publisher(store.db, cache).publishDirty()).published).toBeGreaterThan(4);
    } finally {
      cache.disconnect();
    }
    const region = await loadContent(reader.sql, { kind: 'region', regionId: sample.region });
    expect(JSON.parse(region?.body.toString() ?? '')).toHaveLength(2);
    const clusters = await loadContent(reader.sql, { kind: 'clusters', organizationId: sample.a });
    expect(JSON.parse(clusters?.body.toString() ?? '')).toHaveLength(1);
    expect(await loadContent(reader.sql, { kind: 'token', hash: hashToken(token) })).toBeDefined();
    // Row-level security works: without an organization no row is visible.
    expect(await reader.sql`select from clusters`).toHaveLength(0);
  });

  it('rows can be streamed, and a failure leaves a working connection', async () => {
    await using store = open('worker');
    let count = 0;
    await store.sql`select generate_series(1, 25)`.forEach(() => {
      count += 1;
    });
    expect(count).toBe(25);
    expect(await store.sql`select 1 as one`).toEqual([{ one: 1 }]);
    await expect(store.sql`select 1 / 0`).rejects.toMatchObject({ code: '22012' });
  });

  it('transactions can have an isolation level, and fail as a whole', async () => {
    await using store = open('worker');
    const [level] = await store.db.transaction(
      (tx) => tx.execute<{ level: string }>(`select current_setting('transaction_isolation') as level`),
      { isolationLevel: 'repeatable read' },
    );
    expect(level?.level).toBe('repeatable read');
    await expect(
      store.sql.begin(async (tx) => {
        await tx`update lineage set providers_version = providers_version + 1`;
        throw new Error('never mind');
      }),
    ).rejects.toThrow('never mind');
  });

  it('work that needs a connection state goes to the server itself', async () => {
    await using store = open('worker');
    await using connection = store.connection();
    await connection.sql`create temporary table kept (n int)`;
    expect(await connection.sql`select n from kept`).toEqual([]);
    expect(await migrate(db.url)).toEqual({ applied: [], isLater: false });
    const lost = openStore({ url: `${pooler.url}?pool_mode=transaction`, role: 'worker' });
    expect(() => lost.connection()).toThrow(/DIRECT_DATABASE_URL/);
    await lost[Symbol.asyncDispose]();
  });

  it('an undeclared pooler is reported', async () => {
    await using store = openStore({ url: pooler.url, role: 'reader' });
    const failure = await store.sql`select 1`.catch((error: unknown) => error);
    expect(postgresProblem(failure, { setting: 'DATABASE_URL', url: pooler.url })).toMatch(
      /is a pooler, .*: add pool_mode=transaction to DATABASE_URL, and name the server itself in DIRECT_DATABASE_URL/,
    );
  });

  it('a pooler that rejects or ignores startup parameters is reported at the start', async () => {
    const server = { setting: 'DATABASE_URL', url: pooler.url };
    await using owner = openStore({ url: pooler.url, role: 'owner' });
    const facts = await postgresFacts(owner.db);
    expect(checkPooler(facts, server)).toEqual({
      what: 'it is a pooler',
      remedy: 'add pool_mode=transaction to DATABASE_URL, and name the server itself in DIRECT_DATABASE_URL',
    });
    expect(checkPooler(facts, { ...server, setting: 'DIRECT_DATABASE_URL' })?.remedy).toBe(
      'give the address of the server itself',
    );
    expect(checkReader(facts, server, true)?.what).toMatch(
      /^statements act as \w+ and not as fleetbook_reader$/,
    );
    await using declared = open('reader');
    const pooled = { ...server, url: `${pooler.url}?pool_mode=transaction` };
    const good = await postgresFacts(declared.db);
    expect([checkPooler(good, pooled), checkReader(good, pooled, false)]).toEqual([undefined, undefined]);
  });

  it('doctor reports what does not fit', async () => {
    const found = async (env: Record<string, string>) =>
      (await checkConnections({ settings: readSettings(env) })).map(({ verdict, found: what }) => [
        verdict,
        what,
      ]);
    const pooled = `${pooler.url}?pool_mode=transaction`;
    expect(await found({ DATABASE_URL: db.url })).toEqual([]);
    expect(await found({ DATABASE_URL: pooled, DIRECT_DATABASE_URL: db.url })).toEqual([
      ['ok', 'sessions go to the server itself, by DIRECT_DATABASE_URL'],
    ]);
    expect(await found({ DATABASE_URL: pooled, DIRECT_DATABASE_URL: pooler.url })).toEqual([
      ['problem', 'DIRECT_DATABASE_URL leads to a pooler'],
    ]);
    expect(await found({ DATABASE_URL: pooler.url })).toEqual([
      ['problem', 'DATABASE_URL leads to a pooler'],
    ]);
    expect(await found({ DATABASE_URL: pooled })).toEqual([
      ['problem', expect.stringMatching(/^DIRECT_DATABASE_URL is not set, and DATABASE_URL names a pooler/)],
    ]);
    expect(() => databaseUrls({ settings: readSettings({ DATABASE_URL: pooled }) })).toThrow(
      /DIRECT_DATABASE_URL is not set/,
    );
    expect(() => readSettings({ DATABASE_URL: pooled, DIRECT_DATABASE_URL: pooled })).toThrow(
      /DIRECT_DATABASE_URL must name the server itself/,
    );
  });
});

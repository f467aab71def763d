/** The users of docs/hardening.md: the programs run with their rights, and have no others. */
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';
import { openStore } from '../../src/db/connection/connect.ts';
import { createToken } from '../../src/db/tokens.ts';
import { startSampleUpstream } from '../../src/dev/sample/upstream.ts';
import { freePort } from '../../src/processes/port.ts';
import { CacheKeys, LINEAGE_KEY } from '../../src/snapshot/document/keys.ts';
import { dropValue, setIfNewer, withFence } from '../../src/snapshot/publish/fence.ts';
import { addMachines, addSample, type Sample } from '../snapshot/rows.ts';
import { createDatabase, run, type TestDatabase } from '../support/postgres.ts';
import { CLI, startProgram } from '../support/program.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const PAGE = readFileSync(inPackage('docs/hardening.md'), 'utf8');
const OPS_TOKEN = 'the-token-of-a-scraper-of-these-tests';

/** Returns the lines of the page's code block with this info string. */
function block(info: string): string {
  const found = new RegExp(`^\`\`\`${info}\n(.*?)^\`\`\``, 'ms').exec(PAGE)?.[1];
  if (found === undefined) throw new Error(`docs/hardening.md has no block ${info}`);
  return found;
}

const opened = new AsyncDisposableStack();
let db: TestDatabase;
let redis: TestRedis;
let admin: Redis;
let sample: Sample;
let token: string;

beforeAll(async () => {
  db = opened.use(await createDatabase());
  redis = opened.use(await startTestRedis());
  const store = opened.use(openStore({ url: db.url, role: 'worker', connections: 1 }));
  sample = await addSample(store.sql);
  await addMachines(store.sql, sample.region, 3);
  const scopes = ['machines:read', 'clusters:read'] as const;
  ({ token } = await createToken(store.db, { organizationId: sample.a, scopes }));

  // Users belong to the whole server, so they leave with this file.
  opened.defer(() => run(db.url, 'drop role if exists fleetbook_jobs; drop role if exists fleetbook_api'));
  await run(db.url, block('sql roles'));
  admin = new Redis(redis.url);
  opened.defer(() => admin.disconnect());
  for (const line of block('acl').trim().split('\n')) {
    // A selector is one rule.
    const [, name = '', ...rules] = line.match(/\([^)]*\)|\S+/g) ?? [];
    await admin.call('ACL', 'SETUSER', name, ...rules);
  }
  await admin.call('ACL', 'LOG', 'RESET');
});
afterAll(() => opened.disposeAsync());

function postgresAs(user: string, password: string): string {
  const url = new URL(db.url);
  url.username = user;
  url.password = password;
  return url.href;
}

const redisAs = (user: string, password: string) => `redis://${user}:${password}@127.0.0.1:${redis.port}`;
const jobs = () => postgresAs('fleetbook_jobs', 'JOBS_PASSWORD');
const api = () => postgresAs('fleetbook_api', 'API_PASSWORD');

describe('the users of the hardening guide', () => {
  it('let a worker sync and publish and a reader answer, without one refused command of Redis', async () => {
    const [port, opsPort, workerPort] = [await freePort(), await freePort(), await freePort()];
    const shared = { PATH: process.env.PATH, OPS_TOKEN };
    await using upstream = await startSampleUpstream();
    await using worker = await startProgram(CLI, ['work'], {
      env: {
        ...shared,
        DATABASE_URL: jobs(),
        REDIS_URL: redisAs('fleetbook-worker', 'WORKER_PASSWORD'),
        OPS_PORT: String(workerPort),
        // Prices in dollars need no exchange rates.
        LINODE_URL: upstream.linodeUrl,
      },
    });
    await using reader = await startProgram(CLI, ['serve'], {
      env: {
        ...shared,
        DATABASE_URL: api(),
        CACHE_REDIS_URL: redisAs('fleetbook-reader', 'READER_PASSWORD'),
        PORT: String(port),
        OPS_PORT: String(opsPort),
      },
    });
    const outputs = () => `${worker.output()}\n${reader.output()}`;
    const get = (path: string) =>
      fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${token}` } });
    await until(
      async () => {
        const ready = await get('/readyz').catch(() => undefined);
        return ready?.ok && ((await ready.json()) as { checks: { cache: string } }).checks.cache === 'ok';
      },
      { timeoutMs: 60_000, what: 'a linked reader' },
    );
    const sql = postgres(db.url, { max: 1, onnotice: () => {} });
    opened.defer(() => sql.end({ timeout: 5 }));
    const ended = () => sql`select outcome, error from sync_runs where outcome <> 'running'`;
    await until(async () => (await ended()).length > 0 || worker.child.exitCode !== null);
    expect([...(await ended())], outputs()).toEqual([{ outcome: 'changed', error: null }]);
    const list = `/v1/machines?provider=${sample.provider}&region=${sample.region}`;
    const answer = await get(list);
    expect(answer.status, outputs()).toBe(200);
    expect(answer.headers.get('fleetbook-tier')).not.toBe('postgres');
    expect((await get('/v1/clusters')).status).toBe(200);
    expect(await admin.call('ACL', 'LOG')).toEqual([]);
  });

  it.each([
    ['fleetbook-reader', 'READER_PASSWORD'],
    ['fleetbook-worker', 'WORKER_PASSWORD'],
  ])('%s cannot empty Redis, change it or reach other keys', async (user, password) => {
    const client = new Redis(redisAs(user, password));
    using stack = new DisposableStack();
    stack.defer(() => client.disconnect());
    for (const call of [['flushall'], ['config', 'set', 'maxmemory', '1'], ['keys', '*'], ['get', 'other']])
      await expect(client.call(...(call as [string])), call.join(' ')).rejects.toThrow('NOPERM');
  });

  it('let a reader write what it read from PostgreSQL, and no token, freshness or lineage', async () => {
    const client = withFence(new Redis(redisAs('fleetbook-reader', 'READER_PASSWORD')));
    using stack = new DisposableStack();
    stack.defer(() => client.disconnect());
    const keys = new CacheKeys('a0000000-0000-4000-8000-000000000000');
    const [token, clusters] = [
      { kind: 'token', hash: 'ab'.repeat(32) } as const,
      { kind: 'clusters', organizationId: 1 } as const,
    ];
    const forged = Buffer.from('1 forged');
    expect(await setIfNewer(client, keys, clusters, 1, forged, 60)).toBe(true);
    const key = keys.document(token);
    await expect(setIfNewer(client, keys, token, 1, forged, 60)).rejects.toThrow(/NOPERM|ACL|permission/);
    await expect(client.set(key, forged)).rejects.toThrow('NOPERM');
    await expect(client.copy(keys.document(clusters), key)).rejects.toThrow('NOPERM');
    await expect(client.rename(keys.document(clusters), key)).rejects.toThrow('NOPERM');
    await expect(client.eval("return redis.call('SET', KEYS[1], 'x')", 1, key)).rejects.toThrow();
    await expect(client.set(LINEAGE_KEY, 'x')).rejects.toThrow('NOPERM');
    await expect(client.hset(keys.stamps, 'hetzner', 'x')).rejects.toThrow('NOPERM');
    expect(await admin.exists(key)).toBe(0);
    // A damaged token leaves the cache.
    await admin.set(key, 'damaged');
    await dropValue(client, key, Buffer.from('damaged'));
    expect(await admin.exists(key)).toBe(0);
  });

  it('let a reader of PostgreSQL select any organization, as the page says, and change nothing', async () => {
    const sql = postgres(api(), { max: 1, onnotice: () => {} });
    await using stack = new AsyncDisposableStack();
    stack.defer(() => sql.end({ timeout: 5 }));
    const clustersOf = async (organizationId: number) => {
      await sql`select set_config('app.org_id', ${String(organizationId)}, false)`;
      return (await sql`select organization_id from clusters`).map((row) => row.organization_id as number);
    };
    expect(await sql`select from clusters`).toHaveLength(0);
    expect(new Set(await clustersOf(sample.a))).toEqual(new Set([sample.a]));
    expect(new Set(await clustersOf(sample.b))).toEqual(new Set([sample.b]));
    for (const table of ['clusters', 'machines', 'organizations', 'regions'])
      await expect(sql`delete from ${sql(table)}`, table).rejects.toThrow('permission denied');
  });

  it.each([
    ['the API', api, ['tokens', 'operators', 'operator_tokens', 'audit_log', 'held_batches']],
    ['a worker', jobs, []],
  ] as const)('%s cannot change the schema nor read what it does not need', async (_who, url, tables) => {
    const sql = postgres(url(), { max: 1, onnotice: () => {} });
    await using stack = new AsyncDisposableStack();
    stack.defer(() => sql.end({ timeout: 5 }));
    await expect(sql`create table stolen (id int)`).rejects.toThrow('permission denied');
    await expect(sql`drop table machines`).rejects.toThrow('must be owner');
    for (const table of tables)
      await expect(sql`select * from ${sql(table)}`, table).rejects.toThrow('permission denied');
  });
});

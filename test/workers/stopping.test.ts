import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore, type Store } from '../../src/store/connect.ts';
import { faultProxy } from '../support/fault-proxy.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { type Program, startProgram } from '../support/program.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { type MoodyUpstream, moodyUpstream } from './moody-upstream.ts';

const PROGRAM = join(import.meta.dirname, 'programs', 'worker.ts');

let db: TestDatabase;
let store: Store;
let upstream: MoodyUpstream;

beforeAll(async () => {
  db = await createDatabase();
  store = openStore({ url: db.url, role: 'worker', connections: 1 });
  upstream = await moodyUpstream();
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
  await store[Symbol.asyncDispose]();
  await db[Symbol.asyncDispose]();
});

function work(databaseUrl: string, redisUrl: string): Promise<Program> {
  return startProgram(PROGRAM, [], {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      LINODE_URL: upstream.urls.linode,
      LINODE_SCHEDULE: '0 0 1 1 *',
    },
  });
}

/** Milliseconds from SIGTERM to its end. */
async function stop(program: Program): Promise<number> {
  const start = performance.now();
  program.child.kill('SIGTERM');
  expect(await program.exited).toEqual({ code: 0, signal: null });
  return performance.now() - start;
}

describe('a worker’s process ends by itself, with nothing left open,', () => {
  it('when all is well', async () => {
    await using redis = await startTestRedis();
    await using program = await work(db.url, redis.url);
    await program.answer();
    await until(async () => (await store.sql`select from sync_runs where outcome = 'changed'`).length > 0);
    expect(await stop(program)).toBeLessThan(2000);
    expect(program.output()).toBe('{"ready":1}\n');
  });

  it('while the queues’ Redis is gone', async () => {
    await using redis = await startTestRedis();
    await using program = await work(db.url, redis.url);
    await program.answer();
    await redis.kill();
    expect(await stop(program)).toBeLessThan(8000);
  });

  it('while Redis hangs, and Postgres too', async () => {
    await using redis = await startTestRedis();
    await using proxy = await faultProxy(db.url);
    await using program = await work(proxy.url, redis.url);
    await program.answer();
    redis.pause();
    proxy.hang();
    expect(await stop(program)).toBeLessThan(15_000);
    redis.resume();
  });
});

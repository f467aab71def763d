import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { openStore } from '../../src/db/connection/connect.ts';
import { YEARLY } from '../support/day.ts';
import { faultProxy } from '../support/fault-proxy.ts';
import { type FaultyUpstream, faultyUpstream } from '../support/faulty-upstream.ts';
import { createDatabase } from '../support/postgres.ts';
import { type Program, startProgram } from '../support/program.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const PROGRAM = fileURLToPath(new URL('./programs/worker.ts', import.meta.url));

let upstream: FaultyUpstream;

beforeAll(async () => {
  upstream = await faultyUpstream();
});
afterAll(() => upstream[Symbol.asyncDispose]());

function work(databaseUrl: string, redisUrl: string): Promise<Program> {
  return startProgram(PROGRAM, [], {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      LINODE_URL: upstream.urls.linode,
      LINODE_SCHEDULE: YEARLY,
    },
  });
}

/** Sends SIGTERM. @returns the exit, and the time in milliseconds */
async function stop(program: Program): Promise<{ ms: number; code: number | null }> {
  const start = performance.now();
  program.child.kill('SIGTERM');
  const { code } = await program.exited;
  return { ms: performance.now() - start, code };
}

describe.concurrent('a worker’s process ends by itself, with no open handle,', () => {
  it('without a fault', async ({ expect }) => {
    await using db = await createDatabase();
    await using redis = await startTestRedis();
    await using program = await work(db.url, redis.url);
    await program.answer();
    await using store = openStore({ url: db.url, role: 'worker', connections: 1 });
    await until(async () => (await store.sql`select from sync_runs where outcome = 'changed'`).length > 0);
    expect(await stop(program)).toEqual({ code: 0, ms: expect.toSatisfy((ms) => ms < 10_000) });
    expect(program.output()).toBe('{"ready":1}\n');
  });

  it('while the queues’ Redis is gone', async ({ expect }) => {
    await using db = await createDatabase();
    await using redis = await startTestRedis();
    await using program = await work(db.url, redis.url);
    await program.answer();
    await redis.kill();
    expect(await stop(program)).toEqual({ code: 0, ms: expect.toSatisfy((ms) => ms < 15_000) });
  });

  it('while Redis hangs, and Postgres too', async ({ expect }) => {
    await using db = await createDatabase();
    await using redis = await startTestRedis();
    await using proxy = await faultProxy(db.url);
    await using program = await work(proxy.url, redis.url);
    await program.answer();
    redis.pause();
    proxy.hang();
    expect(await stop(program)).toEqual({ code: 0, ms: expect.toSatisfy((ms) => ms < 15_000) });
    redis.resume();
  });
});

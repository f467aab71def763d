import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { composeReader, type Reader } from '../../src/app/reader.ts';
import type { ClustersConfig } from '../../src/app/run-source.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import { openStore, type Store } from '../../src/db/connection/connect.ts';
import { createOrganization } from '../../src/db/organizations.ts';
import { sourceStatus } from '../../src/db/sources.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { startWorker } from '../../workers/main.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startProgram } from '../support/program.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { clusters, type Plane, planeSource, startPlane } from './plane.ts';

const silent = pino({ level: 'silent' });
const PROGRAM = fileURLToPath(new URL('./programs/watching-worker.ts', import.meta.url));

let redis: TestRedis;
let db: TestDatabase;
let store: Store;
let plane: Plane;
let organization: number;
let opened: AsyncDisposableStack;

beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis[Symbol.asyncDispose]());

beforeEach(async () => {
  opened = new AsyncDisposableStack();
  const queues = openRedis(redis.url, 'publisher', () => {});
  opened.defer(() => queues.disconnect());
  await redisReady(queues, 5000);
  await queues.flushall();
  db = opened.use(await createDatabase());
  store = opened.use(openStore({ url: db.url, role: 'worker', connections: 2 }));
  plane = opened.use(await startPlane(clusters(4)));
  organization = (await createOrganization(store.db, 'org', 'Org'))?.id ?? expect.unreachable('it is new');
  return () => opened.disposeAsync();
});

function config(change: Partial<ClustersConfig> = {}): Config {
  const read = readConfig({ DATABASE_URL: db.url, REDIS_URL: redis.url });
  return { ...read, sources: [planeSource(plane.url, change)] };
}
const start = async (change: Partial<ClustersConfig> = {}) =>
  opened.use(await startWorker(config(change), silent, { closeWithinMs: 5000 }));

interface Read {
  readonly name: string;
  readonly status: string;
}
async function read(reader: Reader): Promise<Read[]> {
  const { body } = await reader.clusters.clusters(organization);
  return JSON.parse(body.identity.toString()) as Read[];
}
const openReader = async () => opened.use(await composeReader(config(), silent));
/** A cluster in the reader's format: `c1 Active`. */
const seen = async (reader: Reader) => (await read(reader)).map(({ name, status }) => `${name} ${status}`);
const runs = () => store.sql<{ outcome: string; error: string | null; retired: number | null }[]>`
  select outcome, error, retired from sync_runs where outcome <> 'running' order by id`;
const settledWith = (reader: Reader, count: number) =>
  until(async () => (await read(reader)).length === count && plane.watching.now === 1);

describe('a watched source', () => {
  it('shows readers each change at once', async () => {
    const reader = await openReader();
    await start();
    await settledWith(reader, 4);
    const times: number[] = [];
    for (const status of ['Stopped', 'Active', 'Failing']) {
      const began = performance.now();
      plane.set(clusters(4, { status }));
      await until(async () => (await seen(reader)).every((cluster) => cluster.endsWith(status)));
      times.push(performance.now() - began);
    }
    expect(Math.min(...times)).toBeLessThan(2000);
    expect(plane.watching.most).toBe(1);
  });

  it('is watched by one worker, and by another after that one is killed', async () => {
    const reader = await openReader();
    const env = { PATH: process.env.PATH, DATABASE_URL: db.url, REDIS_URL: redis.url, PLANE_URL: plane.url };
    await using first = await startProgram(PROGRAM, [], { env });
    await first.answer();
    await settledWith(reader, 4);
    await start();
    plane.set(clusters(5));
    await settledWith(reader, 5);
    expect(plane.watching.most).toBe(1);
    first.child.kill('SIGKILL');
    await first.exited;
    plane.set(clusters(6));
    await settledWith(reader, 6);
    expect(plane.watching.most).toBe(1);
  });

  it('passes to another worker at once when its worker stops, without a trace', async () => {
    const reader = await openReader();
    const first = await start();
    await settledWith(reader, 4);
    await first[Symbol.asyncDispose]();
    expect(plane.watching.now).toBe(0);
    await start();
    await settledWith(reader, 4);
    const locks = await store.sql`
      select from pg_locks l join pg_database d on d.oid = l.database
      where d.datname = ${db.name} and l.locktype = 'advisory'`;
    expect(locks).toHaveLength(1);
  });

  it('loses a deleted cluster at once', async () => {
    const reader = await openReader();
    await start();
    await settledWith(reader, 4);
    plane.set(clusters(3));
    await settledWith(reader, 3);
    expect((await runs()).at(-1)).toMatchObject({ outcome: 'changed', retired: 1 });
  });

  it('is held for an operator if all clusters are deleted, and readers keep the former data', async () => {
    const reader = await openReader();
    await start();
    await settledWith(reader, 4);
    plane.set([]);
    await until(async () => (await runs()).at(-1)?.outcome === 'held');
    const [status] = await sourceStatus(store.db);
    expect(status).toMatchObject({ known: 4, held: 1 });
    expect(await read(reader)).toHaveLength(4);
  });

  it('leaves a temporarily unusable cluster unchanged', async () => {
    const reader = await openReader();
    await start();
    await settledWith(reader, 4);
    const [first, ...others] = clusters(4, { status: 'Stopped' });
    if (first === undefined) return expect.unreachable('there are four');
    const { provider: _, ...without } = first;
    plane.set([without, ...others]);
    await until(async () => (await seen(reader)).includes('c2 Stopped'));
    expect((await seen(reader)).toSorted()).toEqual(['c1 Active', 'c2 Stopped', 'c3 Stopped', 'c4 Stopped']);
    const quarantined = await store.sql`select row_key, reason from quarantined_rows`;
    expect(quarantined).toEqual([
      { row_key: 'org/c1', reason: 'provider is missing; name one in defaults.provider' },
    ]);
  });
});

describe('a failing watch', () => {
  it('is shown in the status, and restarted automatically', async () => {
    const reader = await openReader();
    plane.behaviour = { status: 503 };
    await start();
    const lastRun = async () => (await sourceStatus(store.db))[0]?.lastRun;
    const failed = await until(async () => {
      const run = await lastRun();
      return run?.outcome === 'failed' && run;
    });
    expect(failed.error).toBe('the plane answered 503');
    plane.behaviour = 'well';
    plane.set(clusters(5));
    await settledWith(reader, 5);
    expect((await lastRun())?.outcome).not.toBe('failed');
  });

  it('pauses for as long as its upstream requires', async () => {
    plane.behaviour = { status: 429, retryAfter: 3600 };
    await start();
    await until(async () => (await runs()).some(({ error }) => error === 'the plane answered 429'));
    const { watch } = plane.requests;
    const reader = await openReader();
    // Scheduled runs continue.
    await until(async () => (await read(reader)).length === 4);
    expect(plane.requests.watch).toBe(watch);
    expect(watch).toBe(1);
  });
});

describe('a watched state', () => {
  it('is not overwritten by a scheduled run that began to read before it', async () => {
    const { promise, resolve } = Promise.withResolvers();
    plane.listsWaitFor = promise;
    const reader = await openReader();
    const worker = await start();
    await until(() => plane.requests.list === 1);
    plane.set(clusters(4, { status: 'Stopped' }));
    await until(async () => (await seen(reader)).includes('c1 Stopped'));
    resolve(undefined);
    await until(async () => (await worker.queues.sync.getJobCountByTypes('completed')) === 1);
    expect(await seen(reader)).toEqual(['c1 Stopped', 'c2 Stopped', 'c3 Stopped', 'c4 Stopped']);
    expect((await runs()).map(({ outcome }) => outcome)).toContain('superseded');
  });

  it('without changes leaves one run, for any number of such states', async () => {
    const reader = await openReader();
    await start();
    await settledWith(reader, 4);
    await until(async () => (await runs()).length >= 1 && plane.requests.list === 1);
    const fence = async () => {
      const [row] = await store.sql<{ fence: string }[]>`select fence from sources where id = 'plane'`;
      return Number(row?.fence);
    };
    for (let state = 0; state < 5; state++) {
      const before = await fence();
      plane.set(clusters(4));
      await until(async () => (await fence()) > before);
    }
    await until(async () => {
      const slotless = await store.sql<
        { outcome: string }[]
      >`select outcome from sync_runs where slot is null`;
      return slotless.filter(({ outcome }) => outcome === 'unchanged').length === 1;
    });
    expect(await fence()).toBeGreaterThan(6);
    expect((await runs()).length).toBeLessThanOrEqual(3);
  });
});

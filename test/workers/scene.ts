import type { Job } from 'bullmq';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { requestRun, type SyncJob } from '../../src/app/actions/source.ts';
import { readConfig } from '../../src/config/config.ts';
import { openStore, type Store } from '../../src/db/connection/connect.ts';
import { createOrganization } from '../../src/db/organizations.ts';
import { dirtyDocuments } from '../../src/db/versions.ts';
import { SAMPLE_HETZNER_TOKEN, SAMPLE_ORGANIZATION } from '../../src/dev/sample/upstream.ts';
import type { Decider } from '../../src/domain/operator.ts';
import type { RequestedRun } from '../../src/domain/run.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import type { Attempt } from '../../src/sync/runs/slots.ts';
import { startWorker, type WorkerProcess } from '../../workers/main.ts';
import { YEARLY } from '../support/day.ts';
import { type FaultyUpstream, faultyUpstream } from '../support/faulty-upstream.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { NO_RETRIES } from '../support/request-retries.ts';
import { until } from '../support/until.ts';

export const silent = pino({ level: 'silent' });

export let queueRedis: TestRedis;
export let cacheRedis: TestRedis;
export let upstream: FaultyUpstream;
let db: TestDatabase;
export let store: Store;
export let opened: AsyncDisposableStack;

/** Gives each test of the file two empty Redis servers, a database and the sample's upstreams. */
export function useServers(): void {
  beforeAll(async () => {
    [queueRedis, cacheRedis] = await Promise.all([startTestRedis(), startTestRedis()]);
  });
  afterAll(() => Promise.all([queueRedis[Symbol.asyncDispose](), cacheRedis[Symbol.asyncDispose]()]));

  beforeEach(async () => {
    opened = new AsyncDisposableStack();
    db = opened.use(await createDatabase());
    store = opened.use(openStore({ url: db.url, role: 'worker', connections: 2 }));
    upstream = opened.use(await faultyUpstream());
    await createOrganization(store.db, SAMPLE_ORGANIZATION.slug, SAMPLE_ORGANIZATION.name);
    for (const redis of [queueRedis, cacheRedis]) await flush(redis);
    return () => opened.disposeAsync();
  });
}

async function flush(redis: TestRedis): Promise<void> {
  const connection = openRedis(redis.url, 'publisher', () => {});
  await redisReady(connection, 5000);
  await connection.flushall();
  connection.disconnect();
}

export const config = (more: Record<string, string> = {}) =>
  readConfig({
    DATABASE_URL: db.url,
    QUEUE_REDIS_URL: queueRedis.url,
    CACHE_REDIS_URL: cacheRedis.url,
    CATALOGUE_RATES: 'EUR:1.1750',
    HETZNER_URL: upstream.urls.hetzner,
    HETZNER_TOKEN: SAMPLE_HETZNER_TOKEN,
    HETZNER_SCHEDULE: YEARLY,
    LINODE_URL: upstream.urls.linode,
    LINODE_SCHEDULE: YEARLY,
    CLUSTERS_URL: upstream.urls.clusters,
    CLUSTERS_SCHEDULE: YEARLY,
    // The test files themselves start the worker.
    EXPORT_EVERY: '0',
    ...more,
  });

export async function start(
  more: Record<string, string> = {},
  closeWithinMs?: number,
): Promise<WorkerProcess> {
  const options = {
    requestRetries: NO_RETRIES,
    checkEveryMs: 100,
    ...(closeWithinMs !== undefined && { closeWithinMs }),
  };
  return opened.use(await startWorker(config(more), silent, options));
}

/** Returns each ended run, oldest first. */
export async function runs(): Promise<{ source: string; outcome: string }[]> {
  return store.sql<{ source: string; outcome: string }[]>`
    select source_id as source, outcome from sync_runs where outcome <> 'running' order by id`;
}
export const succeeded = async (source: string) =>
  (await runs()).some((run) => run.source === source && run.outcome === 'changed');

export async function jobOf(worker: WorkerProcess, source: string): Promise<Job<SyncJob>> {
  const jobs = await worker.queues.sync.getJobs();
  return jobs.find(({ data }) => data.sourceId === source) ?? expect.unreachable(`no job of ${source}`);
}
export const stateOf = async (worker: WorkerProcess, source: string) =>
  (await jobOf(worker, source)).getState();
/** Returns the milliseconds until the latest slot's next attempt by Postgres; null once the slot is done. */
export async function dueIn(source: string): Promise<number | null> {
  const [row] = await store.sql<{ ms: number | null }[]>`
    select (extract(epoch from due_at - now()) * 1000)::float8 as ms from schedule_slots
    where schedule = ${source} order by slot desc limit 1`;
  return row?.ms ?? null;
}
/** Waits until every source has run, everything is published, and no job is active or due. */
export const settled = (worker: WorkerProcess) =>
  until(async () => {
    const ran = new Set(
      (await runs()).filter(({ outcome }) => outcome === 'changed').map(({ source }) => source),
    );
    const jobs = await worker.queues.sync.getJobCountByTypes('active', 'waiting', 'delayed');
    const due = await store.sql`
      select from schedule_slots where due_at <= now() and schedule in (select id from sources)`;
    return (
      ran.size === 3 && jobs === 0 && due.length === 0 && (await dirtyDocuments(store.db, 1)).length === 0
    );
  });
/** Waits until the source has failed and its slot has another attempt later. Returns the milliseconds until then. */
export const retryIsDue = (source: string) =>
  until(async () => {
    const ms = await dueIn(source);
    return ms !== null && ms > 0 && ms;
  });
/** Returns the current attempt of the latest slot. */
export async function attemptOf(source: string): Promise<Attempt> {
  const [row] = await store.sql<Attempt[]>`
    select schedule, to_char(slot at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as slot, attempt
    from schedule_slots where schedule = ${source} order by schedule_slots.slot desc limit 1`;
  return row ?? expect.unreachable(`no slot of ${source}`);
}
/** Ends the pause before the next attempt of the latest slot. */
export const retryNow = (source: string) =>
  store.sql`update schedule_slots set due_at = now() where schedule = ${source}`;
/** Requests a run as an operator does. */
export function requestNow(source: string): Promise<RequestedRun> {
  const found = config().sources.find(({ id }) => id === source);
  return requestRun(store.db, found ?? expect.unreachable(`no source ${source}`), ADA);
}
const ADA: Decider = { by: 'ada', how: 'cli', address: undefined, reason: undefined };

export const jobIsDelayed = (worker: WorkerProcess, source: string) =>
  until(async () => (await stateOf(worker, source)) === 'delayed');

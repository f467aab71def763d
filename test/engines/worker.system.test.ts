/** A worker and a reader with queues and cache on a Redis Cluster, and behind Sentinels. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { composeReader } from '../../src/app/reader.ts';
import { redisFindings } from '../../src/cli/doctor/redis.ts';
import { checkRedis } from '../../src/redis/check-server.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { requestAttempt } from '../../src/sync/runs/slots.ts';
import { until } from '../support/until.ts';
import { cacheRedis, config, opened, settled, silent, start, store, useServers } from '../workers/scene.ts';
import { startTestCluster, type TestCluster } from './redis-cluster.ts';
import { startTestSentinels, type TestSentinels } from './redis-sentinel.ts';

useServers();

interface Engine extends AsyncDisposable {
  readonly url: string;
  killQueues(): Promise<void>;
}

const QUEUE_KEY = '{fleetbook}:sync:meta';

async function clusterEngine(): Promise<Engine> {
  const cluster: TestCluster = await startTestCluster();
  const slot = Number(await cluster.nodes[0]?.client.cluster('KEYSLOT', QUEUE_KEY));
  return {
    url: cluster.url,
    killQueues: async () => (await cluster.masterOf(slot)).kill(),
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}

async function sentinelEngine(): Promise<Engine> {
  const sentinels: TestSentinels = await startTestSentinels();
  return {
    url: sentinels.url,
    async killQueues() {
      const master = await sentinels.master();
      await master.kill();
      await sentinels.untilReplaced(master);
    },
    [Symbol.asyncDispose]: () => sentinels[Symbol.asyncDispose](),
  };
}

describe.each([
  ['a Redis Cluster', clusterEngine],
  ['Redis behind Sentinels', sentinelEngine],
])('on %s', (_, startEngine) => {
  let engine: Engine;
  let servers: Record<string, string>;
  beforeEach(async () => {
    engine = await startEngine();
    servers = { QUEUE_REDIS_URL: engine.url, CACHE_REDIS_URL: engine.url };
  });
  afterEach(() => engine[Symbol.asyncDispose]());

  const runNow = (id: string) =>
    requestAttempt(store.db, { schedule: id, slot: new Date().toISOString() }, { cause: 'hand' });
  const runCount = async (id: string) => {
    const [row] = await store.sql<{ runs: number }[]>`
      select count(*)::integer as runs from sync_runs where source_id = ${id} and outcome <> 'running'`;
    return row?.runs ?? 0;
  };

  it('syncs, publications and reads work, also after the server of the queues dies', async () => {
    await using worker = await start(servers);
    await settled(worker);
    await using reader = await composeReader(config(servers), silent);
    const tierOf = async () => (await reader.catalogue.providers()).tier;
    await until(async () => (await tierOf()) === 'memory');

    const before = await runCount('linode');
    await engine.killQueues();
    // A producer fails at once while the queues are down. A slot that is not enqueued is found later.
    await until(() => runNow('linode').then(() => true), { everyMs: 200 });
    await until(async () => (await runCount('linode')) > before);
    const cold = opened.use(await composeReader(config(servers), silent));
    expect(await until(async () => (await cold.catalogue.providers()).tier !== 'postgres')).toBe(true);
  });
});

describe('a server that does not match its setting', () => {
  let cluster: TestCluster;
  beforeEach(async () => {
    cluster = await startTestCluster({ replicas: 0, args: ['--maxmemory', '64mb'] });
  });
  afterEach(() => cluster[Symbol.asyncDispose]());
  const singleUrl = () => cluster.url.replace('redis+cluster://', 'redis://').replace(/,.*/, '');
  const problemOf = async (url: string, mayEvict = true) => {
    const redis = openRedis(url, 'producer', () => {});
    try {
      await redisReady(redis, 5000);
      return await checkRedis(redis, 'CACHE_REDIS_URL', mayEvict);
    } finally {
      redis.disconnect();
    }
  };

  it('is reported with the remedy: a cluster node as one server', async () => {
    expect(await problemOf(singleUrl())).toEqual({
      what: 'it is a node of a Redis Cluster, which has only a part of the keys',
      remedy: 'write CACHE_REDIS_URL as redis+cluster://host:port,host:port',
    });
    expect(await problemOf(cluster.url)).toBeUndefined();
    await expect(start({ QUEUE_REDIS_URL: singleUrl() })).rejects.toThrow(
      /queues' Redis cannot be used: it is a node of a Redis Cluster.*QUEUE_REDIS_URL as redis\+cluster/,
    );
  });

  it('is reported with the remedy: one server as a cluster', async () => {
    const single = cacheRedis.url.replace('redis://', 'redis+cluster://');
    const redis = openRedis(single, 'producer', () => {}, 'CACHE_REDIS_URL');
    await expect(redisReady(redis, 2000)).rejects.toThrow(
      /is no node of a Redis Cluster: write CACHE_REDIS_URL as redis:\/\//,
    );
    redis.disconnect();
    const refused = openRedis(cluster.url.replace(':of-the-test@', ':wrong@'), 'producer', () => {});
    await expect(redisReady(refused, 2000)).rejects.toThrow(/refuses the user or the password/);
    refused.disconnect();
    expect(redisFindings('Redis', 'REDIS_URL', { cluster_enabled: '0' }, ['cache'], true)).toMatchObject([
      { verdict: 'problem', found: 'it is no node of a Redis Cluster' },
    ]);
  });

  it('is reported with the remedy: a cluster that is down after a master without a replica died', async () => {
    const [dead, ...alive] = cluster.nodes;
    await dead?.kill();
    for (const { client } of alive)
      await until(async () => String(await client.cluster('INFO')).includes('cluster_state:fail'));
    const redis = openRedis(cluster.url, 'producer', () => {}, 'QUEUE_REDIS_URL');
    const named =
      /belongs to a Redis Cluster that is down \(CLUSTERDOWN cluster_state is fail, 10\d+ of 16384 slots are served\): restart the masters/;
    // A busy machine may need several attempts.
    const failure = await until(async () => {
      const error = await redisReady(redis, 6000).catch(String);
      return error?.includes('CLUSTERDOWN') && error;
    });
    expect(failure).toMatch(named);
    redis.disconnect();
  });

  it('is reported with the remedy: one cluster master that would evict jobs', async () => {
    await cluster.nodes[2]?.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await problemOf(cluster.url)).toBeUndefined();
    expect(await problemOf(cluster.url, false)).toMatchObject({
      what: expect.stringContaining('allkeys-lru'),
    });
  });
});

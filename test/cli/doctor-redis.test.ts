import { mkdtempDisposable, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { redisFindings } from '../../src/cli/doctor/redis.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { changed, found, PROBLEM, redis, SECRET, useServers } from './doctor-scene.ts';

useServers();

describe('Redis', () => {
  async function command(server: TestRedis, ...words: [string, ...string[]]): Promise<unknown> {
    const connection = openRedis(server.url, 'publisher', () => {});
    await redisReady(connection, 5000);
    const [name, ...args] = words;
    try {
      return await connection.call(name, ...args);
    } finally {
      connection.disconnect();
    }
  }

  it('that evicts is a problem of the queues, but not of the cache', async () => {
    await using evicts = await startTestRedis(['--maxmemory', '4mb', '--maxmemory-policy', 'allkeys-lru']);
    const evicting = [
      {
        ...PROBLEM,
        found: 'its maxmemory-policy is allkeys-lru: it may lose jobs',
        mend: expect.stringContaining('noeviction'),
      },
    ];
    expect(await found('queues’ Redis', { QUEUE_REDIS_URL: evicts.url })).toMatchObject(evicting);
    expect(await found('cache’s Redis', { QUEUE_REDIS_URL: evicts.url })).toMatchObject([{ verdict: 'ok' }]);
    expect(await found('cache’s Redis', { CACHE_REDIS_URL: evicts.url })).toMatchObject([{ verdict: 'ok' }]);
    expect(await found('Redis', { REDIS_URL: evicts.url })).toMatchObject(evicting);
  });

  it.each([
    ['whose password is wrong', (url: URL) => (url.password = SECRET), /refuses the user or the password/],
    ['that does not exist', (url: URL) => (url.port = '1'), /refuses connections/],
  ])('%s is a problem', async (_, change, what) => {
    const wrong = { CACHE_REDIS_URL: changed(redis.url, change) };
    expect(await found('cache’s Redis', wrong)).toEqual([
      {
        check: 'cache’s Redis',
        ...PROBLEM,
        found: expect.stringMatching(what),
        mend: expect.stringContaining('CACHE_REDIS_URL'),
      },
    ]);
  });

  it('that is a replica is a problem', async () => {
    await using replica = await startTestRedis();
    await command(replica, 'CONFIG', 'SET', 'masterauth', redis.password);
    await command(replica, 'REPLICAOF', '127.0.0.1', String(redis.port));
    expect(await found('Redis', { REDIS_URL: replica.url })).toMatchObject([
      { ...PROBLEM, found: 'it is a replica, which takes no writes', mend: 'name its primary in REDIS_URL' },
    ]);
  });

  it('that cannot write to its disk is a problem', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-doctor-'));
    await using server = await startTestRedis(['--dir', folder.path]);
    await rm(folder.path, { recursive: true });
    await command(server, 'BGSAVE');
    await until(async () =>
      String(await command(server, 'INFO', 'persistence')).includes('rdb_last_bgsave_status:err'),
    );
    expect(await found('Redis', { REDIS_URL: server.url })).toMatchObject([
      {
        ...PROBLEM,
        found: expect.stringContaining('could not write to its disk'),
        mend: expect.stringContaining('free its disk'),
      },
    ]);
  });

  it('that is nearly full and evicts nothing is a warning', async () => {
    await using server = await startTestRedis();
    const [, used = '0'] = /used_memory:(\d+)/.exec(String(await command(server, 'INFO', 'memory'))) ?? [];
    await command(server, 'CONFIG', 'SET', 'maxmemory', String(Number(used)));
    expect(await found('Redis', { REDIS_URL: server.url })).toMatchObject([
      { verdict: 'ok' },
      {
        verdict: 'warning',
        found: expect.stringMatching(/^\d+ % of its memory is used/),
        mend: 'raise its maxmemory',
      },
    ]);
  });

  it('that is too old is a problem, also if a hosted one hides its policy', () => {
    const old = redisFindings('Redis', 'REDIS_URL', { redis_version: '6.2.16' }, ['queues']);
    expect(old).toMatchObject([
      {
        ...PROBLEM,
        found: 'it is Redis 6.2.16',
        mend: 'upgrade it to Redis 7.0 or newer, or name another server in REDIS_URL',
      },
    ]);
    const valkey = { redis_version: '7.2.4', valkey_version: '8.0.1' };
    expect(redisFindings('Redis', 'REDIS_URL', valkey, ['queues'])).toMatchObject([
      { verdict: 'ok', found: expect.stringMatching(/^Valkey 8\.0\.1 for queues;/) },
    ]);
  });
});

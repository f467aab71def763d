/** The chain of entries: what ends it, and which heartbeats the server accepts. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openRedis, type RedisClient, redisReady } from '../../../src/redis/redis.ts';
import { regionContent } from '../../../src/snapshot/document/build.ts';
import { encodeDocument } from '../../../src/snapshot/document/format.ts';
import { CacheKeys, type DocumentName } from '../../../src/snapshot/document/keys.ts';
import {
  announceFeed,
  announceLineage,
  announceRejected,
  sendHeartbeat,
  setIfNewer,
  withFence,
} from '../../../src/snapshot/publish/fence.ts';
import { startReplicatedRedis } from '../../redis/replicated-redis.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';

const at = (time: number) => ({ time, entry: undefined });

const NAME = { kind: 'region', regionId: 7 } as const satisfies DocumentName;

let redis: TestRedis;
let client: RedisClient;
let keys: CacheKeys;

beforeAll(async () => {
  redis = await startTestRedis();
  client = withFence(openRedis(redis.url, 'publisher', () => {}));
  await redisReady(client, 5000);
});
afterAll(async () => {
  client.disconnect();
  await redis[Symbol.asyncDispose]();
});
beforeEach(() => {
  keys = new CacheKeys(randomUUID());
});

async function set(version: number, by = client): Promise<boolean> {
  const head = { id: 7, version, name: 'r', code: 'r', provider: { id: 1, name: 'p' } };
  const value = await encodeDocument(regionContent(head, [], { sources: [] }));
  return setIfNewer(by, keys, NAME, version, value);
}

async function entries(of = client) {
  const found = await of.xrange(keys.stream, '-', '+');
  return found.map(([id, fields]) => ({
    id,
    mark: fields[1] ?? '',
    before: fields[3] ?? '',
    what: fields[5] ?? '',
    value: fields[7] ?? '',
  }));
}

/** Returns the places of entries that do not name the entry before them. */
async function breaks(of = client): Promise<number[]> {
  const all = await entries(of);
  return all.flatMap(({ before }, i) => (before === (all[i - 1]?.mark ?? '') ? [] : [i]));
}

const now = async () => {
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
};

describe('each entry names the entry before it', () => {
  it('for all kinds of entries, with marks that are used once', async () => {
    await set(1);
    await sendHeartbeat(client, keys, at(await now()));
    await announceFeed(client, keys, 17);
    await announceRejected(client, keys, NAME, 2);
    await announceLineage(client, keys, 'another');
    const all = await entries();
    expect(all.map(({ what, value }) => [what, value])).toEqual([
      ['region:7', '1'],
      ['heartbeat', ''],
      ['feed', '17'],
      ['region:7', '2'],
      ['lineage', 'another'],
    ]);
    expect(new Set(all.map(({ mark }) => mark)).size).toBe(5);
    expect(await breaks()).toEqual([]);
  });

  it('with writers on two connections at once', async () => {
    const other = withFence(openRedis(redis.url, 'publisher', () => {}));
    await redisReady(other, 5000);
    await Promise.all(Array.from({ length: 200 }, (_, i) => announceOrSet(i % 2 === 0 ? client : other, i)));
    other.disconnect();
    const all = await entries();
    expect(all.length).toBeGreaterThan(100);
    expect(await breaks()).toEqual([]);
  });

  it('and the first one of a new stream names none: after its deletion, or the eviction of all keys', async () => {
    await set(1);
    await client.del(keys.stream);
    await set(2);
    expect((await entries()).map(({ before }) => before)).toEqual(['']);
  });

  it('a trimmed stream begins with an entry whose predecessor is gone', async () => {
    for (let version = 1; version <= 5; version++) await set(version);
    const before = await entries();
    await client.xtrim(keys.stream, 'MAXLEN', 2);
    const [first] = await entries();
    expect(first?.before).toBe(before[2]?.mark);
    // Redis removes whole nodes of the stream.
    for (let i = 0; i < 10_500; i += 500)
      await Promise.all(Array.from({ length: 500 }, (_, j) => announceFeed(client, keys, i + j)));
    expect(await client.xlen(keys.stream)).toBeLessThan(10_300);
    expect((await entries())[0]?.before).not.toBe('');
  });

  it('a demoted master that was resynced has another chain than before', async () => {
    await using servers = await startReplicatedRedis();
    const at = async (url: string) => {
      const there = withFence(openRedis(url, 'publisher', () => {}));
      await redisReady(there, 5000);
      return there;
    };
    const master = await at(servers.url);
    await set(1, master);
    const replica = await at(servers.replicaUrl);
    await until(async () => (await entries(replica)).length === 1);
    // The replica lacks the end, and becomes the master.
    await replica.replicaof('NO', 'ONE');
    await set(2, master);
    await announceFeed(replica, keys, 1);
    const [lost] = (await entries(master)).slice(-1);
    const [kept] = (await entries(replica)).slice(-1);
    expect(lost?.before).toBe(kept?.before);
    expect(lost?.mark).not.toBe(kept?.mark);
    expect(await breaks(replica)).toEqual([]);
    for (const each of [master, replica]) each.disconnect();
  });

  it('a key of another type makes place for a new stream', async () => {
    await client.set(keys.stream, 'garbage');
    expect(await set(1)).toBe(true);
    await client.del(keys.stream);
    await client.hset(keys.stream, 'a', 'b');
    expect((await sendHeartbeat(client, keys, at(await now()))).isAccepted).toBe(true);
    expect((await entries()).map(({ what }) => what)).toEqual(['heartbeat']);
  });

  it('a stream without a further id makes place for a new one', async () => {
    const last = `${2n ** 64n - 1n}-${2n ** 64n - 1n}`;
    await client.xadd(keys.stream, last, 'mark', 'm', 'before', '', 'what', 'feed', 'value', '1');
    expect(await set(1)).toBe(true);
    await announceFeed(client, keys, 2);
    expect((await entries()).map(({ what }) => what)).toEqual(['region:7', 'feed']);
    expect(await breaks()).toEqual([]);
  });

  it('a stream of an old lineage is not created to announce the new one', async () => {
    await announceLineage(client, keys, 'another');
    expect(await client.exists(keys.stream)).toBe(0);
  });
});

async function announceOrSet(by: RedisClient, i: number): Promise<unknown> {
  return i % 3 === 0 ? announceFeed(by, keys, i) : set(i, by);
}

describe('a heartbeat', () => {
  it('is late without an earlier one, and more than a second after it', async () => {
    const { isAccepted, time } = await sendHeartbeat(client, keys, undefined);
    expect(isAccepted).toBe(false);
    expect((await sendHeartbeat(client, keys, at(time - 1100))).isAccepted).toBe(false);
    expect((await sendHeartbeat(client, keys, at(time + 60_000))).isAccepted).toBe(false);
    expect(await client.exists(keys.stream)).toBe(0);
    expect((await sendHeartbeat(client, keys, at(time))).isAccepted).toBe(true);
    expect((await entries()).map(({ what }) => what)).toEqual(['heartbeat']);
  });

  it('of another publisher is not repeated while it is young, and a document in between is no heartbeat', async () => {
    const { time } = await sendHeartbeat(client, keys, at(await now()));
    expect((await sendHeartbeat(client, keys, at(time))).isAccepted).toBe(true);
    expect(await entries()).toHaveLength(1);
    await set(1);
    expect((await sendHeartbeat(client, keys, at(time))).isAccepted).toBe(true);
    expect((await entries()).map(({ what }) => what)).toEqual(['heartbeat', 'region:7', 'heartbeat']);
    await sleep(350);
    await sendHeartbeat(client, keys, at(await now()));
    expect(await entries()).toHaveLength(4);
  });

  it('is appended although the last one is from the future: the clock of the server went back', async () => {
    const future = `${(await now()) + 3_600_000}-0`;
    await client.xadd(keys.stream, future, 'mark', 'm', 'before', '', 'what', 'heartbeat', 'value', '');
    expect((await sendHeartbeat(client, keys, at(await now()))).isAccepted).toBe(true);
    expect(await entries()).toHaveLength(2);
    expect(await breaks()).toEqual([]);
  });
});

describe('a full cache', () => {
  it('stores no document, deletes the older version, and passes heartbeats and announcements', async () => {
    await using full = await startTestRedis(['--maxmemory-policy', 'noeviction']);
    const there = withFence(openRedis(full.url, 'publisher', () => {}));
    await redisReady(there, 5000);
    await set(1, there);
    await there.config('SET', 'maxmemory', '1');
    await expect(set(2, there)).rejects.toThrow('OOM');
    await announceRejected(there, keys, NAME, 2);
    const { time } = await sendHeartbeat(there, keys, undefined);
    expect((await sendHeartbeat(there, keys, at(time))).isAccepted).toBe(true);
    expect(await there.exists(keys.document(NAME))).toBe(0);
    expect((await entries(there)).map(({ what, value }) => [what, value])).toEqual([
      ['region:7', '1'],
      ['region:7', '2'],
      ['heartbeat', ''],
    ]);
    expect(await breaks(there)).toEqual([]);
    there.disconnect();
  });
});

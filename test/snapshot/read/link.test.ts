import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { readLineage } from '../../../src/db/lineage.ts';
import { createToken, revokeToken } from '../../../src/db/tokens.ts';
import { hashToken } from '../../../src/domain/token.ts';
import { SHARED } from '../../../src/http/hot/response-cache.ts';
import { openRedis, redisReady } from '../../../src/redis/redis.ts';
import { encodeDocument } from '../../../src/snapshot/document/format.ts';
import { CacheKeys, type DocumentName } from '../../../src/snapshot/document/keys.ts';
import { loadContent } from '../../../src/snapshot/document/load.ts';
import { announceFeed, withFence } from '../../../src/snapshot/publish/fence.ts';
import { startHeartbeat } from '../../../src/snapshot/publish/publisher.ts';
import { CacheLink } from '../../../src/snapshot/read/link.ts';
import { faultProxy } from '../../support/fault-proxy.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { addOrganization, addSample, addSource, reprice, verify } from '../rows.ts';
import { cutStreams, loseEntry, openScene, sceneForEachTest, type TestReader } from '../scene.ts';

const scene = sceneForEachTest();
/** Milliseconds. The product allows more, for busy machines. */
const silentAfterMs = 1200;

const region = (): DocumentName => ({ kind: 'region', regionId: scene.sample.region });

/** Reads until the reader gives this version. @returns milliseconds it took */
async function seenAfter(reader: TestReader, version: number): Promise<number> {
  const start = performance.now();
  const read = async () => (await reader.documents.get(region())).document?.version;
  await until(async () => (await read()) === version, { everyMs: 2, timeoutMs: 8000 });
  return performance.now() - start;
}

const median = (figures: number[]) => figures.sort((a, b) => a - b)[Math.floor(figures.length / 2)];

async function change(price = '0.5'): Promise<number> {
  const version = await reprice(scene.sql, scene.sample.small, price);
  await scene.publisher.publishDirty();
  return version;
}

/** The fence's write without its entry. */
async function changeWithoutEntry(): Promise<number> {
  const version = await reprice(scene.sql, scene.sample.small, '0.7');
  const content = (await loadContent(scene.sql, region())) ?? expect.unreachable('no content');
  await scene.cache.set(scene.keys.document(region()), await encodeDocument(content));
  return version;
}

/** Returns true if the reader was linked at any time until the stream has more than so many new entries. */
async function isLinkedDuring(
  entries: number,
  { link }: TestReader,
  { cache, keys }: Pick<typeof scene, 'cache' | 'keys'> = scene,
): Promise<boolean> {
  const before = await cache.xlen(keys.stream);
  let isLinked = false;
  await until(async () => {
    isLinked ||= link.linked;
    return (await cache.xlen(keys.stream)) > before + entries;
  });
  return isLinked;
}

/** Returns how often a command was run, by the `INFO commandstats` of the server. */
const callsOf = (command: string, stats: string): number =>
  Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);

/** Opens another connection, which changes the server. */
async function adminOf(server: TestRedis) {
  const redis = openRedis(server.url, 'publisher', () => {});
  await redisReady(redis, 5000);
  return { redis, [Symbol.dispose]: () => redis.disconnect() };
}

/** Adds a user for a reader's stream, whose rights a test takes away. */
async function streamUser() {
  const { cache, redis } = scene;
  const name = `stream-${randomUUID()}`;
  const acl = (...args: string[]) => cache.call('ACL', ...args);
  await acl('SETUSER', name, 'on', `>${redis.password}`, '~*', '+@all');
  const url = new URL(redis.url);
  url.username = name;
  return {
    url: url.href,
    deny: (command: string) => acl('SETUSER', name, `-${command}`),
    allow: (command: string) => acl('SETUSER', name, `+${command}`),
    [Symbol.asyncDispose]: async () => void (await acl('DELUSER', name)),
  };
}

const beat = () => startHeartbeat(() => scene.publisher.heartbeat(), 100);

describe('a linked reader', () => {
  it('shows a publication at once', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    await reader.documents.get(region());
    const took: number[] = [];
    for (let i = 1; i <= 20; i++) took.push(await seenAfter(reader, await change(String(i / 100))));
    expect(median(took)).toBeLessThan(250);
    expect(Math.max(...took)).toBeLessThan(900);
    expect((await reader.documents.get(region())).tier).toBe('memory');
  });

  it('keeps its epoch while no entry is lost, for any number of publications', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ blockMs: 5 });
    const { epoch } = reader.link;
    for (let i = 1; i <= 30; i++) await change(String(i / 100));
    await reader.caughtUp();
    expect(reader.link.epoch).toBe(epoch);
    expect(reader.link.linked).toBe(true);
  });

  it('uses the connection for documents again and again, so that no server closes it as idle', async () => {
    await scene.publisher.publishDirty();
    using _heartbeat = startHeartbeat(() => scene.publisher.heartbeat(), 20);
    await scene.linkedReader({ silentAfterMs: 60_000, confirmBothEveryMs: 50 });
    await scene.cache.config('RESETSTAT');
    const uses = await until(async () => {
      const calls = callsOf('xrange', await scene.cache.info('commandstats'));
      return calls >= 5 && calls;
    });
    expect(uses).toBeGreaterThanOrEqual(5);
  });

  it('sends one command for each heartbeat while nothing changes', async () => {
    await scene.publisher.publishDirty();
    using _heartbeat = startHeartbeat(() => scene.publisher.heartbeat());
    const reader = await scene.linkedReader({ silentAfterMs: 60_000, blockMs: 1900 });
    const entries = await scene.cache.xlen(scene.keys.stream);
    await scene.cache.config('RESETSTAT');
    await until(async () => (await scene.cache.xlen(scene.keys.stream)) >= entries + 6);
    const stats = await scene.cache.info('commandstats');
    const heartbeats = (await scene.cache.xlen(scene.keys.stream)) - entries;
    expect(reader.link.state).toBe('linked');
    const commands = ['xread', 'hgetall', 'get', 'multi', 'exec', 'xrange', 'mget', 'getrange'];
    const calls = commands.reduce((sum, command) => sum + callsOf(command, stats), 0);
    expect(calls).toBeLessThanOrEqual(heartbeats + 2);
    expect(callsOf('xread', stats)).toBeGreaterThan(0);
  });
});

describe('an epoch', () => {
  it('goes on after a lost connection if nothing was appended meanwhile', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    await reader.documents.get(region());
    const { epoch } = reader.link;
    expect(await cutStreams(scene)).toBeGreaterThan(0);
    await until(() => !reader.link.linked);
    await until(() => reader.link.linked);
    expect(reader.link.epoch).toBe(epoch);
    expect((await reader.documents.get(region())).tier).toBe('memory');
  });

  it('goes on after a lost connection if the stream still has all entries', async () => {
    await using proxy = await faultProxy(scene.redis.url);
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ streamUrl: proxy.url });
    await reader.documents.get(region());
    const { epoch } = reader.link;
    await proxy.refuse();
    const version = await change();
    await proxy.heal();
    expect(await seenAfter(reader, version)).toBeLessThan(5000);
    await until(() => reader.link.linked);
    expect(reader.link.epoch).toBe(epoch);
    await reader.caughtUp();
    expect(reader.documents.getFresh(region())?.version).toBe(version);
  });

  it('goes on after a silence of the workers alone', async () => {
    await scene.publisher.publishDirty();
    const first = beat();
    const reader = await scene.linkedReader({ silentAfterMs });
    await reader.documents.get(region());
    const { epoch } = reader.link;
    first[Symbol.dispose]();
    await until(() => !reader.link.linked);
    const version = await reprice(scene.sql, scene.sample.small, '0.75');
    await seenAfter(reader, version);
    using _second = beat();
    await until(() => reader.link.linked);
    expect(reader.link.epoch).toBe(epoch);
    expect((await reader.documents.get(region())).document?.version).toBe(version);
  });

  it.each([
    ['a lost entry', () => loseEntry(scene)],
    ['the deletion of the stream', () => scene.cache.del(scene.keys.stream)],
    ['another type of the key', () => scene.cache.set(scene.keys.stream, 'garbage')],
  ])('ends after %s, without another sign, and all of memory is compared', async (_, lose) => {
    await scene.publisher.publishDirty();
    using _heartbeat = beat();
    const reader = await scene.linkedReader({ silentAfterMs });
    await reader.documents.get(region());
    const { epoch } = reader.link;
    const version = await changeWithoutEntry();
    await lose();
    expect(await seenAfter(reader, version)).toBeLessThan(5000);
    await until(() => reader.link.linked);
    expect(reader.link.epoch).toBeGreaterThan(epoch);
  });

  it('that has a gap is no longer current from the gap on, and ends once the end of the stream is known', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    const { documents, link } = reader;
    await documents.get(region());
    const { epoch } = link;
    const states: [isLinked: boolean, epoch: number][] = [];
    const onInvalidateAll = () => void states.push([link.linked, link.epoch]);
    documents.addInvalidationListener({ onInvalidate: () => {}, onInvalidateAll, onFreshness: () => {} });
    await loseEntry(scene);
    await until(() => link.epoch > epoch && link.linked);
    expect(states).toEqual([
      [false, epoch],
      [false, epoch + 1],
    ]);
  });

  it('ends if the stream was trimmed behind a reader', async () => {
    await using proxy = await faultProxy(scene.redis.url);
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ streamUrl: proxy.url });
    await reader.documents.get(region());
    const { epoch } = reader.link;
    proxy.hang();
    const version = await change();
    for (let i = 0; i < 10; i++) await announceFeed(scene.cache, scene.keys, i);
    await scene.cache.xtrim(scene.keys.stream, 'MAXLEN', 2);
    await proxy.heal();
    expect(await seenAfter(reader, version)).toBeLessThan(5000);
    await until(() => reader.link.linked);
    expect(reader.link.epoch).toBeGreaterThan(epoch);
  });

  it('ends if another server has the address whose clock is an hour behind', async () => {
    await scene.publisher.publishDirty();
    const ahead = `${Date.now() + 3_600_000}-0`;
    const [last] = await scene.cache.xrevrange(scene.keys.stream, '+', '-', 'COUNT', 1);
    const before = last?.[1][1] ?? expect.unreachable();
    await scene.cache.xadd(
      scene.keys.stream,
      ahead,
      'mark',
      'of the first',
      'before',
      before,
      'what',
      'feed',
      'value',
      '1',
    );
    const reader = await scene.linkedReader();
    await reader.documents.get(region());
    const { epoch } = reader.link;
    await scene.cache.del(scene.keys.stream);
    const version = await change();
    expect(await seenAfter(reader, version)).toBeLessThan(5000);
    expect(reader.link.epoch).toBeGreaterThan(epoch);
    await until(() => reader.link.linked);
    expect(await seenAfter(reader, await change('0.6'))).toBeLessThan(900);
  });
});

describe('no reader is linked', () => {
  it('by heartbeats that arrive late', async () => {
    await using proxy = await faultProxy(scene.redis.url);
    await scene.publisher.publishDirty();
    using _heartbeat = beat();
    const reader = await scene.linkedReader({ silentAfterMs, streamUrl: proxy.url });
    proxy.delay(silentAfterMs / 2);
    await until(() => !reader.link.linked);
    expect(await isLinkedDuring(10, reader)).toBe(false);
    await proxy.heal();
    await until(() => reader.link.linked);
  });

  it('by heartbeats that it missed and reads later', async () => {
    await using proxy = await faultProxy(scene.redis.url);
    await scene.publisher.publishDirty();
    const first = beat();
    const reader = await scene.linkedReader({ silentAfterMs, streamUrl: proxy.url });
    const { epoch } = reader.link;
    await proxy.refuse();
    const entries = await scene.cache.xlen(scene.keys.stream);
    await until(async () => (await scene.cache.xlen(scene.keys.stream)) > entries + 3);
    first[Symbol.dispose]();
    await sleep(silentAfterMs);
    await proxy.heal();
    await until(() => reader.link.state === 'following');
    await reader.caughtUp();
    expect([reader.link.linked, reader.link.epoch]).toEqual([false, epoch]);
    using _second = beat();
    await until(() => reader.link.linked);
  });

  it('by a heartbeat from before a gap, which its connection for documents finds later', async () => {
    await using proxy = await faultProxy(scene.redis.url);
    await scene.publisher.publishDirty();
    const urls = { redisUrl: proxy.url, streamUrl: scene.redis.url };
    const reader = scene.reader({ silentAfterMs: 60_000, ...urls });
    await reader.catalogue.providers();
    await until(() => reader.link.state === 'following' && reader.link.commands.isReady);
    const { epoch } = reader.link;
    proxy.hang();
    await scene.publisher.heartbeat();
    await reader.caughtUp();
    await loseEntry(scene);
    await until(() => reader.link.epoch > epoch && reader.link.state === 'following');
    await proxy.heal();
    // Its connection answers in order, so the earlier answer has arrived.
    await until(() => reader.link.commands.run((redis) => redis.ping()));
    expect(reader.link.linked).toBe(false);
  });

  it('while its documents come from another server than its entries, as after a failover', async () => {
    await using former = await startTestRedis();
    await scene.publisher.publishDirty();
    using _heartbeat = beat();
    const reader = scene.reader({ silentAfterMs, redisUrl: former.url, streamUrl: scene.redis.url });
    await reader.catalogue.providers();
    await until(() => reader.link.state === 'following');
    expect(await isLinkedDuring(3, reader)).toBe(false);
  });

  it('by an entry of the same time that another worker appended to the former master', async () => {
    await using former = await startTestRedis();
    await using proxy = await faultProxy(former.url);
    using admin = await adminOf(former);
    await scene.publisher.publishDirty();
    const urls = { redisUrl: proxy.url, streamUrl: scene.redis.url };
    const reader = scene.reader({ silentAfterMs: 60_000, ...urls });
    await reader.catalogue.providers();
    await until(() => reader.link.state === 'following' && reader.link.commands.isReady);
    proxy.hang();
    await scene.publisher.heartbeat();
    await reader.caughtUp();
    // The reader may have written a document back, with a later entry.
    await admin.redis.del(scene.keys.stream);
    for (const [id, [, , ...rest]] of await scene.cache.xrange(scene.keys.stream, '-', '+'))
      await admin.redis.xadd(scene.keys.stream, id, 'mark', randomUUID(), ...rest);
    await proxy.heal();
    await until(() => reader.link.commands.run((redis) => redis.ping()));
    expect(reader.link.linked).toBe(false);
  });

  it('after a failover of its entries, while its documents still come from the former master', async () => {
    await using next = await startTestRedis();
    await using proxy = await faultProxy(scene.redis.url);
    await scene.publisher.publishDirty();
    const former = beat();
    const reader = await scene.linkedReader({ silentAfterMs, streamUrl: proxy.url });
    await using own = await openScene(next, scene.db);
    await own.publisher.compare();
    await own.cache.config('SET', 'requirepass', scene.redis.password);
    using _heartbeat = startHeartbeat(() => own.publisher.heartbeat(), 100);
    former[Symbol.dispose]();
    const { epoch } = reader.link;
    proxy.lead(next.url);
    proxy.cut();
    await until(() => reader.link.epoch > epoch);
    await until(() => reader.link.state === 'following');
    expect(await isLinkedDuring(3, reader, own)).toBe(false);
  });

  it('once its connection for documents leads to a former master', async () => {
    await using former = await startTestRedis();
    await using proxy = await faultProxy(scene.redis.url);
    using admin = await adminOf(former);
    await admin.redis.config('SET', 'requirepass', scene.redis.password);
    await scene.publisher.publishDirty();
    using _heartbeat = beat();
    const reader = await scene.linkedReader({
      silentAfterMs,
      redisUrl: proxy.url,
      streamUrl: scene.redis.url,
    });
    proxy.lead(former.url);
    proxy.cut();
    await until(() => !reader.link.linked, { timeoutMs: 5000 });
    await until(() => reader.link.commands.isReady);
    expect(await isLinkedDuring(5, reader)).toBe(false);
  });

  it('once its documents come from a server that no longer replicates, over the same connection', async () => {
    await using replica = await startTestRedis();
    using admin = await adminOf(replica);
    await admin.redis.config('SET', 'masterauth', scene.redis.password);
    await admin.redis.call('REPLICAOF', '127.0.0.1', scene.redis.port);
    await until(async () => (await admin.redis.info('replication')).includes('master_link_status:up'));
    await scene.publisher.publishDirty();
    using _heartbeat = beat();
    const reader = await scene.linkedReader({
      silentAfterMs: 60_000,
      confirmBothEveryMs: 50,
      redisUrl: replica.url,
      streamUrl: scene.redis.url,
    });
    await admin.redis.call('REPLICAOF', 'NO', 'ONE');
    const { epoch } = reader.link;
    await until(() => !reader.link.linked && reader.link.epoch > epoch, { timeoutMs: 5000 });
    expect(await isLinkedDuring(3, reader)).toBe(false);
  });

  it('states the times of all sources after its documents came from another server for a while', async () => {
    await using replica = await startTestRedis();
    using admin = await adminOf(replica);
    const replicates = async (...of: string[]) => {
      await admin.redis.call('REPLICAOF', ...of);
      await until(async () => (await admin.redis.info('replication')).includes('master_link_status:up'));
    };
    await scene.cache.config('SET', 'repl-diskless-sync-delay', 0);
    await admin.redis.config('SET', 'masterauth', scene.redis.password);
    await replicates('127.0.0.1', String(scene.redis.port));
    await addSource(scene.sql, 'second', 'clusters');
    await verify(scene.sql, 'second', '2026-01-01T06:00:00.000Z');
    const without = await addOrganization(scene.sql, 'without clusters');
    await scene.publisher.publishDirty();
    using _heartbeat = beat();
    const reader = await scene.linkedReader({
      silentAfterMs: 60_000,
      confirmBothEveryMs: 50,
      redisUrl: replica.url,
      streamUrl: scene.redis.url,
    });
    const { epoch } = reader.link;
    await admin.redis.call('REPLICAOF', 'NO', 'ONE');
    await until(() => reader.link.epoch > epoch);
    await replicates('127.0.0.1', String(scene.redis.port));
    await until(() => reader.link.linked);
    await verify(scene.sql, 'second', '2026-01-02T00:00:00.000Z');
    await scene.publisher.publishDirty();
    await reader.caughtUp();
    // That of the source that was read longest ago.
    expect((await reader.clusters.clusters(without)).asOf).toBe('2026-01-01T00:00:00.000Z');
    expect((await reader.catalogue.machine(scene.sample.small))?.asOf).toBe('2026-01-02T03:04:05.678Z');
  });

  it('in a process that was frozen, until it has read its entries', async () => {
    await scene.publisher.publishDirty();
    using _heartbeat = beat();
    const reader = await scene.linkedReader({ silentAfterMs });
    const { documents, link, responses, tokens } = reader;
    const { token, id } = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes: ['machines:read'],
    });
    await scene.publisher.publishDirty();
    expect(await tokens.verify(token)).toBeDefined();
    await documents.get(region());
    const answer = await reader.catalogue.machine(scene.sample.small);
    const response = { target: '/v1/machines/1', owner: SHARED, route: '/v1/machines/:id' } as const;
    responses.set({ ...response, scope: 'machines:read' }, answer ?? expect.unreachable());
    expect(responses.get(response.target, 1)).toBeDefined();
    await revokeToken(scene.store.db, id);
    freeze(2500);
    expect(link.linked).toBe(false);
    expect(documents.getFresh(region())).toBeUndefined();
    expect(responses.get(response.target, 1)).toBeUndefined();
    expect(documents.getFresh({ kind: 'token', hash: hashToken(token) })).toBeUndefined();
    await until(async () => (await tokens.verify(token)) === undefined);
    await until(() => link.linked);
  });
});

/** Blocks this process, its timers and its connections, as SIGSTOP does. The monotonic clock runs on. */
const freeze = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

describe('a reader is away', () => {
  it('while its connection for documents is closed, however well it reads the stream', async () => {
    await using proxy = await faultProxy(scene.redis.url);
    await scene.publisher.publishDirty();
    using _heartbeat = beat();
    const urls = { redisUrl: proxy.url, streamUrl: scene.redis.url };
    const reader = await scene.linkedReader({ silentAfterMs, ...urls });
    await proxy.refuse();
    await until(() => !reader.link.linked);
    await reader.caughtUp();
    expect(reader.link.state).toBe('away');
    await proxy.heal();
    await until(() => reader.link.linked);
  });

  it('while it may not read the stream, and continues its epoch once it may', async () => {
    await using user = await streamUser();
    await scene.publisher.publishDirty();
    using _heartbeat = beat();
    const reader = await scene.linkedReader({ silentAfterMs, streamUrl: user.url });
    const { epoch } = reader.link;
    await user.deny('xread');
    await until(() => reader.link.state !== 'linked');
    const entries = await scene.cache.xlen(scene.keys.stream);
    const states = new Set<string>();
    await until(async () => {
      states.add(reader.link.state);
      return (await scene.cache.xlen(scene.keys.stream)) > entries + 5;
    });
    expect([...states]).toEqual(['away']);
    await user.allow('xread');
    await until(() => reader.link.linked);
    expect(reader.link.epoch).toBe(epoch);
  });
});

describe('entries', () => {
  it('that make no sense change nothing', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    const { epoch } = reader.link;
    await reader.caughtUp();
    const [last] = await scene.cache.xrevrange(scene.keys.stream, '+', '-', 'COUNT', 1);
    const before = last?.[1][1] ?? expect.unreachable();
    const { stream } = scene.keys;
    const add = (mark: string, after: string, what: string, value: string) =>
      scene.cache.xadd(stream, '*', 'mark', mark, 'before', after, 'what', what, 'value', value);
    await add('1', before, 'stamps', '{');
    await add('2', '1', 'stamps', '[["hetzner"], 5]');
    await add('3', '2', `region:${scene.sample.region}`, 'NaN');
    await add('4', '3', '', '');
    await reader.caughtUp();
    expect([reader.link.linked, reader.link.epoch]).toEqual([true, epoch]);
    expect(reader.documents.getFresh(region())?.version ?? 0).toBe(0);
  });

  it('about a version that does not exist do not occupy a reader forever', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    for (let i = 0; i < 5; i++) {
      const reading = reader.documents.get(region());
      await scene.cache.fleetbookAnnounce(
        scene.keys.stream,
        `region:${scene.sample.region}`,
        '999',
        `mark ${i}`,
      );
      expect((await reading).document).toBeDefined();
    }
    expect((await reader.catalogue.machines(scene.sample.provider, scene.sample.region)).tier).toBeDefined();
  });

  it('on a connection that is open but silent are missed for two seconds at most, and it is replaced', async () => {
    await using proxy = await faultProxy(scene.redis.url);
    await scene.publisher.publishDirty();
    using _heartbeat = beat();
    const reader = await scene.linkedReader({ silentAfterMs, streamUrl: proxy.url });
    await reader.documents.get(region());
    proxy.abandon();
    expect(await seenAfter(reader, await change())).toBeLessThan(5000);
    await until(() => reader.link.linked, { timeoutMs: 8000 });
    expect(await seenAfter(reader, await change('0.6'))).toBeLessThan(900);
  });
});

describe('the cache', () => {
  it('that was flushed costs one comparison with Postgres per document, and no failed answer', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ blockMs: 10 });
    const before = await reader.catalogue.machines(scene.sample.provider, scene.sample.region);
    const { epoch } = reader.link;
    await scene.cache.flushall();
    await until(() => reader.link.epoch > epoch);
    const after = await reader.catalogue.machines(scene.sample.provider, scene.sample.region);
    expect(after.body).toEqual(before.body);
    expect(await seenAfter(reader, await change())).toBeLessThan(900);
  });

  it('that rejects writes because its memory is full is still read', async () => {
    await using full = await startTestRedis(['--maxmemory-policy', 'noeviction']);
    await using own = await openScene(full);
    const sample = await addSample(own.sql);
    await own.publisher.publishDirty();
    const unpublished = [];
    for (let i = 0; i < 6; i++) unpublished.push(await addOrganization(own.sql, `org-${i}`));
    await own.cache.config('SET', 'maxmemory', '1');
    const reader = own.reader();
    await reader.catalogue.providers();
    await until(() => reader.link.linked);
    const answers = await Promise.all(unpublished.map((id) => reader.clusters.clusters(id)));
    expect(answers.map(({ tier }) => tier)).toEqual(Array(6).fill('postgres'));
    // Answered after the rejections of all the write-backs.
    expect(await reader.link.commands.run((cache) => cache.ping())).toBe('PONG');
    expect((await reader.clusters.clusters(sample.b)).tier).toBe('redis');
  });

  it('that rejected a version does not give the older one to a reader without the document', async () => {
    await using full = await startTestRedis(['--maxmemory-policy', 'noeviction']);
    await using own = await openScene(full);
    const sample = await addSample(own.sql);
    await own.publisher.publishDirty();
    const reader = own.reader();
    await reader.catalogue.providers();
    await until(() => reader.link.linked);
    await own.cache.config('SET', 'maxmemory', '1');
    const version = await reprice(own.sql, sample.small, '0.75');
    await expect(own.publisher.publishDirty()).rejects.toThrow('OOM');
    await reader.caughtUp();
    const { document, tier } = await reader.documents.get({ kind: 'region', regionId: sample.region });
    expect([document?.version, tier]).toEqual([version, 'postgres']);
  });
});

describe('another lineage', () => {
  it('empties memory once the database has it', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ blockMs: 20 });
    const old = await reader.documents.get(region());
    await scene.sql`update regions set version = 1, published_version = 0, name = 'another'`;
    await scene.sql`update lineage set id = gen_random_uuid()`;
    await scene.publisher.publishDirty();
    await until(async () => (await reader.documents.get(region())).document?.version === 1);
    const now = await reader.documents.get(region());
    expect(now.document?.body.hash).not.toBe(old.document?.body.hash);
    await until(() => reader.link.linked);
    await reprice(scene.sql, scene.sample.small, '0.9');
    await scene.publisher.publishDirty();
    expect(await seenAfter(reader, 2)).toBeLessThan(5000);
  });

  it('is announced in the old stream, which the reader leaves', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    const old = scene.keys;
    await scene.sql`update lineage set id = gen_random_uuid()`;
    await scene.publisher.compare();
    const lineage = await readLineage(scene.sql);
    await until(() => reader.link.keys?.lineage === lineage);
    await until(() => reader.link.linked);
    await reader.documents.get(region());
    const { epoch } = reader.link;
    await scene.cache.fleetbookAnnounce(old.stream, `region:${scene.sample.region}`, '999', 'a mark');
    expect(await seenAfter(reader, await change())).toBeLessThan(900);
    expect([reader.link.linked, reader.link.epoch]).toEqual([true, epoch]);
  });

  it('is not linked by a heartbeat of the old one', async () => {
    const { cache, redis } = scene;
    const [old, next] = [new CacheKeys(randomUUID()), new CacheKeys(randomUUID())];
    await using link = new CacheLink({
      commands: withFence(openRedis(redis.url, 'reader', () => {})),
      stream: openRedis(redis.url, 'stream', () => {}),
      logger: pino({ level: 'silent' }),
    });
    const ignored = { onPublished: () => {}, onGap: () => {}, onUnlinked: () => {}, onStamps: () => {} };
    let isChanged = false;
    link.follow(old, {
      ...ignored,
      onLineage() {
        link.follow(next, { ...ignored, onLineage: () => {} });
        isChanged = true;
      },
    });
    await cache.xadd(old.stream, '*', 'mark', '1', 'before', '', 'what', 'feed', 'value', '1');
    await until(() => link.state === 'following');
    await sleep(50);
    const entry = (mark: string, before: string, what: string) =>
      ['mark', mark, 'before', before, 'what', what, 'value', next.lineage] as const;
    await cache
      .multi()
      .xadd(old.stream, '*', ...entry('2', '1', 'heartbeat'))
      .xadd(old.stream, '*', ...entry('3', '2', 'lineage'))
      .exec();
    let isLinked = false;
    await until(
      () => {
        isLinked ||= link.linked;
        return isLinked || (isChanged && link.state === 'following');
      },
      { everyMs: 0 },
    );
    expect([isLinked, link.keys?.lineage]).toEqual([false, next.lineage]);
  });

  it('that only a shared cache names is not followed', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ blockMs: 10 });
    await reader.documents.get(region());
    const { epoch } = reader.link;
    await scene.cache.set('fb:lineage', '00000000-0000-0000-0000-000000000000');
    for (let i = 0; i < 5; i++) await reader.caughtUp();
    expect(reader.documents.getFresh(region())).toBeDefined();
    expect([reader.link.linked, reader.link.epoch]).toEqual([true, epoch]);
    expect(await readLineage(scene.sql)).toBe(scene.keys.lineage);
  });
});

it('a closed reader logs nothing more', async () => {
  const reader = await scene.linkedReader();
  await reader[Symbol.asyncDispose]();
  expect([reader.link.linked, reader.link.state]).toEqual([false, 'away']);
});

/** Readers keep their connection to the cache while the publishers lose theirs. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { steadyNow } from '../../src/domain/clock.ts';
import { hashToken } from '../../src/domain/token.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { Unavailable } from '../../src/snapshot/document/answer.ts';
import { withFence } from '../../src/snapshot/publish/fence.ts';
import { Publisher, startHeartbeat } from '../../src/snapshot/publish/publisher.ts';
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { addSample, reprice } from './rows.ts';
import {
  countingSql,
  openScene,
  type ReaderOptions,
  sceneForEachTest,
  TestClock,
  type TestReader,
} from './scene.ts';

const scene = sceneForEachTest();
/** Milliseconds. The product allows more, for busy machines. */
const silentAfterMs = 1200;
const HEARTBEAT_MS = 100;
/** Long enough for the publisher to publish before its next heartbeat, see `Publisher.heartbeat`. */
const HEARTBEAT_GAP_MS = 1500;

let way: FaultProxy;
let publisher: Publisher;
let token: string;
let tokenId: number;

beforeEach(async () => {
  const opened = new AsyncDisposableStack();
  way = opened.use(await faultProxy(scene.redis.url));
  const connection = withFence(openRedis(way.url, 'publisher', () => {}));
  opened.defer(() => connection.disconnect());
  await redisReady(connection, 5000);
  publisher = new Publisher(scene.store.db, connection);
  ({ token, id: tokenId } = await createToken(scene.store.db, {
    organizationId: scene.sample.a,
    scopes: ['machines:read'],
  }));
  await publisher.publishDirty();
  opened.use(startHeartbeat(() => publisher.heartbeat(), HEARTBEAT_MS));
  return () => opened.disposeAsync();
});

const reader = (options: Partial<ReaderOptions> = {}) => scene.reader({ silentAfterMs, ...options });

async function linkedReader(options?: Partial<ReaderOptions>): Promise<TestReader> {
  const linked = reader(options);
  await until(() => linked.link.commands.isReady);
  await linked.catalogue.providers();
  await until(() => linked.link.linked);
  return linked;
}

/** Neither the cache nor PostgreSQL may answer for the token any more. */
async function isRefused({ tokens }: TestReader): Promise<boolean> {
  try {
    await tokens.verify(token);
    return false;
  } catch (error) {
    return error instanceof Unavailable;
  }
}

/** The readers no longer receive the publishers' heartbeats. */
async function cutOff(...readers: TestReader[]): Promise<void> {
  await way.refuse();
  await until(() => readers.every(({ link }) => !link.linked));
}

const priceAt = async ({ catalogue }: TestReader) =>
  (JSON.parse(String((await catalogue.machine(scene.sample.small))?.body.identity)) as { price: number })
    .price;

describe('a reader whose publishers lost the cache', () => {
  it('loses its link, and is linked again when they are back', async () => {
    const cut = await linkedReader();
    await cutOff(cut);
    await way.heal();
    await expect(until(() => cut.link.linked)).resolves.toBe(true);
  });

  it('is linked again only once the cache has the commits of the gap', async () => {
    const cut = await linkedReader();
    expect(await priceAt(cut)).not.toBe(0.75);
    way.hang();
    const since = performance.now();
    await until(() => !cut.link.linked);
    await reprice(scene.sql, scene.sample.small, '0.75');
    await until(() => performance.now() - since > HEARTBEAT_GAP_MS);
    // A heartbeat that was already sent arrives first.
    await way.heal();
    await until(() => cut.link.linked);
    expect(await priceAt(cut)).toBe(0.75);
  });

  it('reads new prices from PostgreSQL', async () => {
    const cut = await linkedReader();
    const before = await priceAt(cut);
    await cutOff(cut);
    await reprice(scene.sql, scene.sample.small, '0.75');
    await until(async () => (await priceAt(cut)) === 0.75);
    expect(before).not.toBe(0.75);
  });

  it('rejects a revoked token that the cache still accepts', async () => {
    const cut = await linkedReader();
    expect(await cut.tokens.verify(token)).toBeDefined();
    await cutOff(cut);
    await revokeToken(scene.store.db, tokenId);
    await until(async () => (await cut.tokens.verify(token)) === undefined);
  });

  it('does not trust the cache for a token that is new to it', async () => {
    const cut = await linkedReader();
    await cutOff(cut);
    await revokeToken(scene.store.db, tokenId);
    expect(await cut.tokens.verify(token)).toBeUndefined();
    // A reader that starts now has received no heartbeat yet.
    expect(await reader().tokens.verify(token)).toBeUndefined();
  });

  it('counts what the cache said from the last heartbeat, not from the read', async () => {
    const cut = await linkedReader({ silentAfterMs: 3000 });
    const region = { kind: 'region', regionId: scene.sample.region } as const;
    await way.refuse();
    await revokeToken(scene.store.db, tokenId);
    const version = await reprice(scene.sql, scene.sample.small, '0.75');
    const { lastHeartbeatAt } = cut.link;
    await until(() => steadyNow() - lastHeartbeatAt > 2100, { everyMs: 5 });
    // The workers have lost the cache, and the reader cannot know it yet.
    expect(await cut.tokens.verify(token)).toBeDefined();
    expect((await cut.documents.get(region)).document?.version).toBeLessThan(version);
    await until(() => !cut.link.linked, { everyMs: 5 });
    expect(cut.documents.getFresh(region)).toBeUndefined();
    expect(cut.documents.getFresh({ kind: 'token', hash: hashToken(token) })).toBeUndefined();
    await until(async () => (await cut.documents.get(region)).document?.version === version);
    await until(async () => (await cut.tokens.verify(token)) === undefined);
  });

  it('sends one query to PostgreSQL for all used tokens, for any number of requests', async () => {
    await using counted = countingSql(scene.db.url);
    const cut = await linkedReader({ sql: counted.sql });
    const others = await Promise.all(
      Array.from({ length: 20 }, () =>
        createToken(scene.store.db, { organizationId: scene.sample.a, scopes: ['machines:read'] }),
      ),
    );
    await cutOff(cut);
    const all = [token, ...others.map((each) => each.token)];
    for (const each of all) expect(await cut.tokens.verify(each)).toBeDefined();
    await cut.documents.checkPostgres();
    counted.statements.length = 0;
    for (let i = 0; i < 10; i++) for (const each of all) expect(await cut.tokens.verify(each)).toBeDefined();
    await cut.documents.checkPostgres();
    expect(counted.statements.filter((text) => text.includes('authenticate_token'))).toHaveLength(1);
  });
});

describe('without PostgreSQL as well', () => {
  // No process listens there.
  const databaseUrl = 'postgres://unknown@127.0.0.1:1/none';

  it('the cache answers, with the time of the last heartbeat, and tokens are valid until their limit', async () => {
    const alone = await linkedReader({ databaseUrl });
    const strict = await linkedReader({ databaseUrl, tokenStaleLimitMs: silentAfterMs });
    await cutOff(alone, strict);
    const region = { kind: 'region', regionId: scene.sample.region } as const;
    // A busy cache may be late, so the test repeats the read.
    const found = await until(() => alone.documents.get(region));
    expect(found.tier).toBe('redis');
    expect(found.knownAt).toBeLessThan(Date.now() - silentAfterMs);
    await until(() => alone.tokens.verify(token));
    expect(await isRefused(strict)).toBe(true);
  });

  it('a cache that answers late still answers: there is nothing else to wait for', async () => {
    await using late = await faultProxy(scene.redis.url);
    const alone = await linkedReader({ databaseUrl, redisUrl: late.url, streamUrl: scene.redis.url });
    await cutOff(alone);
    late.hang();
    const reading = alone.documents.get({ kind: 'region', regionId: scene.sample.region });
    const missed = await alone.link.commands.run((redis) => redis.ping());
    await late.heal();
    expect(missed).toBeUndefined();
    expect((await reading).tier).toBe('redis');
  });

  it('the cache answers if the publishers come back during the read from PostgreSQL', async () => {
    await using hanging = await faultProxy(scene.db.url);
    const cut = await linkedReader({ databaseUrl: hanging.url });
    await cutOff(cut);
    hanging.hang();
    const reading = cut.documents.get({ kind: 'region', regionId: scene.sample.region });
    await way.heal();
    await until(() => cut.link.linked);
    await hanging.refuse();
    expect((await reading).tier).toBe('redis');
  });

  it('a reader that starts now trusts the cache after its first heartbeat', async () => {
    const alone = reader({ databaseUrl });
    await until(() => alone.link.commands.isReady);
    await until(() => alone.catalogue.providers());
    await until(() => alone.link.linked);
    const { tier, knownAt } = await alone.documents.get({ kind: 'region', regionId: scene.sample.region });
    expect([tier, knownAt]).toEqual(['redis', undefined]);
  });
});

describe('a linked reader', () => {
  it('rejects a revoked token whose revocation is not published', async () => {
    const linked = await linkedReader();
    expect(await linked.tokens.verify(token)).toBeDefined();
    await revokeToken(scene.store.db, tokenId);
    await linked.documents.checkPostgres();
    expect(await linked.tokens.verify(token)).toBeUndefined();
    expect(linked.link.linked).toBe(true);
  });

  it('does not compare clocks: one that jumps changes nothing', async () => {
    const clock = new TestClock();
    const linked = await linkedReader({ now: clock.now });
    const { epoch } = linked.link;
    for (const ms of [3_600_000, -7_200_000]) {
      clock.forward(ms);
      await linked.caughtUp();
      expect([linked.link.linked, linked.link.epoch]).toEqual([true, epoch]);
    }
  });

  it('receives heartbeats through a cache that accepts no writes', async () => {
    await using full = await startTestRedis(['--maxmemory-policy', 'noeviction']);
    await using own = await openScene(full);
    await addSample(own.sql);
    await own.publisher.publishDirty();
    await own.cache.config('SET', 'maxmemory', '1');
    using _heartbeat = startHeartbeat(() => own.publisher.heartbeat(), HEARTBEAT_MS);
    const linked = own.reader({ silentAfterMs });
    await linked.catalogue.providers();
    await expect(until(() => linked.link.linked)).resolves.toBe(true);
  });
});

it('a reader without any publisher answers from PostgreSQL, and is never linked', async () => {
  await using own = await openScene(scene.redis);
  const sample = await addSample(own.sql);
  await own.publisher.publishDirty();
  const alone = own.reader({ silentAfterMs, blockMs: 10 });
  const first = await alone.documents.get({ kind: 'region', regionId: sample.region });
  expect(first.tier).toBe('postgres');
  await until(() => alone.link.state === 'following');
  await alone.caughtUp();
  expect(alone.link.linked).toBe(false);
  await reprice(own.sql, sample.small, '0.75');
  await until(async () => {
    const { document } = await alone.documents.get({ kind: 'region', regionId: sample.region });
    return document?.body.identity.includes('0.75');
  });
});

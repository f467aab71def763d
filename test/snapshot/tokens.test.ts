import { describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { hashToken, newToken } from '../../src/domain/token.ts';
import { encodeDocument } from '../../src/snapshot/document/format.ts';
import type { DocumentName } from '../../src/snapshot/document/keys.ts';
import { loadContent } from '../../src/snapshot/document/load.ts';
import { setIfNewer } from '../../src/snapshot/publish/fence.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { countingSql, sceneForEachTest, TestClock } from './scene.ts';

const scene = sceneForEachTest();

const create = (options: { scopes?: ('machines:read' | 'clusters:read')[]; expiresAt?: Date } = {}) =>
  createToken(scene.store.db, { organizationId: scene.sample.a, scopes: ['machines:read'], ...options });
const nameOf = (token: string): DocumentName => ({ kind: 'token', hash: hashToken(token) });

describe('a token', () => {
  it('gives its organization and scopes, the same in each tier', async () => {
    const { token, id } = await create({ scopes: ['machines:read', 'clusters:read'] });
    const grant = { tokenId: id, organizationId: scene.sample.a, scopes: ['machines:read', 'clusters:read'] };
    const reader = await scene.linkedReader();
    expect(await reader.tokens.verify(token)).toEqual(grant);
    await scene.publisher.publishDirty();
    const other = await scene.linkedReader();
    expect(await other.tokens.verify(token)).toEqual(grant);
    const memory = await other.tokens.verify(token);
    expect(memory).toEqual(grant);
    expect(await other.tokens.verify(token)).toBe(memory);
  });

  it('with a wrong checksum is not looked up', async () => {
    const { token } = await create();
    const wrong = `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`;
    await using counted = countingSql(scene.db.url);
    const reader = scene.reader({ sql: counted.sql });
    // At once, so without I/O.
    expect(reader.tokens.verify(wrong)).toBeUndefined();
    expect(counted.statements).toEqual([]);
  });

  it('is stored in the cache only by its hash', async () => {
    const { token } = await create();
    await scene.publisher.publishDirty();
    const keys = await scene.cache.keys(`fb:{${scene.keys.lineage}}:token:*`);
    expect(keys).toEqual([scene.keys.document(nameOf(token))]);
    const value = await scene.cache.getBuffer(keys[0] ?? '');
    expect(value?.includes(token)).toBe(false);
  });

  it('is valid until exactly its expiry, by the clock and without a publication', async () => {
    const clock = new TestClock();
    const expiresAt = new Date(Date.now() + 3_600_000);
    const { token } = await create({ expiresAt });
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ now: clock.now });
    expect(await reader.tokens.verify(token)).toBeDefined();
    clock.forward(3_590_000);
    expect(await reader.tokens.verify(token)).toBeDefined();
    clock.forward(11_000);
    expect(await reader.tokens.verify(token)).toBeUndefined();
  });

  it('of a deleted organization is invalid', async () => {
    const { token, id } = await create();
    await scene.sql`update organizations set deleted_at = now() where id = ${scene.sample.a}`;
    await scene.sql`update tokens set version = version + 1 where id = ${id}`;
    expect(await scene.reader().tokens.verify(token)).toBeUndefined();
    await scene.publisher.publishDirty();
    expect(await (await scene.linkedReader()).tokens.verify(token)).toBeUndefined();
  });
});

describe('an unknown token', () => {
  it('is rejected, is looked up once, and becomes known at its creation', async () => {
    // Its clock stands, so it never looks a token up again by age.
    const reader = await scene.linkedReader({ now: () => 1_000_000 });
    const { token } = await create();
    // Cached as unknown, as after an attempt a moment before its creation.
    await scene.sql`delete from tokens`;
    expect(await reader.tokens.verify(token)).toBeUndefined();
    await scene.sql`
      insert into tokens (organization_id, hash, scopes)
      values (${scene.sample.a}, ${Buffer.from(hashToken(token), 'hex')}, '{machines:read}')`;
    expect(await reader.tokens.verify(token)).toBeUndefined();
    await scene.publisher.publishDirty();
    expect(await until(() => reader.tokens.verify(token), { everyMs: 2 })).toBeDefined();
  });

  it('is not cached as unknown if it is published during the lookup', async () => {
    const reader = await scene.linkedReader({ now: () => 1_000_000 });
    for (let i = 0; i < 20; i++) {
      const token = newToken();
      const verifying = [reader.tokens.verify(token)];
      const making = scene.sql`
        insert into tokens (organization_id, hash, scopes)
        values (${scene.sample.a}, ${Buffer.from(hashToken(token), 'hex')}, '{machines:read}')`;
      verifying.push(reader.tokens.verify(token));
      await making;
      const publishing = scene.publisher.publishDirty();
      await Promise.all([...verifying, publishing]);
      expect(await until(() => reader.tokens.verify(token))).toBeDefined();
    }
  });

  it('takes no more memory than the reader’s limit, for any number of attempts', async () => {
    const reader = await scene.linkedReader({ memoryLimit: 20_000 });
    for (let i = 0; i < 100; i++) expect(await reader.tokens.verify(newToken())).toBeUndefined();
    expect(await reader.tokens.verify(newToken())).toBeUndefined();
  });
});

describe('a revocation', () => {
  it('takes effect on a linked reader by its entry, without a check', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ now: () => 1_000_000 });
    for (let i = 0; i < 10; i++) {
      const { token, id } = await create();
      await scene.publisher.publishDirty();
      expect(await reader.tokens.verify(token)).toBeDefined();
      await revokeToken(scene.store.db, id);
      await scene.publisher.publishDirty();
      const isRefused = async () => (await reader.tokens.verify(token)) === undefined;
      expect(await until(isRefused, { everyMs: 2 })).toBe(true);
    }
  });

  it('takes effect at once on a reader that has read the token from PostgreSQL, which writes no token to the cache', async () => {
    const { token, id } = await create();
    const reader = await scene.linkedReader();
    expect(await reader.tokens.verify(token)).toBeDefined();
    const clusters = { kind: 'clusters', organizationId: scene.sample.a } as const;
    await reader.clusters.clusters(scene.sample.a);
    await until(() => scene.cache.exists(scene.keys.document(clusters)));
    expect(await scene.cache.exists(scene.keys.document(nameOf(token)))).toBe(0);
    expect(reader.tokens.verify(token)).toBeDefined();
    // A worker publishes the revocation, although the cache never had the token.
    await revokeToken(scene.store.db, id);
    await scene.publisher.publishDirty();
    await until(async () => (await reader.tokens.verify(token)) === undefined, { everyMs: 2 });
    expect(await (await scene.linkedReader()).tokens.verify(token)).toBeUndefined();
  });

  it('is a tombstone that no write-back replaces, in any order', async () => {
    const { token, id } = await create();
    const name = nameOf(token);
    const before = (await loadContent(scene.sql, name)) ?? expect.unreachable('no content');
    const late = await encodeDocument(before);
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    expect(await reader.tokens.verify(token)).toBeDefined();
    await revokeToken(scene.store.db, id);
    await scene.publisher.publishDirty();
    await until(async () => (await reader.tokens.verify(token)) === undefined);
    expect(await setIfNewer(scene.cache, scene.keys, name, before.version, late, 60)).toBe(false);
    expect(await (await scene.linkedReader()).tokens.verify(token)).toBeUndefined();

    // After a flush there is no tombstone, but the reader still has it; the comparison repairs the rest.
    await scene.cache.flushall();
    expect(await setIfNewer(scene.cache, scene.keys, name, before.version, late, 60)).toBe(true);
    await reader.caughtUp();
    expect(await reader.tokens.verify(token)).toBeUndefined();
    await scene.publisher.compare();
    expect(await (await scene.linkedReader()).tokens.verify(token)).toBeUndefined();
  });

  it('takes effect on a reader with the token in memory within two seconds, while the cache is away', async () => {
    const clock = new TestClock();
    await using dead = await startTestRedis();
    await dead.kill();
    const reader = scene.reader({ redisUrl: dead.url, now: clock.now });
    const { token, id } = await create();
    expect(await reader.tokens.verify(token)).toBeDefined();
    await revokeToken(scene.store.db, id);
    clock.forward(2001);
    expect(await reader.tokens.verify(token)).toBeUndefined();
  });

  it('that no worker publishes takes effect at the next comparison, for any number of tokens, and for good, also if memory is full', async () => {
    const all = await Promise.all(Array.from({ length: 200 }, () => create()));
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ memoryLimit: 60_000 });
    const accepted = async () => {
      let count = 0;
      for (const { token } of all) if (await reader.tokens.verify(token)) count += 1;
      return count;
    };
    for (let round = 0; round < 3; round++) expect(await accepted()).toBe(200);
    for (const { id } of all) await revokeToken(scene.store.db, id);
    expect(await accepted()).toBe(200);
    await reader.documents.checkPostgres();
    for (let round = 0; round < 4; round++) {
      expect(await accepted()).toBe(0);
      await reader.documents.checkPostgres();
    }
    expect(reader.link.linked).toBe(true);
  });

  it('of a token that memory has not stored takes effect at the comparison after its first use', async () => {
    const others = await Promise.all(Array.from({ length: 40 }, () => create()));
    const { token, id } = await create();
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ memoryLimit: 60_000 });
    for (let round = 0; round < 4; round++)
      for (const other of others) await reader.tokens.verify(other.token);
    await revokeToken(scene.store.db, id);
    expect(await reader.tokens.verify(token)).toBeDefined();
    await reader.documents.checkPostgres();
    expect(await reader.tokens.verify(token)).toBeUndefined();
  });

  it('that was received stays after the link is lost in the next moment', async () => {
    await using own = await startTestRedis();
    const { token, id } = await create();
    const reader = scene.reader({ redisUrl: own.url });
    await until(async () => (await reader.tokens.verify(token)) && reader.link.linked);
    expect(await reader.tokens.verify(token)).toBeDefined();
    await until(() => reader.documents.getFresh(nameOf(token)));
    await revokeToken(scene.store.db, id);
    const { keys } = scene;
    await reader.link.commands.run((cache) =>
      cache.fleetbookReject(
        keys.document(nameOf(token)),
        keys.stream,
        `token:${hashToken(token)}`,
        '2',
        'a mark',
      ),
    );
    await until(() => reader.documents.getFresh(nameOf(token)) === undefined);
    await own.kill();
    await until(() => !reader.link.linked);
    expect(await reader.tokens.verify(token)).toBeUndefined();
  });
});

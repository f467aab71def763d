import { describe, expect, it } from 'vitest';
import { createToken } from '../../src/db/tokens.ts';
import { hashToken, newToken } from '../../src/domain/token.ts';
import { Unavailable } from '../../src/snapshot/document/answer.ts';
import { UnknownTokens } from '../../src/snapshot/read/tokens.ts';
import { until } from '../support/until.ts';
import { countingSql, sceneForEachTest, TestClock } from './scene.ts';

const unknown = async () => undefined;
const known = async () => 'known';

describe('the limit of lookups', () => {
  it('allows ten seconds’ worth at once, and refills with time', async () => {
    let now = 0;
    const cap = new UnknownTokens({ perSecond: 100, perSecondAndAddress: 2 }, () => now);
    for (let i = 0; i < 20; i++) await cap.run('a', unknown);
    await expect(cap.run('a', unknown)).rejects.toMatchObject({ retryAfterSeconds: 0.5 });
    now = 499;
    await expect(cap.run('a', unknown)).rejects.toThrow(Unavailable);
    now = 500;
    await cap.run('a', unknown);
    await expect(cap.run('a', unknown)).rejects.toThrow(Unavailable);
    now = 3_600_000;
    for (let i = 0; i < 20; i++) await cap.run('a', unknown);
    await expect(cap.run('a', unknown)).rejects.toThrow(Unavailable);
  });

  it('is separate for each address, with a common limit of all addresses', async () => {
    const cap = new UnknownTokens({ perSecond: 3, perSecondAndAddress: 2 }, () => 0);
    for (let i = 0; i < 20; i++) await cap.run('a', unknown);
    await expect(cap.run('a', unknown)).rejects.toThrow(Unavailable);
    for (let i = 0; i < 10; i++) await cap.run('b', unknown);
    await expect(cap.run('b', unknown)).rejects.toThrow(Unavailable);
    await expect(cap.run(undefined, unknown)).rejects.toThrow(Unavailable);
  });

  it('does not count tokens that are found, nor lookups that fail', async () => {
    const cap = new UnknownTokens({ perSecond: 1, perSecondAndAddress: 1 }, () => 0);
    const failing = () => cap.run('a', () => Promise.reject(new Unavailable('down')));
    for (let i = 0; i < 50; i++) {
      expect(await cap.run('a', known)).toBe('known');
      await expect(failing()).rejects.toThrow('down');
    }
  });

  it('counts concurrent lookups', async () => {
    const cap = new UnknownTokens({ perSecond: 1, perSecondAndAddress: 1 }, () => 0);
    let queries = 0;
    const all = Array.from({ length: 100 }, () =>
      cap.run('a', async () => {
        queries += 1;
        return undefined;
      }),
    );
    await Promise.allSettled(all);
    expect(queries).toBe(10);
  });
});

describe('guessing tokens', () => {
  const scene = sceneForEachTest();
  const create = () =>
    createToken(scene.store.db, { organizationId: scene.sample.a, scopes: ['machines:read'] });

  it('reaches Postgres up to the limit, and then gets a retry time', async () => {
    await using counted = countingSql(scene.db.url);
    const reader = await scene.linkedReader({
      sql: counted.sql,
      unknownTokens: 5,
      unknownTokensPerAddress: 2,
      now: () => 1_000_000,
    });
    const guess = (address: string) => reader.tokens.verify(newToken(), () => address);
    for (let i = 0; i < 20; i++) expect(await guess('192.0.2.1')).toBeUndefined();
    for (let i = 0; i < 20; i++) await expect(guess('192.0.2.1')).rejects.toThrow(Unavailable);
    for (let i = 0; i < 20; i++) expect(await guess('192.0.2.2')).toBeUndefined();
    for (let i = 0; i < 10; i++) expect(await guess('192.0.2.3')).toBeUndefined();
    await expect(guess('192.0.2.4')).rejects.toThrow(Unavailable);
    const lookups = counted.statements.filter((statement) => statement.includes('authenticate_token'));
    expect(lookups).toHaveLength(50);
  });

  it('blocks no token that memory or the cache has, from the same address', async () => {
    const [one, other] = [await create(), await create()];
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ unknownTokensPerAddress: 1, now: () => 1_000_000 });
    await reader.tokens.verify(one.token, () => 'a');
    for (let i = 0; i < 10; i++) await reader.tokens.verify(newToken(), () => 'a');
    await expect(reader.tokens.verify(newToken(), () => 'a')).rejects.toThrow(Unavailable);
    // Its clock stands, so a refused lookup is refused forever. A cache that is late on a busy machine answers the next read.
    for (const { token } of [one, other])
      expect(await until(() => reader.tokens.verify(token, () => 'a'))).toBeDefined();
  });

  it('evicts no documents', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({
      memoryLimit: 40_000,
      unknownTokens: 1000,
      unknownTokensPerAddress: 1000,
    });
    await reader.catalogue.machines(scene.sample.provider, scene.sample.region);
    await reader.clusters.clusters(scene.sample.a);
    const inMemory = () => [...(reader.documents.dump()?.documents ?? [])].map(({ id }) => id);
    const before = [reader.documents.memorySize, inMemory()];
    expect(before[1]).toContain(`clusters:${scene.sample.a}`);
    for (let i = 0; i < 300; i++) await reader.tokens.verify(newToken());
    expect([reader.documents.memorySize, inMemory()]).toEqual(before);
  });

  it('correctly works once the token is created and published, and is forgotten otherwise', async () => {
    const clock = new TestClock();
    await using counted = countingSql(scene.db.url);
    const reader = await scene.linkedReader({ sql: counted.sql, now: clock.now });
    const { token } = await create();
    await scene.sql`delete from tokens`;
    const lookups = () => counted.statements.filter((each) => each.includes('authenticate_token')).length;
    const { epoch } = reader.link;
    for (let i = 0; i < 3; i++) expect(await reader.tokens.verify(token)).toBeUndefined();
    const known = lookups();
    expect(known).toBeGreaterThan(0);
    // A busy machine may lose the link, and nothing is known in its next epoch.
    expect(known).toBeLessThanOrEqual(1 + reader.link.epoch - epoch);
    clock.forward(10_001);
    expect(await reader.tokens.verify(token)).toBeUndefined();
    expect(lookups()).toBeGreaterThan(known);
    await scene.sql`
      insert into tokens (organization_id, hash, scopes)
      values (${scene.sample.a}, ${Buffer.from(hashToken(token), 'hex')}, '{machines:read}')`;
    await scene.publisher.publishDirty();
    expect(await until(() => reader.tokens.verify(token), { everyMs: 2 })).toBeDefined();
  });
});

describe('an accepted token', () => {
  const scene = sceneForEachTest();

  it('is reported each time, on either path, and a rejected one is not', async () => {
    const { id, token } = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes: ['machines:read'],
    });
    await scene.publisher.publishDirty();
    const used: number[] = [];
    const reader = await scene.linkedReader({ used: (tokenId) => used.push(tokenId) });
    await reader.tokens.verify(newToken());
    await reader.tokens.verify(token);
    await reader.tokens.verify(token);
    expect(used).toEqual([id, id]);
  });
});

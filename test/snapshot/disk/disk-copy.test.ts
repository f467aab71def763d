/** Readers that start with nothing but the copy of the one before them, on real servers that go away and come back. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../../src/db/queries/tokens.ts';
import { hashToken } from '../../../src/domain/token.ts';
import { Unavailable } from '../../../src/snapshot/document/answer.ts';
import { type FaultProxy, faultProxy } from '../../support/fault-proxy.ts';
import { run } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';
import { addMachines, addOrganization, reprice } from '../rows.ts';
import { type ReaderOptions, sceneForEachTest, TestClock, type TestReader } from '../scene.ts';

const MINUTE = 60_000;
const scene = sceneForEachTest({ redis: 'of the test' });

const folders: string[] = [];
let snapshotDir: string;
let token: string;
let tokenId: number;
let database: FaultProxy;
let cache: FaultProxy;
const clock = new TestClock();

beforeEach(async () => {
  snapshotDir = await mkdtemp(join(tmpdir(), 'fleetbook-disk-'));
  folders.push(snapshotDir);
  database = await faultProxy(scene.db.url);
  cache = await faultProxy(scene.redis.url);
  const scopes = ['machines:read', 'clusters:read'] as const;
  ({ token, id: tokenId } = await createToken(scene.store.db, { organizationId: scene.sample.a, scopes }));
  await addMachines(scene.sql, scene.sample.region, 40);
  await scene.publisher.publishDirty();
});
afterEach(async () => {
  await Promise.all([database.heal(), cache.heal()]);
  await Promise.all([database[Symbol.asyncDispose](), cache[Symbol.asyncDispose]()]);
});
// The readers are closed later than what comes before.
afterAll(() => Promise.all(folders.map((each) => rm(each, { recursive: true, force: true }))));

/** A reader of the shared folder that reaches both servers through the proxies. */
const open = (options: Partial<ReaderOptions> = {}) =>
  scene.reader({
    databaseUrl: database.url,
    redisUrl: cache.url,
    snapshotDir,
    postgresDeadlineMs: 500,
    pollMs: 50,
    now: clock.now,
    ...options,
  });

const everythingDown = () => Promise.all([database.refuse(), cache.refuse()]);

const machines = (reader: TestReader) =>
  reader.catalogue.machines(scene.sample.provider, scene.sample.region);

/** What a client sees of an answer. */
async function seen(answer: ReturnType<typeof machines>) {
  const { body, asOf, currency } = await answer;
  await body.compress?.();
  const text = (bytes: Buffer | undefined) => bytes?.toString('base64');
  return {
    body: text(body.identity),
    gzip: text(body.gzip),
    br: text(body.br),
    hash: body.hash,
    asOf,
    currency,
  };
}

/** A reader that has served something of everything, and has kept it. */
async function served(options: Partial<ReaderOptions> = {}): Promise<TestReader> {
  const reader = open(options);
  await reader.catalogue.providers();
  await until(() => reader.link.linked);
  await machines(reader);
  await reader.catalogue.machine(scene.sample.big);
  await reader.clusters.clusters(scene.sample.a);
  await reader.tokens.verify(token);
  await reader.copy?.flush();
  return reader;
}

describe('with everything down', () => {
  it('a new reader gives what was served before, byte for byte, as tier disk', async () => {
    const before = await served();
    const expected = [
      await seen(machines(before)),
      await seen(before.catalogue.machine(scene.sample.big) as never),
      await seen(before.catalogue.providers()),
      await seen(before.clusters.clusters(scene.sample.a)),
    ];
    expect(expected[0]?.asOf).toBe('2026-01-02T03:04:05.678Z');
    expect(expected[0]?.gzip).toBeDefined();
    await everythingDown();
    const reader = open();
    for (const round of ['first', 'second']) {
      expect([round, (await machines(reader)).tier]).toEqual([round, 'disk']);
      expect([
        await seen(machines(reader)),
        await seen(reader.catalogue.machine(scene.sample.big) as never),
        await seen(reader.catalogue.providers()),
        await seen(reader.clusters.clusters(scene.sample.a)),
      ]).toEqual(expected);
    }
    expect(await reader.tokens.verify(token)).toEqual({
      tokenId,
      organizationId: scene.sample.a,
      scopes: ['machines:read', 'clusters:read'],
    });
    expect((await reader.clusters.cluster(scene.sample.a, 'cluster-test'))?.tier).toBe('disk');
  });

  it('a machine is found by the list that was served, also one that nobody asked for', async () => {
    await served();
    await everythingDown();
    const reader = open();
    expect((await reader.catalogue.machine(scene.sample.small))?.tier).toBe('disk');
  });

  it('what was never served is unavailable, not missing', async () => {
    await served();
    const other = await addOrganization(scene.sql, 'other');
    await everythingDown();
    const reader = open();
    await expect(reader.clusters.clusters(other)).rejects.toThrow(Unavailable);
    await expect(reader.clusters.clusters(scene.sample.b)).rejects.toThrow(Unavailable);
    await expect(Promise.resolve(reader.catalogue.machine(4_000_000))).rejects.toThrow(Unavailable);
  });

  it('without a copy nothing has changed', async () => {
    await served();
    await everythingDown();
    const reader = open({ snapshotDir: undefined });
    await expect(Promise.resolve(machines(reader))).rejects.toThrow(Unavailable);
  });

  it('nothing is given for longer than STALE_LIMIT after it was known to be true', async () => {
    await served({ staleLimitMs: 10 * MINUTE });
    await everythingDown();
    clock.forward(9 * MINUTE);
    expect((await machines(open({ staleLimitMs: 10 * MINUTE }))).tier).toBe('disk');
    clock.forward(MINUTE + 5000);
    const late = open({ staleLimitMs: 10 * MINUTE });
    await expect(Promise.resolve(machines(late))).rejects.toThrow(Unavailable);
  });

  it('STALE_LIMIT also ends what a reader has taken from the disk into its memory', async () => {
    await served({ staleLimitMs: 10 * MINUTE });
    await everythingDown();
    const reader = open({ staleLimitMs: 10 * MINUTE });
    expect((await machines(reader)).tier).toBe('disk');
    clock.forward(11 * MINUTE);
    await expect(Promise.resolve(machines(reader))).rejects.toThrow(Unavailable);
  });

  it('what stays true while it is not read again is known by the link', async () => {
    const reader = await served({ staleLimitMs: 10 * MINUTE });
    clock.forward(30 * MINUTE);
    const since = clock.now();
    await until(() => reader.link.confirmedAt(reader.link.epoch) >= since);
    await reader.copy?.flush();
    await everythingDown();
    expect((await machines(open({ staleLimitMs: 10 * MINUTE }))).tier).toBe('disk');
  });
});

describe('tokens', () => {
  it('are accepted for TOKEN_STALE_LIMIT and not longer', async () => {
    await served();
    await everythingDown();
    clock.forward(14 * MINUTE);
    expect(await open().tokens.verify(token)).toMatchObject({ tokenId });
    clock.forward(MINUTE + 5000);
    await expect(Promise.resolve(open().tokens.verify(token))).rejects.toThrow(Unavailable);
  });

  it('a revocation that was answered is not undone by a start with everything down', async () => {
    const reader = await served();
    await revokeToken(scene.store.db, tokenId);
    await scene.publisher.publishDirty();
    await until(async () => (await reader.tokens.verify(token)) === undefined);
    // Not flushed: the answer alone has put it down.
    await everythingDown();
    const restarted = open();
    expect(await answered(restarted)).not.toBe('accepted');
    await reader.copy?.flush();
    expect(await answered(open())).toBe('refused');
  });

  it('a revocation that was only heard of is not undone either', async () => {
    const reader = await served();
    await revokeToken(scene.store.db, tokenId);
    await scene.publisher.publishDirty();
    const name = { kind: 'token', hash: hashToken(token) } as const;
    await until(() => reader.documents.getFresh(name) === undefined);
    await until(async () => (await reader.copy?.read(name)) === undefined);
    await everythingDown();
    expect(await answered(open())).toBe('unavailable');
  });

  it('one that expires stays expired', async () => {
    const scopes = ['machines:read'] as const;
    const expiresAt = new Date(clock.now() + 5 * MINUTE);
    const { token: short } = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes,
      expiresAt,
    });
    const reader = await served();
    expect(await reader.tokens.verify(short)).toBeDefined();
    await reader.copy?.flush();
    await everythingDown();
    expect(await open().tokens.verify(short)).toBeDefined();
    clock.forward(6 * MINUTE);
    expect(await open().tokens.verify(short)).toBeUndefined();
    expect(await open().tokens.verify(token)).toBeDefined();
  });

  it('one that PostgreSQL no longer knows is put out', async () => {
    const reader = await served();
    await cache.refuse();
    await until(() => !reader.link.linked);
    await run(scene.db.url, `delete from tokens where id = ${tokenId}`);
    clock.forward(11_000);
    await until(async () => (await reader.tokens.verify(token)) === undefined);
    await everythingDown();
    expect(await answered(open())).toBe('unavailable');
  });

  async function answered(reader: TestReader): Promise<'accepted' | 'refused' | 'unavailable'> {
    try {
      return (await reader.tokens.verify(token)) ? 'accepted' : 'refused';
    } catch (error) {
      if (error instanceof Unavailable) return 'unavailable';
      throw error;
    }
  }
});

describe('versions', () => {
  it('what was given last is given, or nothing: never what was before', async () => {
    const reader = await served();
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    const name = { kind: 'region', regionId: scene.sample.region } as const;
    await until(async () => (await reader.documents.get(name)).document?.version === version);
    // Not flushed: the content may not be there, the older one is out.
    await everythingDown();
    const restarted = open();
    const given = await Promise.resolve(restarted.documents.get(name)).catch(() => undefined);
    expect([version, undefined]).toContain(given?.document?.version);
    await reader.copy?.flush();
    expect((await open().documents.get(name)).document?.version).toBe(version);
  });

  it('a cache that is behind what the reader before gave is passed over', async () => {
    const reader = await served();
    const name = { kind: 'region', regionId: scene.sample.region } as const;
    const key = scene.keys.document(name);
    const old = await scene.cache.getBuffer(key);
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    await until(async () => (await reader.documents.get(name)).document?.version === version);
    await reader.copy?.flush();
    await scene.cache.set(key, old ?? '');
    expect(await open().documents.get(name)).toMatchObject({
      tier: 'postgres',
      document: { version },
    });
    // The reader's write-back.
    await until(async () => !(await scene.cache.getBuffer(key))?.equals(old ?? Buffer.alloc(0)));
    await scene.cache.set(key, old ?? '');
    await database.refuse();
    expect(await open().documents.get(name)).toMatchObject({
      tier: 'disk',
      document: { version },
    });
  });

  it('the tiers return one by one, and newer versions win', async () => {
    await served();
    await everythingDown();
    const reader = open();
    const name = { kind: 'region', regionId: scene.sample.region } as const;
    const old = (await reader.documents.get(name)).document?.version ?? 0;
    expect(await reader.documents.get(name)).toMatchObject({ tier: 'disk' });
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    expect(await reader.documents.get(name)).toMatchObject({ tier: 'disk', document: { version: old } });
    await database.heal();
    await until(async () => (await reader.documents.get(name)).document?.version === version);
    await cache.heal();
    await until(() => reader.link.linked);
    await until(async () => (await reader.documents.get(name)).tier === 'memory');
    expect((await machines(reader)).tier).toBe('memory');
    const newest = await reprice(scene.sql, scene.sample.small, '0.7');
    await scene.publisher.publishDirty();
    await until(async () => (await reader.documents.get(name)).document?.version === newest);
  });

  it('a database with another lineage ends what is kept', async () => {
    await served();
    await everythingDown();
    const reader = open();
    expect((await machines(reader)).tier).toBe('disk');
    await run(scene.db.url, 'update lineage set id = gen_random_uuid()');
    await run(scene.db.url, `update machines set price = 7 where id = ${scene.sample.small}`);
    await database.heal();
    await until(async () => (await machines(reader)).tier !== 'disk');
    expect((await machines(reader)).body.identity.toString()).toContain('"price":7');
    await reader.copy?.flush();
    await database.refuse();
    expect((await machines(open())).body.identity.toString()).toContain('"price":7');
  });
});

it('two readers share a folder: each starts with what either has kept', async () => {
  const [one, two] = [await served(), open()];
  await two.clusters.clusters(scene.sample.b);
  await two.copy?.flush();
  await one.copy?.flush();
  await everythingDown();
  for (const reader of [open(), open()]) {
    expect((await machines(reader)).tier).toBe('disk');
    expect((await reader.clusters.clusters(scene.sample.b)).tier).toBe('disk');
  }
});

it('organizations are told apart: what is under another’s name is a miss', async () => {
  const reader = await served();
  const other = await addOrganization(scene.sql, 'other');
  expect((await reader.clusters.clusters(other)).body.identity.toString()).toBe('[]');
  await reader.copy?.flush();
  await everythingDown();
  const { DatabaseSync } = await import('node:sqlite');
  const { copyFolder } = await import('../../../src/snapshot/disk/copy-file.ts');
  const { readdirSync } = await import('node:fs');
  const name = readdirSync(copyFolder(snapshotDir)).find((each) => each.endsWith('.sqlite')) ?? '';
  const database = new DatabaseSync(join(copyFolder(snapshotDir), name));
  const swapped = database.prepare('update documents set id = ? where id = ?');
  swapped.run('clusters:0', `clusters:${scene.sample.a}`);
  swapped.run(`clusters:${scene.sample.a}`, `clusters:${other}`);
  swapped.run(`clusters:${other}`, 'clusters:0');
  database.close();
  const restarted = open();
  for (const organization of [scene.sample.a, other])
    await expect(Promise.resolve(restarted.clusters.clusters(organization))).rejects.toThrow(Unavailable);
  expect(restarted.copy?.counts.failures.get('damaged')).toBe(2);
});

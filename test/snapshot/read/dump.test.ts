/** Readers that start with only the dump of an earlier reader, while PostgreSQL and Redis are down. */
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { pino } from 'pino';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../../src/db/tokens.ts';
import { type Answer, type MaybePromise, Unavailable } from '../../../src/snapshot/document/answer.ts';
import { tokenContent } from '../../../src/snapshot/document/build.ts';
import { encodeLoaded, encoding } from '../../../src/snapshot/document/format.ts';
import { documentId, LINEAGE_KEY } from '../../../src/snapshot/document/keys.ts';
import { Dump } from '../../../src/snapshot/read/dump.ts';
import { type FaultProxy, faultProxy } from '../../support/fault-proxy.ts';
import { run } from '../../support/postgres.ts';
import { countTurns } from '../../support/turns.ts';
import { until } from '../../support/until.ts';
import { addMachines, addOrganization, reprice, verify } from '../rows.ts';
import { type ReaderOptions, sceneForEachTest, TestClock, type TestReader } from '../scene.ts';

const MINUTE = 60_000;
const scene = sceneForEachTest({ redis: 'of the test' });
const clock = new TestClock();

const folders: string[] = [];
let snapshotDir: string;
let token: string;
let tokenId: number;
let database: FaultProxy;
let cache: FaultProxy;

beforeEach(async () => {
  snapshotDir = await mkdtemp(join(tmpdir(), 'fleetbook-dump-'));
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
// Readers close later than the hooks above.
afterAll(() => Promise.all(folders.map((each) => rm(each, { recursive: true, force: true }))));

const file = () => join(snapshotDir, 'documents.dump');
const region = () => ({ kind: 'region', regionId: scene.sample.region }) as const;

/** Opens a reader of the shared folder that reaches both servers through the proxies, and has loaded the dump. */
async function open(options: Partial<ReaderOptions> = {}): Promise<TestReader> {
  const reader = scene.reader({
    databaseUrl: database.url,
    redisUrl: cache.url,
    snapshotDir,
    blockMs: 50,
    now: clock.now,
    ...options,
  });
  await reader.dump?.loaded;
  return reader;
}

const everythingDown = () => Promise.all([database.refuse(), cache.refuse()]);

const machines = async (reader: TestReader) =>
  reader.catalogue.machines(scene.sample.provider, scene.sample.region);

/** Returns the parts of an answer that a client sees. */
async function seen(answer: MaybePromise<Answer | undefined>) {
  const { body, asOf, currency } = (await answer) ?? expect.unreachable('there is no answer');
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

/** Opens a reader that has served one document of each kind, and has written its dump. */
async function served(options: Partial<ReaderOptions> = {}): Promise<TestReader> {
  const reader = await open(options);
  await reader.catalogue.providers();
  await until(() => reader.link.linked);
  await machines(reader);
  await reader.catalogue.machine(scene.sample.big);
  await reader.clusters.clusters(scene.sample.a);
  await reader.tokens.verify(token);
  await reader.dump?.write();
  return reader;
}

describe('with everything down', () => {
  it('a new reader serves the same answers as before, byte for byte, as tier disk', async () => {
    const before = await served();
    const expected = [
      await seen(machines(before)),
      await seen(before.catalogue.machine(scene.sample.big)),
      await seen(before.catalogue.providers()),
      await seen(before.clusters.clusters(scene.sample.a)),
    ];
    expect(expected[0]?.asOf).toBe('2026-01-02T03:04:05.678Z');
    expect(expected[0]?.gzip).toBeDefined();
    await everythingDown();
    const reader = await open();
    for (const round of ['first', 'second']) {
      expect([round, (await machines(reader)).tier]).toEqual([round, 'disk']);
      expect([
        await seen(machines(reader)),
        await seen(reader.catalogue.machine(scene.sample.big)),
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

  it('a new reader does not state the time of a run that was stored after the read of its document', async () => {
    await cache.refuse();
    const before = await open();
    const { asOf } = await machines(before);
    await reprice(scene.sql, scene.sample.small, '0.75');
    await verify(scene.sql, 'cloud', '2026-01-03T00:00:00Z');
    clock.forward(1001);
    await before.clusters.clusters(scene.sample.a);
    const known = async () => (await before.documents.freshness.begin()).postgres.get('cloud');
    await until(async () => (await known()) === 'catalogue 2026-01-03T00:00:00.000Z');
    await before.dump?.write();
    await everythingDown();
    expect(asOf).toBe('2026-01-02T03:04:05.678Z');
    expect(await machines(await open())).toMatchObject({ tier: 'disk', asOf });
  });

  it('a new reader states the last times that the stream confirmed', async () => {
    const before = await served();
    await verify(scene.sql, 'cloud', '2026-01-03T00:00:00Z');
    await scene.publisher.publishDirty();
    const asOf = '2026-01-03T00:00:00.000Z';
    await until(() => before.documents.asOf(`region:${scene.sample.region}`) === asOf);
    await reprice(scene.sql, scene.sample.small, '0.75');
    await scene.publisher.publishDirty();
    await until(async () => (await machines(before)).body.identity.includes('0.75'));
    await before.dump?.write();
    await everythingDown();
    expect(await machines(await open())).toMatchObject({ tier: 'disk', asOf });
  });

  it('hanging servers delay no answer once the reader has detected them', async () => {
    await served();
    database.hang();
    cache.hang();
    const reader = await open({ postgresDeadlineMs: 1500 });
    const timedRead = async () => {
      const begun = performance.now();
      const { tier } = await machines(reader);
      return { tier, isLate: performance.now() - begun > 200 };
    };
    await until(async () => !(await timedRead()).isLate);
    const late: number[] = [];
    const begun = performance.now();
    await until(async () => {
      const { tier, isLate } = await timedRead();
      expect(tier).toBe('disk');
      if (isLate) late.push(performance.now() - begun);
      return performance.now() - begun > 5000;
    });
    // A busy machine may be late as well.
    expect(late.length, `late after ${late.map(Math.round).join(', ')} ms`).toBeLessThan(4);
  });

  it('every machine of a served list is found, also one that was never requested', async () => {
    await served();
    await everythingDown();
    const reader = await open();
    expect((await reader.catalogue.machine(scene.sample.small))?.tier).toBe('disk');
  });

  it('a document that was never served is unavailable, not missing', async () => {
    await served();
    const other = await addOrganization(scene.sql, 'other');
    await everythingDown();
    const reader = await open();
    await expect(reader.clusters.clusters(other)).rejects.toThrow(Unavailable);
    await expect(reader.clusters.clusters(scene.sample.b)).rejects.toThrow(Unavailable);
    await expect(Promise.resolve(reader.catalogue.machine(4_000_000))).rejects.toThrow(Unavailable);
  });

  it('without a dump reads are unavailable', async () => {
    await served();
    await everythingDown();
    const reader = await open({ snapshotDir: undefined });
    await expect(Promise.resolve(machines(reader))).rejects.toThrow(Unavailable);
  });

  it('a document expires STALE_LIMIT after its last confirmation', async () => {
    await served({ staleLimitMs: 10 * MINUTE });
    await everythingDown();
    clock.forward(9 * MINUTE);
    expect((await machines(await open({ staleLimitMs: 10 * MINUTE }))).tier).toBe('disk');
    clock.forward(MINUTE + 5000);
    const late = await open({ staleLimitMs: 10 * MINUTE });
    await expect(Promise.resolve(machines(late))).rejects.toThrow(Unavailable);
  });

  it('STALE_LIMIT also ends a document of a dump in a running reader', async () => {
    await served({ staleLimitMs: 10 * MINUTE });
    await everythingDown();
    const reader = await open({ staleLimitMs: 10 * MINUTE });
    expect((await machines(reader)).tier).toBe('disk');
    clock.forward(11 * MINUTE);
    await expect(Promise.resolve(machines(reader))).rejects.toThrow(Unavailable);
  });

  it('the link confirms documents that are not read again', async () => {
    const reader = await served({ staleLimitMs: 10 * MINUTE });
    clock.forward(30 * MINUTE);
    const since = clock.now();
    await until(() => reader.link.confirmedAt(reader.link.epoch) >= since);
    await reader.dump?.write();
    await everythingDown();
    expect((await machines(await open({ staleLimitMs: 10 * MINUTE }))).tier).toBe('disk');
  });
});

describe('tokens', () => {
  it('are accepted only for TOKEN_STALE_LIMIT', async () => {
    await served();
    await everythingDown();
    clock.forward(14 * MINUTE);
    expect(await (await open()).tokens.verify(token)).toMatchObject({ tokenId });
    clock.forward(MINUTE + 5000);
    await expect(Promise.resolve((await open()).tokens.verify(token))).rejects.toThrow(Unavailable);
  });

  it('a revocation that the dump has survives a restart with everything down', async () => {
    const reader = await served();
    await revokeToken(scene.store.db, tokenId);
    await scene.publisher.publishDirty();
    await until(async () => (await reader.tokens.verify(token)) === undefined);
    await reader.dump?.write();
    await everythingDown();
    expect(await answered(await open())).toBe('refused');
  });

  it('a revocation that the reader only received survives as well', async () => {
    const reader = await served();
    await revokeToken(scene.store.db, tokenId);
    await scene.publisher.publishDirty();
    await until(
      () => ![...(reader.documents.dump()?.documents ?? [])].some(({ id }) => id.startsWith('token:')),
    );
    await reader.dump?.write();
    await everythingDown();
    expect(await answered(await open())).toBe('unavailable');
  });

  it('a token of a dump is not accepted while PostgreSQL answers', async () => {
    await served();
    await cache.refuse();
    await revokeToken(scene.store.db, tokenId);
    expect(await answered(await open())).toBe('refused');
  });

  it('an expired token stays expired', async () => {
    const scopes = ['machines:read'] as const;
    const expiresAt = new Date(clock.now() + 5 * MINUTE);
    const { token: short } = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes,
      expiresAt,
    });
    const reader = await served();
    expect(await reader.tokens.verify(short)).toBeDefined();
    await reader.dump?.write();
    await everythingDown();
    expect(await (await open()).tokens.verify(short)).toBeDefined();
    clock.forward(6 * MINUTE);
    expect(await (await open()).tokens.verify(short)).toBeUndefined();
    expect(await (await open()).tokens.verify(token)).toBeDefined();
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
  it('a cache that is older than the answers of the earlier reader is skipped', async () => {
    const reader = await served();
    const key = scene.keys.document(region());
    const old = await scene.cache.getBuffer(key);
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    await until(async () => (await reader.documents.get(region())).document?.version === version);
    await reader.dump?.write();
    await scene.cache.set(key, old ?? '');
    expect(await (await open()).documents.get(region())).toMatchObject({ document: { version } });
    await database.refuse();
    expect(await (await open()).documents.get(region())).toMatchObject({
      tier: 'disk',
      document: { version },
    });
  });

  it('the servers recover one by one, and newer versions win', async () => {
    await served();
    await everythingDown();
    const reader = await open();
    const first = await reader.documents.get(region());
    const old = first.document?.version ?? 0;
    expect(first.tier).toBe('disk');
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    expect(await reader.documents.get(region())).toMatchObject({ tier: 'disk', document: { version: old } });
    await database.heal();
    await until(async () => (await reader.documents.get(region())).document?.version === version);
    await cache.heal();
    await until(() => reader.link.linked);
    await until(async () => (await reader.documents.get(region())).tier === 'memory');
    const newest = await reprice(scene.sql, scene.sample.small, '0.7');
    await scene.publisher.publishDirty();
    await until(async () => (await reader.documents.get(region())).document?.version === newest);
  });

  it('a database with another lineage ends the documents of a dump', async () => {
    await served();
    await everythingDown();
    const reader = await open();
    expect((await machines(reader)).tier).toBe('disk');
    await run(scene.db.url, 'update lineage set id = gen_random_uuid()');
    await run(scene.db.url, `update machines set price = 7 where id = ${scene.sample.small}`);
    await database.heal();
    await until(async () => (await machines(reader)).tier !== 'disk');
    expect((await machines(reader)).body.identity.toString()).toContain('"price":7');
    await reader.dump?.write();
    await database.refuse();
    const later = await machines(await open());
    expect([later.tier, later.body.identity.includes('"price":7')]).toEqual(['disk', true]);
  });

  it('a cache with another lineage ends the documents of a dump', async () => {
    await served();
    await everythingDown();
    const reader = await open();
    expect((await machines(reader)).tier).toBe('disk');
    await scene.cache.set(LINEAGE_KEY, crypto.randomUUID());
    await cache.heal();
    await until(async () => (await machines(reader).catch(() => undefined)) === undefined);
    await expect(machines(reader)).rejects.toThrow(Unavailable);
  });

  it('a server that has the same version confirms a document of a dump', async () => {
    const { document: before } = await (await served()).documents.get(region());
    const reader = await open();
    await reader.catalogue.providers();
    await until(() => reader.link.linked);
    const found = await reader.documents.get(region());
    expect([found.tier, found.document?.version]).toEqual(['memory', before?.version]);
    expect(found.knownAt).toBeUndefined();
  });

  it('a second restart during the outage has the same documents, which do not become younger', async () => {
    await served({ staleLimitMs: 10 * MINUTE });
    await everythingDown();
    clock.forward(6 * MINUTE);
    const second = await open({ staleLimitMs: 10 * MINUTE });
    expect((await machines(second)).tier).toBe('disk');
    rmSync(file());
    await second.dump?.write();
    expect((await machines(await open({ staleLimitMs: 10 * MINUTE }))).tier).toBe('disk');
    clock.forward(5 * MINUTE);
    const late = await open({ staleLimitMs: 10 * MINUTE });
    await expect(machines(late)).rejects.toThrow(Unavailable);
  });
});

/** A logger, and its warnings and later lines. */
function recorded() {
  const lines: { msg: string; why?: string }[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const ofDump = () => lines.flatMap(({ msg, why }) => (msg.includes('SNAPSHOT_DIR') ? [why ?? msg] : []));
  return { logger, ofDump };
}

describe('a file that cannot be used is ignored, with one line in the log', () => {
  const withChecksum = (bytes: Buffer) =>
    Buffer.concat([bytes, Buffer.from(crc32(bytes).toString(16).padStart(8, '0'))]);
  const content = () => readFileSync(file());

  it.each<[string, () => Buffer, string]>([
    ['garbage', () => Buffer.from(crypto.getRandomValues(new Uint8Array(5000))), 'it has another format'],
    ['an empty file', () => Buffer.alloc(0), 'it has another format'],
    [
      'another format',
      () => Buffer.from(String(content()).replace('dump 1', 'dump 2')),
      'it has another format',
    ],
    ['a file that is cut short', () => content().subarray(0, -700), 'it is damaged'],
    ['a file that has grown', () => Buffer.concat([content(), Buffer.from('\n')]), 'it is damaged'],
    [
      'a file with another byte',
      () => content().map((byte, at) => (at === 3000 ? byte ^ 1 : byte)) as Buffer,
      'it is damaged',
    ],
    [
      'a document under the id of another organization',
      () => {
        const { a, b } = scene.sample;
        const text = content().subarray(0, -8).toString('latin1');
        return withChecksum(
          Buffer.from(text.replace(`{"id":"clusters:${a}"`, `{"id":"clusters:${b}"`), 'latin1'),
        );
      },
      'it is damaged',
    ],
    [
      'a token without its record',
      () => {
        const hash = 'a'.repeat(64);
        const record = { id: 1, organizationId: 1, scopes: [], expiresAt: null, revoked: false };
        const { document } = encoding({ ...tokenContent(hash, 1, record), body: Buffer.from('{}') });
        const id = documentId({ kind: 'token', hash });
        const value = encodeLoaded(id, document);
        const line = `${JSON.stringify({ id, at: clock.now(), length: value.length })}\n`;
        return withChecksum(Buffer.concat([content().subarray(0, -8), Buffer.from(line), value]));
      },
      'it is damaged',
    ],
    [
      'another lineage',
      () => {
        const text = content().subarray(0, -8).toString('latin1');
        return withChecksum(Buffer.from(text.replace(scene.keys.lineage, crypto.randomUUID()), 'latin1'));
      },
      'the dump in SNAPSHOT_DIR is ignored: it is of another database',
    ],
  ])('%s', async (_, change, why) => {
    const before = await served();
    await before[Symbol.asyncDispose]();
    const bytes = change();
    expect(bytes.equals(content())).toBe(false);
    writeFileSync(file(), bytes);
    // The cache alone names the lineage.
    await database.refuse();
    const { logger, ofDump } = recorded();
    const reader = await open({ logger });
    await until(() => reader.link.commands.isReady);
    await reader.catalogue.providers();
    await until(() => reader.link.linked);
    expect(ofDump()).toEqual([why]);
    expect((await machines(reader)).tier).toBe('redis');
    await reader.dump?.write();
    await cache.refuse();
    expect((await machines(await open())).tier).toBe('disk');
  });

  it('a file that is larger than the memory', async () => {
    await served();
    await everythingDown();
    const { logger, ofDump } = recorded();
    const reader = await open({ logger, dumpLimit: 500 });
    await expect(machines(reader)).rejects.toThrow(Unavailable);
    expect(ofDump()).toEqual(['it is larger than the memory']);
  });

  it('a file whose documents are all too old', async () => {
    await served();
    await everythingDown();
    clock.forward(61 * MINUTE);
    const { logger, ofDump } = recorded();
    const reader = await open({ logger });
    await expect(machines(reader)).rejects.toThrow(Unavailable);
    await expect(machines(reader)).rejects.toThrow(Unavailable);
    expect(ofDump()).toEqual(['the dump in SNAPSHOT_DIR is ignored: its documents are too old']);
  });

  it('a file from the future', async () => {
    clock.forward(30 * MINUTE);
    await served();
    await everythingDown();
    clock.forward(-30 * MINUTE);
    const { logger, ofDump } = recorded();
    await expect(machines(await open({ logger }))).rejects.toThrow(Unavailable);
    expect(ofDump()).toHaveLength(1);
  });
});

describe('the file', () => {
  it('is readable by its user alone, and is the only one', async () => {
    await served();
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(readdirSync(snapshotDir)).toEqual(['documents.dump']);
    expect(readFileSync(file(), 'latin1')).not.toContain(token);
    rmSync(snapshotDir, { recursive: true });
    await served();
    expect(statSync(snapshotDir).mode & 0o777).toBe(0o700);
  });

  it('is written again only for a change, or for later confirmations', async () => {
    const reader = await served();
    const { ino } = statSync(file());
    await reader.dump?.write();
    expect(statSync(file()).ino).toBe(ino);
    await reader.clusters.clusters(scene.sample.b);
    await reader.dump?.write();
    const changed = statSync(file()).ino;
    expect(changed).not.toBe(ino);
    const since = clock.now() + 2 * MINUTE;
    clock.forward(2 * MINUTE);
    await until(() => reader.link.confirmedAt(reader.link.epoch) >= since);
    await reader.dump?.write();
    expect(statSync(file()).ino).not.toBe(changed);
  });

  it('is written at intervals, and at the end', async () => {
    const reader = await served({ dumpEveryMs: 20 });
    await reader.clusters.clusters(scene.sample.b);
    const has = (id: string) => readFileSync(file(), 'latin1').includes(`{"id":"${id}"`);
    await until(() => has(`clusters:${scene.sample.b}`));
    const last = await served();
    const other = await addOrganization(scene.sql, 'other');
    await last.clusters.clusters(other);
    await reader[Symbol.asyncDispose]();
    await last[Symbol.asyncDispose]();
    expect(has(`clusters:${other}`)).toBe(true);
  });

  it('has the documents that were read first, as many as the limit allows', async () => {
    const reader = await served({ dumpLimit: 12_000 });
    const { size } = statSync(file());
    expect(size).toBeLessThan(13_000);
    await everythingDown();
    const { documents = [] } = reader.documents.dump() ?? {};
    const ids = [...documents].map(({ id }) => id);
    const text = readFileSync(file(), 'latin1');
    const there = ids.filter((id) => text.includes(`{"id":"${id}"`));
    expect(there.length).toBeGreaterThan(0);
    expect(there).toEqual(ids.slice(0, there.length));
  });

  it('is compared and written in turns with the requests, however many documents memory has', async () => {
    using counted = countTurns();
    const body = Buffer.from('[]');
    const documents = Array.from({ length: 100 }, (_, organizationId) => {
      const name = { kind: 'clusters', organizationId } as const;
      const { document } = encoding({ name, version: 1, body, index: new Map(), sources: [] });
      return { id: documentId(name), document, at: clock.now(), asOf: undefined };
    });
    // A document takes at least a tenth of a millisecond, so a fast machine has no more of them in a turn.
    let between: number[] = [];
    function* dumped() {
      for (const each of documents) {
        const since = performance.now();
        while (performance.now() - since < 0.1);
        between.push(counted.turns);
        yield each;
      }
    }
    await using dump = new Dump({
      folder: snapshotDir,
      documents: { dump: () => ({ lineage: 'any', documents: dumped() }), insertDump: () => {} },
      logger: pino({ level: 'silent' }),
      limit: 64_000_000,
      everyMs: 600_000,
    });
    await dump.loaded;
    for (const passes of ['compared and written', 'compared']) {
      between = [];
      await dump.write();
      const longest = Math.max(
        ...Object.values(Object.groupBy(between, String)).map((all = []) => all.length),
      );
      expect([passes, between.length]).toEqual([passes, passes === 'compared' ? 100 : 200]);
      expect(longest).toBeLessThanOrEqual(6);
    }
  });

  it('that cannot be written costs one line in the log until it is written again', async () => {
    const { logger, ofDump } = recorded();
    const reader = await served({ logger });
    renameSync(snapshotDir, `${snapshotDir}-moved`);
    folders.push(`${snapshotDir}-moved`);
    writeFileSync(snapshotDir, '');
    await reader.clusters.clusters(scene.sample.b);
    await reader.dump?.write();
    await reader.dump?.write();
    expect((await machines(reader)).tier).toBe('memory');
    rmSync(snapshotDir);
    await reader.dump?.write();
    expect(ofDump()).toEqual([
      expect.stringMatching(/EEXIST|ENOTDIR/),
      'the dump in SNAPSHOT_DIR is written again',
    ]);
  });
});

/**
 * Readers on a streaming replica: never older than a version that they gave or received, and correct while it is
 * behind.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openStore } from '../../../src/db/connection/connect.ts';
import { createToken, revokeToken } from '../../../src/db/tokens.ts';
import { hashToken } from '../../../src/domain/token.ts';
import { ReplicaReads } from '../../../src/features/replica/reads.ts';
import { ReplicaTier } from '../../../src/features/replica/replica.ts';
import { Unavailable } from '../../../src/snapshot/document/answer.ts';
import type { Document } from '../../../src/snapshot/document/document.ts';
import { documentId } from '../../../src/snapshot/document/keys.ts';
import { NO_STAMPS } from '../../../src/snapshot/read/freshness.ts';
import { PostgresReads } from '../../../src/snapshot/read/postgres-reads.ts';
import { PostgresTier } from '../../../src/snapshot/read/tiers.ts';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../../engines/postgres-replica.ts';
import { addSample, reprice, type Sample, verify } from '../../snapshot/rows.ts';
import {
  countingSql,
  openScene,
  type ReaderOptions,
  type Scene,
  TestClock,
  type TestReader,
} from '../../snapshot/scene.ts';
import { type FaultProxy, faultProxy } from '../../support/fault-proxy.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';

const silent = pino({ level: 'silent' });
let servers: ReplicatedPostgres;
let redis: TestRedis;
let scene: Scene;
let sample: Sample;
let toPrimary: FaultProxy;
let toReplica: FaultProxy;
const closing = new AsyncDisposableStack();
beforeAll(async () => {
  servers = closing.use(await startReplicatedPostgres());
  redis = closing.use(await startTestRedis());
  const db = { url: servers.primary.url, name: 'fleetbook', [Symbol.asyncDispose]: async () => {} };
  toPrimary = closing.use(await faultProxy(servers.primary.url));
  toReplica = closing.use(await faultProxy(servers.replica.url));
  scene = closing.use(await openScene(redis, db));
  await scene.sql`update lineage set currency = 'USD'`;
  sample = await addSample(scene.sql);
  await scene.publisher.publishDirty();
});
afterAll(() => closing.disposeAsync());
afterEach(async () => {
  for (const way of [toPrimary, toReplica, servers.stream]) await way.heal();
  await servers.caughtUp();
});

const region = () => ({ kind: 'region', regionId: sample.region }) as const;
const open = (options: Partial<ReaderOptions> = {}) =>
  scene.reader({ databaseUrl: toPrimary.url, replicaUrl: toReplica.url, blockMs: 50, ...options });
/** Opens a linked reader on a replica that has everything. */
async function linked(options: Partial<ReaderOptions> = {}): Promise<TestReader> {
  await servers.caughtUp();
  const reader = open(options);
  await reader.catalogue.providers();
  await until(() => reader.link.linked);
  return reader;
}
/** The tier of a reader with two connections to each server, which its statements use in turn. */
function tierOn(replicaUrl: string, deadlineMs?: number) {
  const reads = (url: string) =>
    new PostgresReads({
      sql: closing.use(openStore({ url, role: 'reader', connections: 2, statementTimeoutMs: 2500 })).sql,
      logger: silent,
      now: Date.now,
      atOnce: 2,
      deadlineMs,
    });
  const both = new ReplicaReads({ primary: reads(toPrimary.url), replica: reads(replicaUrl) });
  const tier = new ReplicaTier(new PostgresTier(both.primary, () => {}), both);
  const wanted = {
    keys: scene.keys,
    name: region(),
    id: documentId(region()),
    cached: undefined,
    atLeast: 0,
    stamps: { cache: NO_STAMPS, postgres: NO_STAMPS },
    lookUp: undefined,
  };
  return { tier, both, wanted, read: () => tier.read(wanted) };
}
const fenced = (reader: TestReader) =>
  [...(reader.replica?.counts.fenced.values() ?? [])].reduce((a, b) => a + b, 0);
const because = (reader: TestReader, why: 'older' | 'unknown' | 'behind' | 'away') =>
  reader.replica?.counts.fenced.get(why) ?? 0;
/** Removes a document from the cache. PostgreSQL has it, and messages have no gap. */
const evict = () => scene.cache.del(scene.keys.document(region()));
const version = async (reader: TestReader) => {
  const { document, tier } = await reader.documents.get(region());
  return { version: document?.version, tier };
};
const LATER = '2026-07-08T09:10:11.121Z';
const price = () => `0.00${Math.floor(Math.random() * 90_000) + 10_000}`;
/** Makes and publishes a change that the replica lacks. Returns the region's version. */
async function changeMissingOnReplica(): Promise<number> {
  servers.stream.hang();
  const changed = await reprice(scene.sql, sample.small, price());
  await scene.publisher.publishDirty();
  return changed;
}

describe('a replica that is up to date', () => {
  it('gives documents that memory and Redis lack, and the primary only names the version', async () => {
    await using primary = countingSql(servers.primary.url);
    const reader = await linked({ sql: primary.sql });
    await evict();
    const before = fenced(reader);
    primary.statements.length = 0;
    expect(await until(() => version(reader))).toMatchObject({ tier: 'postgres' });
    expect(fenced(reader)).toBe(before);
    const [statement, ...others] = primary.statements.filter((text) => text.includes('from regions'));
    expect(statement).toMatch(/^select version from regions where id = /);
    expect(others).toEqual([]);
    expect(reader.replica?.counts.lagSeconds).toBeGreaterThanOrEqual(0);
  });

  it('gives documents that memory and Redis lack while the primary hangs', async () => {
    const reader = await linked({ postgresDeadlineMs: 2000 });
    await evict();
    const before = fenced(reader);
    toPrimary.hang();
    expect(await until(() => version(reader))).toMatchObject({ tier: 'postgres' });
    expect(fenced(reader)).toBe(before);
  });

  it('does not fill the cache: another reader may have newer versions', async () => {
    const reader = await linked();
    await evict();
    await version(reader);
    await reader.link.commands.run((commands) => commands.ping());
    expect(await scene.cache.exists(scene.keys.document(region()))).toBe(0);
    await scene.publisher.compare();
  });
});

describe('a replica that is behind', () => {
  it('gives no version older than a published one', async () => {
    const reader = await linked();
    const old = await version(reader);
    const changed = await changeMissingOnReplica();
    await until(() => reader.documents.getFresh(region()) === undefined);
    await evict();
    expect(await version(reader)).toEqual({ version: changed, tier: 'postgres' });
    expect(changed).toBeGreaterThan(old.version ?? 0);
    expect(because(reader, 'older') + because(reader, 'behind')).toBeGreaterThan(0);
    await scene.publisher.compare();
  });

  it('gives no version older than one that this reader gave and evicted', async () => {
    const reader = await linked({ memoryLimit: 1 });
    const changed = await changeMissingOnReplica();
    expect((await version(reader)).version).toBe(changed);
    await evict();
    expect(await version(reader)).toEqual({ version: changed, tier: 'postgres' });
    await scene.publisher.compare();
  });

  it('gives no old answer while the primary is unreachable: reads are unavailable', async () => {
    const reader = await linked({ memoryLimit: 1, postgresDeadlineMs: 300 });
    const changed = await changeMissingOnReplica();
    expect((await version(reader)).version).toBe(changed);
    await evict();
    await toPrimary.refuse();
    const failure = await version(reader).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Unavailable);
    expect((failure as Unavailable).retryAfterSeconds).toBeGreaterThan(0);
    await toPrimary.heal();
    await until(async () => (await version(reader)).version === changed);
    await scene.publisher.compare();
  });

  it('accepts no revoked token, and rejects no new one', async () => {
    const { db } = scene.store;
    const { token, id } = await createToken(db, { organizationId: sample.a, scopes: ['clusters:read'] });
    await scene.publisher.publishDirty();
    const reader = await linked();
    expect(await reader.tokens.verify(token)).toMatchObject({ organizationId: sample.a });
    servers.stream.hang();
    await revokeToken(db, id);
    const late = await createToken(db, { organizationId: sample.b, scopes: ['clusters:read'] });
    await scene.publisher.publishDirty();
    const name = { kind: 'token', hash: hashToken(token) } as const;
    await until(() => reader.documents.getFresh(name) === undefined);
    await scene.cache.del(
      scene.keys.document(name),
      scene.keys.document({ kind: 'token', hash: hashToken(late.token) }),
    );
    expect(await reader.tokens.verify(token)).toBeUndefined();
    expect(await reader.tokens.verify(late.token)).toMatchObject({ organizationId: sample.b });
    expect(because(reader, 'unknown')).toBeGreaterThan(0);
  });

  it('returns nothing older than a publication while no messages arrived', async () => {
    await using way = await faultProxy(redis.url);
    // A primary that answers late, as on a busy machine, leaves the answer to the replica.
    const reader = await linked({ redisUrl: way.url, postgresDeadlineMs: 60_000 });
    await version(reader);
    await way.refuse();
    const changed = await changeMissingOnReplica();
    await evict();
    await way.heal();
    await until(() => reader.link.linked);
    // No message arrives any more, so memory would hold a wrong answer. A busy machine may break the link once more.
    for (let read = 0; read < 10; ) {
      const { epoch } = reader.link;
      const { document, knownAt } = await reader.documents.get(region());
      await until(() => reader.link.linked);
      // On a busy machine memory answers after 250 ms, and states when its document was current.
      if (reader.link.epoch === epoch && knownAt === undefined) {
        expect(document?.version).toBe(changed);
        read++;
      }
      await reader.caughtUp();
    }
    await scene.publisher.compare();
  });

  it('states no time at which the data had another version', async () => {
    const reader = await linked({ memoryLimit: 1 });
    servers.stream.hang();
    const changed = price();
    await verify(scene.sql, 'cloud', LATER);
    await reprice(scene.sql, sample.small, changed);
    await evict();
    // No tier has the document, and no message named it. Only the time has arrived.
    for (const id of ['cloud', `cloud/${sample.region}`])
      await scene.cache.hset(scene.keys.stamps, id, `catalogue ${LATER}`);
    const confirmed = () => reader.documents.freshness.confirmed(reader.link.epoch);
    await until(() => confirmed().get(`cloud/${sample.region}`) === `catalogue ${LATER}`);
    const answer = await reader.catalogue.machine(sample.small);
    const shown = JSON.parse(answer?.body.identity.toString() ?? '{}').price;
    expect([answer?.asOf, shown]).toEqual([LATER, Number(changed)]);
    await scene.publisher.publishDirty();
  });

  it('gives no version that was replaced and is not published yet', async () => {
    const reader = await linked({ memoryLimit: 1 });
    servers.stream.hang();
    const changed = await reprice(scene.sql, sample.small, price());
    await evict();
    expect(await version(reader)).toEqual({ version: changed, tier: 'postgres' });
    expect(because(reader, 'older')).toBeGreaterThan(0);
    await scene.publisher.publishDirty();
  });

  it('is not read for data without a version', async () => {
    const reader = await linked();
    servers.stream.hang();
    const changed = await reprice(scene.sql, sample.small, price());
    const [row] = await reader.documents.postgres(
      (sql) => sql<{ version: string }[]>`select version from regions where id = ${sample.region}`,
    );
    expect(Number(row?.version)).toBe(changed);
    await scene.publisher.publishDirty();
  });
});

describe('an address that leads to two servers, one of which is behind', () => {
  /** The connections lead to the servers in turn. */
  async function bothServers() {
    const ways = [servers.primary, servers.replica].map(({ url }) => new URL(url));
    let connections = 0;
    const server = createServer((client) => {
      const way = ways[connections++ % 2];
      const upstream = connect(Number(way?.port), way?.hostname);
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const)
        from.on('error', () => to.destroy()).pipe(to);
    });
    closing.defer(() => void server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = new URL(servers.primary.url);
    url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    return url.href;
  }

  async function tierOnBoth() {
    const { tier, both, wanted, read } = tierOn(await bothServers());
    // Opens both connections.
    await Promise.all([both.ofReplica((sql) => sql`select 1`), both.ofReplica((sql) => sql`select 1`)]);
    const served = (document: Document) =>
      tier.onServed(wanted, { document, epoch: 1, at: Date.now(), asOf: undefined });
    return { read, served };
  }

  it('never gives an older version than the primary named', async () => {
    const { read } = await tierOnBoth();
    const changed = await changeMissingOnReplica();
    for (let reads = 0; reads < 8; reads++) expect((await read()).document?.version).toBe(changed);
    await scene.publisher.compare();
  });

  it('without the primary, it never gives an older version than was served, nor a later time than its server has', async () => {
    const { read, served } = await tierOnBoth();
    const old = (await read()).document;
    await verify(scene.sql, 'cloud', '2026-07-08T09:10:11.000Z');
    await servers.caughtUp();
    const changed = await changeMissingOnReplica();
    await verify(scene.sql, 'cloud', LATER);
    await toPrimary.refuse();
    for (let reads = 0; reads < 8; reads++) {
      const { document, asOf } = await read();
      expect([old?.version, changed]).toContain(document?.version);
      if (document?.version !== changed) expect(asOf).toBe('2026-07-08T09:10:11.000Z');
    }
    const newest = await until(async () => {
      const { document } = await read();
      return document?.version === changed && document;
    });
    served(newest);
    for (let reads = 0; reads < 8; reads++) {
      const found = await read().catch((error: unknown) => error);
      if (!(found instanceof Unavailable)) expect(found).toMatchObject({ document: { version: changed } });
    }
    await scene.publisher.compare();
  });
});

describe('while one server is down', () => {
  it('the primary answers for the replica', async () => {
    const reader = await linked({ postgresDeadlineMs: 500 });
    await toReplica.refuse();
    await evict();
    expect(await version(reader)).toMatchObject({ tier: 'postgres' });
    expect(because(reader, 'away')).toBeGreaterThan(0);
    await scene.publisher.compare();
  });

  it('the replica answers for the primary, also for a new reader', async () => {
    await servers.caughtUp();
    await toPrimary.refuse();
    await evict();
    const reader = open({ postgresDeadlineMs: 500 });
    // A busy machine may be late, so the test tries again.
    expect(await until(() => version(reader))).toMatchObject({ tier: 'postgres' });
    await scene.publisher.compare();
  });

  it('the replica confirms tokens no longer than known tokens are valid', async () => {
    const { token } = await createToken(scene.store.db, {
      organizationId: sample.a,
      scopes: ['clusters:read'],
    });
    await servers.caughtUp();
    await toPrimary.refuse();
    const clock = new TestClock();
    const reader = open({ postgresDeadlineMs: 500, now: clock.now, tokenStaleLimitMs: 60_000 });
    const verify = async () => reader.tokens.verify(token);
    expect(await until(() => verify().catch(() => undefined))).toMatchObject({ organizationId: sample.a });
    clock.forward(120_000);
    await expect(reader.tokens.verify(token)).rejects.toBeInstanceOf(Unavailable);
  });

  it('the replica states no time later than its last transaction', async () => {
    await servers.caughtUp();
    const reader = await linked({ memoryLimit: 1, postgresDeadlineMs: 500 });
    await version(reader);
    servers.stream.hang();
    const before = new Date().toISOString();
    const later = new Date(Date.now() + 60_000).toISOString();
    for (const id of ['cloud', `cloud/${sample.region}`])
      await scene.cache.hset(scene.keys.stamps, id, `catalogue ${later}`);
    const confirmed = () => reader.documents.freshness.confirmed(reader.link.epoch);
    await until(() => confirmed().get(`cloud/${sample.region}`) === `catalogue ${later}`);
    await evict();
    await toPrimary.refuse();
    const answer = await until(() => reader.catalogue.machine(sample.small));
    expect(answer?.tier).toBe('postgres');
    expect((answer?.asOf ?? 'none') < before).toBe(true);
    await scene.publisher.compare();
  });

  it('the replica gives no document whose newer version may be forgotten', async () => {
    await servers.caughtUp();
    const { tier, read } = tierOn(toReplica.url, 500);
    await toPrimary.refuse();
    const { document } = await until(() => read());
    for (let id = 0; id < 50_000; id++) tier.onPublished(`token:${id}`, 1);
    expect((await read()).document?.version).toBe(document?.version);
    tier.onPublished('token:one more', 1);
    await expect(read()).rejects.toBeInstanceOf(Unavailable);
  });

  it('the reader follows a new lineage that the replica lacks, and does not leave it again', async () => {
    const reader = await linked({ memoryLimit: 1, postgresDeadlineMs: 500 });
    await version(reader);
    servers.stream.hang();
    const { lineage } = await scene.publisher.restored('a test');
    await until(async () => {
      await version(reader);
      return reader.link.keys?.lineage === lineage?.id;
    });
    await toPrimary.refuse();
    await scene.cache.flushall();
    for (let i = 0; i < 5; i++) {
      await reader.caughtUp();
      const answer = await version(reader).catch(() => undefined);
      expect(answer?.tier).not.toBe('postgres');
      expect(reader.link.keys?.lineage).toBe(lineage?.id);
    }
  });
});

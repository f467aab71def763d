import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hashToken } from '../../src/domain/token.ts';
import { Unavailable } from '../../src/snapshot/answer.ts';
import { decodeDocument, encodeDocument, parseHeader } from '../../src/snapshot/format.ts';
import type { DocumentName } from '../../src/snapshot/keys.ts';
import { loadContent } from '../../src/snapshot/load.ts';
import { openStore } from '../../src/store/connect.ts';
import { createToken } from '../../src/store/tokens.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { addMachine, addOrganization, addRegion, addSample, reprice, type Sample, verify } from './rows.ts';
import { countingSql, openScene, type Scene, TestClock } from './scene.ts';

let redis: TestRedis;
let scene: Scene;
let sample: Sample;

beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis[Symbol.asyncDispose]());
beforeEach(async () => {
  scene = await openScene(redis);
  sample = await addSample(scene.sql);
  return () => scene[Symbol.asyncDispose]();
});

const region = (): DocumentName => ({ kind: 'region', regionId: sample.region });
const machinesOf = (body: { identity: Buffer }) =>
  JSON.parse(body.identity.toString()) as { id: number; price: number }[];

async function linkedReader(options = {}) {
  const reader = scene.reader(options);
  await reader.catalogue.providers();
  await until(() => reader.link.linked);
  return reader;
}

describe('the bytes of a document', () => {
  it('are the same from the publisher in its role and from a reader in its own, for every kind', async () => {
    const token = await createToken(scene.store.db, { organizationId: sample.a, scopes: ['clusters:read'] });
    await scene.publisher.publishDirty();
    await using reader = openStore({ url: scene.db.url, role: 'reader' });
    const names: DocumentName[] = [
      { kind: 'providers' },
      region(),
      { kind: 'region', regionId: sample.emptyRegion },
      { kind: 'clusters', organizationId: sample.a },
      { kind: 'token', hash: hashToken(token.token) },
    ];
    for (const name of names) {
      const published = await scene.cache.getBuffer(scene.keys.document(name));
      const content = (await loadContent(reader.sql, name)) ?? expect.unreachable('no content');
      const { value } = await encodeDocument(content);
      expect(value.equals(published ?? Buffer.alloc(0)), name.kind).toBe(true);
    }
  });

  it('are what the contract says', async () => {
    const reader = scene.reader();
    const { body } = await reader.catalogue.machines(sample.provider, sample.region);
    expect(body.identity.toString()).toBe(
      `[{"id":${sample.small},"name":"klein-ß","ram":8,"cpu":2,"price":0.0001,"ram_unit":"Binary",` +
        `"provider":{"id":1,"name":"Wölkchen 🚀"},"region":{"id":${sample.region},"name":"Zürich","code":"zrh"}},` +
        `{"id":${sample.big},"name":"大","ram":64,"cpu":16,"price":0.01,"ram_unit":"Binary",` +
        `"provider":{"id":1,"name":"Wölkchen 🚀"},"region":{"id":${sample.region},"name":"Zürich","code":"zrh"}}]`,
    );
    const cluster = await reader.clusters.cluster(sample.a, 'cluster-test');
    expect(JSON.parse(cluster?.body.identity.toString() ?? '')).toEqual({
      name: 'Ä’s',
      slug: 'cluster-test',
      region: { name: 'Zürich', code: 'zrh' },
      provider: { id: 1, name: 'Wölkchen 🚀' },
      status: 'Active',
      shards: 3,
      replicas: 1,
      user: { first_name: 'Ann', last_name: 'cluster-test' },
      machine: { ram: 8, cpu: 2, id: sample.small, ram_unit: 'Binary' },
      disks: [0, 1].map((i) => ({
        type: { name: `cluster-test ${i}`, price: 0.00000000045, unit: 'Decimal' },
        size: 150.5,
        unit: 'GB',
        autoscaling: false,
      })),
      created_at: '2022-02-14T10:11:26.567713',
    });
    const providers = await reader.catalogue.providers();
    expect(JSON.parse(providers.body.identity.toString())).toEqual([
      {
        id: 1,
        name: 'Wölkchen 🚀',
        regions: [
          { id: sample.emptyRegion, name: 'Nirgendwo', code: 'abc' },
          { id: sample.region, name: 'Zürich', code: 'zrh' },
        ],
      },
    ]);
  });

  it('have the same hash whichever tier answers', async () => {
    const fromPostgres = await scene.reader().catalogue.machines(sample.provider, sample.region);
    await scene.publisher.publishDirty();
    const reader = await linkedReader();
    const fromRedis = await reader.catalogue.machines(sample.provider, sample.region);
    const fromMemory = await reader.catalogue.machines(sample.provider, sample.region);
    expect([fromPostgres.tier, fromRedis.tier, fromMemory.tier]).toEqual(['postgres', 'redis', 'memory']);
    expect(fromRedis.body).toEqual(fromPostgres.body);
    expect(fromMemory.body).toEqual(fromPostgres.body);
  });
});

describe('a read goes through the tiers', () => {
  it('redis, then memory, without a statement to Postgres but for the lineage', async () => {
    await scene.publisher.publishDirty();
    await using counted = countingSql(scene.db.url);
    const reader = await linkedReader({ sql: counted.sql });
    const tiers = [];
    for (let i = 0; i < 3; i++) tiers.push((await reader.catalogue.machine(sample.big))?.tier);
    expect(tiers).toEqual(['redis', 'memory', 'memory']);
    expect(
      counted.statements.filter((text) => text.startsWith('select') && !text.includes('pg_catalog')),
    ).toEqual(['select id from lineage']);
  });

  it('postgres, then memory, and offers what it read to the cache for a while', async () => {
    const reader = await linkedReader();
    const tiers = [];
    for (let i = 0; i < 3; i++) tiers.push((await reader.clusters.clusters(sample.a)).tier);
    expect(tiers).toEqual(['postgres', 'memory', 'memory']);
    const key = scene.keys.document({ kind: 'clusters', organizationId: sample.a });
    await until(async () => (await scene.cache.exists(key)) === 1);
    expect(await scene.cache.ttl(key)).toBeGreaterThan(0);
    expect((await scene.reader().clusters.clusters(sample.a)).tier).toBe('redis');
  });

  it('a damaged value and one of another release are misses; the other release’s stays', async () => {
    await scene.publisher.publishDirty();
    const key = scene.keys.document(region());
    const value = (await scene.cache.getBuffer(key)) ?? Buffer.alloc(0);
    const damaged = Buffer.from(value);
    damaged[value.length - 3] = (damaged[value.length - 3] ?? 0) ^ 1;
    for (const wrong of [damaged, Buffer.from('FB9 of a later release'), Buffer.from('')]) {
      await scene.cache.set(key, wrong);
      const reader = await linkedReader();
      const answer = await reader.catalogue.machines(sample.provider, sample.region);
      expect(answer.tier).toBe('postgres');
      expect(machinesOf(answer.body)).toHaveLength(2);
      if (wrong.length > 0) expect(await scene.cache.getBuffer(key)).toEqual(wrong);
    }
  });

  it('keeps no more in memory than it may', async () => {
    await scene.publisher.publishDirty();
    const reader = await linkedReader({ memoryLimit: 2000 });
    await reader.catalogue.machines(sample.provider, sample.region);
    await reader.clusters.clusters(sample.a);
    await reader.clusters.clusters(sample.b);
    expect(reader.documents.peek({ kind: 'clusters', organizationId: sample.b })).toBeDefined();
    expect(reader.documents.peek({ kind: 'providers' })).toBeUndefined();
    expect((await reader.catalogue.providers()).tier).toBe('redis');
  });
});

describe('what does not exist', () => {
  it('is an empty list or nothing, and made-up ids of regions do not get as far as Postgres', async () => {
    await scene.publisher.publishDirty();
    await using counted = countingSql(scene.db.url);
    const reader = await linkedReader({ sql: counted.sql });
    const before = counted.statements.length;
    for (const [provider, id] of [
      [99, sample.region],
      [sample.provider, 4711],
      [2 ** 31 - 1, 2 ** 31 - 1],
    ] as const) {
      expect((await reader.catalogue.machines(provider, id)).body.identity.toString()).toBe('[]');
    }
    expect(counted.statements.length).toBe(before);
    expect(await reader.catalogue.machine(4711)).toBeUndefined();
    expect(await reader.catalogue.machine(sample.gpu)).toBeUndefined();
    expect(await reader.catalogue.machinePrices(sample.gpu)).toBeUndefined();
    expect(await reader.clusters.cluster(sample.a, 'no-such')).toBeUndefined();
    expect((await reader.clusters.clusters(4711)).body.identity.toString()).toBe('[]');
  });

  it('is asked of Postgres once, until something is published', async () => {
    await scene.publisher.publishDirty();
    await using counted = countingSql(scene.db.url);
    const reader = await linkedReader({ sql: counted.sql });
    const id = sample.gpu + 1;
    const asked = () => counted.statements.filter((text) => text.includes('where m.id =')).length;
    for (let i = 0; i < 3; i++) expect(await reader.catalogue.machine(id)).toBeUndefined();
    expect(asked()).toBe(1);
    expect(await addMachine(scene.sql, sample.emptyRegion, { name: 'new' })).toBe(id);
    expect(await reader.catalogue.machine(id)).toBeUndefined();
    expect(asked()).toBe(1);
    await scene.publisher.publishDirty();
    await until(() => reader.catalogue.machine(id));
  });

  it('is found as soon as it exists while the link is down', async () => {
    const clock = new TestClock();
    await using dead = await startTestRedis();
    await dead.kill();
    const reader = scene.reader({ redisUrl: dead.url, now: clock.now });
    const id = sample.gpu + 1;
    expect(await reader.catalogue.machine(id)).toBeUndefined();
    expect(await addMachine(scene.sql, sample.emptyRegion, { name: 'new' })).toBe(id);
    clock.forward(1001);
    expect((await reader.catalogue.machine(id))?.tier).toBe('postgres');
  });
});

describe('many reads of one key at once', () => {
  it('are one statement, and all get the same', async () => {
    await using counted = countingSql(scene.db.url);
    const reader = await linkedReader({ sql: counted.sql });
    const before = counted.statements.length;
    const answers = await Promise.all(Array.from({ length: 100 }, () => reader.clusters.clusters(sample.a)));
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
    const made = counted.statements.slice(before);
    expect(made.filter((text) => text.includes('from organizations o'))).toHaveLength(1);
    expect(made).toHaveLength(4);
  });

  it('of the price history too', async () => {
    await scene.publisher.publishDirty();
    await using counted = countingSql(scene.db.url);
    const reader = await linkedReader({ sql: counted.sql });
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => reader.catalogue.machinePrices(sample.big)),
    );
    expect(answers.map((answer) => answer?.body.identity.toString())).toEqual(Array(50).fill('[]'));
    expect(counted.statements.filter((text) => text.includes('from machine_prices'))).toHaveLength(1);
    expect((await reader.catalogue.machinePrices(sample.big))?.tier).toBe('memory');
  });

  it('beyond what Postgres is asked at once wait, and beyond that are refused with a time to come back', async () => {
    const organizations = [];
    for (let i = 0; i < 30; i++) organizations.push(await addOrganization(scene.sql, `org-${i}`));
    await using dead = await startTestRedis();
    await dead.kill();
    const reader = scene.reader({ redisUrl: dead.url, postgresReads: 1 });
    await reader.catalogue.providers();
    const results = await Promise.allSettled(organizations.map((id) => reader.clusters.clusters(id)));
    const refused = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason);
    expect(refused).toHaveLength(30 - 17);
    for (const reason of refused) {
      expect(reason).toBeInstanceOf(Unavailable);
      expect(reason.retryAfterSeconds).toBe(1);
    }
    expect((await reader.clusters.clusters(organizations[29] ?? 0)).tier).toBe('postgres');
  });
});

describe('the time of verification', () => {
  it('is that of the oldest source of the document, in every tier', async () => {
    const cloud = '2026-01-02T03:04:05.678Z';
    const reader = scene.reader();
    expect((await reader.catalogue.machines(sample.provider, sample.region)).asOf).toBe(cloud);
    await scene.publisher.publishDirty();
    const linked = await linkedReader();
    expect((await linked.catalogue.machine(sample.small))?.asOf).toBe(cloud);
    expect((await linked.catalogue.machine(sample.small))?.asOf).toBe(cloud);
    expect((await linked.clusters.clusters(sample.b)).asOf).toBe('2026-01-01T00:00:00.000Z');
    await verify(scene.sql, 'cloud', '2026-01-02T04:00:00Z');
    await scene.publisher.publishDirty();
    await linked.link.poll();
    expect((await linked.catalogue.machine(sample.small))?.asOf).toBe('2026-01-02T04:00:00.000Z');
  });

  it('of a document without rows is that of the oldest source of its kind, and never goes back', async () => {
    await scene.sql`insert into sources (id, kind, adapter, verified_at) values ('old', 'catalogue', 'test', '2025-06-01T00:00:00Z')`;
    await scene.publisher.publishDirty();
    const reader = await linkedReader();
    const empty = () => reader.catalogue.machines(sample.provider, sample.emptyRegion);
    expect((await empty()).asOf).toBe('2025-06-01T00:00:00.000Z');
    await scene.cache.hset(scene.keys.verified, 'old', 'catalogue 2024-01-01T00:00:00.000Z');
    await reader.link.poll();
    expect((await empty()).asOf).toBe('2025-06-01T00:00:00.000Z');
    expect((await reader.clusters.clusters(await addOrganization(scene.sql, 'empty'))).asOf).toBe(
      '2026-01-01T00:00:00.000Z',
    );
  });

  it('is not told while one of the sources was never verified', async () => {
    await scene.sql`update sources set verified_at = null where id = 'plane'`;
    const reader = scene.reader();
    expect((await reader.clusters.clusters(sample.a)).asOf).toBeUndefined();
    expect((await reader.catalogue.machine(sample.small))?.asOf).toBeDefined();
  });
});

describe('a version that was given is never followed by an older one', () => {
  it('also when the cache is set back to it', async () => {
    await scene.publisher.publishDirty();
    const key = scene.keys.document(region());
    const old = (await scene.cache.getBuffer(key)) ?? Buffer.alloc(0);
    const reader = await linkedReader({ pollMs: 20 });
    await reprice(scene.sql, sample.small, '0.5');
    await scene.publisher.publishDirty();
    const price = async () =>
      machinesOf((await reader.catalogue.machines(sample.provider, sample.region)).body)[1]?.price;
    await until(async () => (await price()) === 0.5);
    await scene.cache.set(key, old);
    // As after a failover: counting begins anew, and everything in memory has to be compared.
    const { epoch } = reader.link;
    await scene.cache.set(scene.keys.revision, '1');
    await until(() => reader.link.epoch > epoch);
    const answer = await reader.documents.get(region());
    expect(answer.document?.version).toBeGreaterThan(parseHeader(old)?.version ?? 0);
    expect(await price()).toBe(0.5);
  });

  it('in whatever order changes, publications, losses of the cache and reads come', async () => {
    await scene.publisher.publishDirty();
    const reader = await linkedReader({ pollMs: 5 });
    const key = scene.keys.document(region());
    const kept: Buffer[] = [];
    const seen: number[] = [];
    let isOver = false;
    const reading = (async () => {
      while (!isOver) {
        const { document } = await reader.documents.get(region());
        seen.push(document?.version ?? 0);
        await setImmediate();
      }
    })();
    let last = 0;
    for (let i = 1; i <= 80; i++) {
      last = await reprice(scene.sql, sample.small, String(i / 1000));
      if (i % 2 === 0) await scene.publisher.publishDirty();
      const value = await scene.cache.getBuffer(key);
      if (value && decodeDocument(region(), value)) kept.push(value);
      if (i % 7 === 0) await scene.cache.del(key);
      if (i % 11 === 0) await scene.cache.set(key, kept[Math.floor(kept.length / 2)] ?? '');
      if (i % 13 === 0) await scene.cache.flushall();
      if (i % 17 === 0) await scene.cache.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    }
    await scene.publisher.sweep();
    await until(async () => (await reader.documents.get(region())).document?.version === last);
    isOver = true;
    await reading;
    expect(seen.length).toBeGreaterThan(80);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  });
});

it('a region that a provider gets is listed and can be read as soon as it is published', async () => {
  await scene.publisher.publishDirty();
  const reader = await linkedReader();
  const id = await addRegion(scene.sql, sample.provider, 'new');
  await addMachine(scene.sql, id, { name: 'first' });
  expect((await reader.catalogue.machines(sample.provider, id)).body.identity.toString()).toBe('[]');
  await scene.publisher.publishDirty();
  await until(
    async () => machinesOf((await reader.catalogue.machines(sample.provider, id)).body).length === 1,
  );
});

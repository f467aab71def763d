import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/db/connection/connect.ts';
import { createToken } from '../../src/db/tokens.ts';
import { hashToken } from '../../src/domain/token.ts';
import { type Answer, Unavailable } from '../../src/snapshot/document/answer.ts';
import { tokenContent } from '../../src/snapshot/document/build.ts';
import { readColumns } from '../../src/snapshot/document/columns.ts';
import { encodeDocument, encoding } from '../../src/snapshot/document/format.ts';
import { type DocumentName, documentId } from '../../src/snapshot/document/keys.ts';
import { loadContent, loadRegion } from '../../src/snapshot/document/load.ts';
import { formForMemory } from '../../src/snapshot/document/token-document.ts';
import { memoryBudget } from '../../src/snapshot/read/budget.ts';
import { WAITING } from '../../src/snapshot/read/postgres-reads.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { addMachine, addRegion } from './rows.ts';
import { countingSql, sceneForEachTest, TestClock } from './scene.ts';

const scene = sceneForEachTest();

const region = (): DocumentName => ({ kind: 'region', regionId: scene.sample.region });
const machinesOf = (body: { identity: Buffer }) =>
  JSON.parse(body.identity.toString()) as { id: number; price: number }[];

describe('the bytes of a document', () => {
  it('are the same from the publisher and a reader, each in its role, for each kind', async () => {
    const token = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes: ['clusters:read'],
    });
    await scene.publisher.publishDirty();
    await using reader = openStore({ url: scene.db.url, role: 'reader' });
    const names: DocumentName[] = [
      { kind: 'providers' },
      region(),
      { kind: 'region', regionId: scene.sample.emptyRegion },
      { kind: 'clusters', organizationId: scene.sample.a },
      { kind: 'token', hash: hashToken(token.token) },
    ];
    for (const name of names) {
      const published = await scene.cache.getBuffer(scene.keys.document(name));
      const content = (await loadContent(reader.sql, name)) ?? expect.unreachable('no content');
      const value = await encodeDocument(content);
      expect(value.equals(published ?? Buffer.alloc(0)), name.kind).toBe(true);
    }
  });

  it('have each machine of a large region once, by price and id, with and without columns', async () => {
    const regionId = await addRegion(scene.sql, scene.sample.provider, 'large');
    // Many have the same price, and every seventh is sold out.
    const rows = await scene.sql<{ id: number; price: string; soldOut: boolean }[]>`
      insert into machines (region_id, name, cpu, ram, ram_unit, price, excluded_reason)
      select ${regionId}, 'm' || n, 2, 8, 'Binary', 0.001 * (1 + n % 3), case when n % 7 = 0 then 'sold_out' end
      from generate_series(1, 1100) n returning id, price, excluded_reason is not null as "soldOut"`;
    const ordered = rows
      .map(({ id, price, soldOut }) => ({ id, price: Number(price), soldOut }))
      .sort((a, b) => a.price - b.price || a.id - b.id);
    const ids = (isSoldOut: boolean) =>
      ordered.filter(({ soldOut }) => soldOut === isSoldOut).map(({ id }) => id);

    const list = (await loadContent(scene.sql, { kind: 'region', regionId })) ?? expect.unreachable();
    expect(machinesOf({ identity: list.body }).map(({ id }) => id)).toEqual(ids(false));
    const both = (await loadRegion(scene.sql, regionId)) ?? expect.unreachable();
    expect(both.region).toEqual(list);
    expect([...(readColumns(both.columns.body)?.ids ?? [])]).toEqual([...ids(false), ...ids(true)]);
  });

  it('follow the contract', async () => {
    const reader = scene.reader();
    const { body } = await reader.catalogue.machines(scene.sample.provider, scene.sample.region);
    expect(body.identity.toString()).toBe(
      `[{"id":${scene.sample.small},"name":"klein-ß","ram":8,"cpu":2,"price":0.0001,"ram_unit":"Binary",` +
        `"provider":{"id":1,"name":"Wölkchen 🚀"},"region":{"id":${scene.sample.region},"name":"Zürich","code":"zrh"}},` +
        `{"id":${scene.sample.big},"name":"大","ram":64,"cpu":16,"price":0.01,"ram_unit":"Binary",` +
        `"provider":{"id":1,"name":"Wölkchen 🚀"},"region":{"id":${scene.sample.region},"name":"Zürich","code":"zrh"}}]`,
    );
    const cluster = await reader.clusters.cluster(scene.sample.a, 'cluster-test');
    expect(JSON.parse(cluster?.body.identity.toString() ?? '')).toEqual({
      name: 'Ä’s',
      slug: 'cluster-test',
      region: { name: 'Zürich', code: 'zrh' },
      provider: { id: 1, name: 'Wölkchen 🚀' },
      status: 'Active',
      shards: 3,
      replicas: 1,
      user: { first_name: 'Ann', last_name: 'cluster-test' },
      machine: { ram: 8, cpu: 2, id: scene.sample.small, ram_unit: 'Binary' },
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
          { id: scene.sample.emptyRegion, name: 'Nirgendwo', code: 'abc' },
          { id: scene.sample.region, name: 'Zürich', code: 'zrh' },
        ],
      },
    ]);
  });

  it('have the same hash in each tier', async () => {
    const fromPostgres = await scene.reader().catalogue.machines(scene.sample.provider, scene.sample.region);
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    const fromRedis = await reader.catalogue.machines(scene.sample.provider, scene.sample.region);
    const fromMemory = await reader.catalogue.machines(scene.sample.provider, scene.sample.region);
    expect([fromPostgres.tier, fromRedis.tier, fromMemory.tier]).toEqual(['postgres', 'redis', 'memory']);
    const parts = ({ body: { identity, gzip, br, hash } }: Answer) => ({ identity, gzip, br, hash });
    expect(parts(fromRedis)).toEqual(parts(fromPostgres));
    expect(parts(fromMemory)).toEqual(parts(fromPostgres));
  });
});

describe('a read goes through the tiers', () => {
  it('redis, then memory, without a statement to Postgres', async () => {
    await scene.publisher.publishDirty();
    await using counted = countingSql(scene.db.url);
    const reader = await scene.linkedReader({ sql: counted.sql });
    const before = counted.statements.length;
    const tiers = [];
    for (let i = 0; i < 3; i++) tiers.push((await reader.catalogue.machine(scene.sample.big))?.tier);
    expect(tiers).toEqual(['redis', 'memory', 'memory']);
    expect(counted.statements.length).toBe(before);
  });

  it('postgres, then memory, and writes the result to the cache with an expiry', async () => {
    const reader = await scene.linkedReader();
    const tiers = [];
    for (let i = 0; i < 3; i++) tiers.push((await reader.clusters.clusters(scene.sample.a)).tier);
    expect(tiers).toEqual(['postgres', 'memory', 'memory']);
    const key = scene.keys.document({ kind: 'clusters', organizationId: scene.sample.a });
    await until(async () => (await scene.cache.exists(key)) === 1);
    expect(await scene.cache.ttl(key)).toBeGreaterThan(0);
    expect((await (await scene.linkedReader()).clusters.clusters(scene.sample.a)).tier).toBe('redis');
  });

  it('a damaged value and one of another release are misses; the other release’s stays', async () => {
    await scene.publisher.publishDirty();
    const key = scene.keys.document(region());
    const value = (await scene.cache.getBuffer(key)) ?? Buffer.alloc(0);
    const damaged = Buffer.from(value);
    damaged[value.length - 3] = (damaged[value.length - 3] ?? 0) ^ 1;
    for (const wrong of [damaged, Buffer.from('FB9 of a later release'), Buffer.from('')]) {
      await scene.cache.set(key, wrong);
      const reader = await scene.linkedReader();
      const answer = await reader.catalogue.machines(scene.sample.provider, scene.sample.region);
      expect(answer.tier).toBe('postgres');
      expect(machinesOf(answer.body)).toHaveLength(2);
      const stays = wrong.toString('latin1').startsWith('FB9');
      expect((await scene.cache.getBuffer(key))?.equals(wrong) ?? false).toBe(stays);
    }
  });

  it('stores no more in memory than its limit', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ memoryLimit: 8800 });
    await reader.catalogue.machines(scene.sample.provider, scene.sample.region);
    await reader.clusters.clusters(scene.sample.a);
    for (let reads = 0; reads < 2; reads++) await reader.clusters.clusters(scene.sample.b);
    expect(reader.documents.getFresh({ kind: 'clusters', organizationId: scene.sample.b })).toBeDefined();
    expect(reader.documents.getFresh({ kind: 'providers' })).toBeUndefined();
    expect((await reader.catalogue.providers()).tier).toBe('redis');
  });

  it('a full memory keeps hot documents while another client reads everything once', async () => {
    await scene.publisher.publishDirty();
    const regions = await Promise.all(
      Array.from({ length: 30 }, (_, i) => addRegion(scene.sql, scene.sample.provider, `zone-${i}`)),
    );
    for (const each of regions) await addMachine(scene.sql, each, { name: 'm'.repeat(200) });
    await scene.publisher.publishDirty();
    // Room for the list of providers and three or four regions.
    const reader = await scene.linkedReader({ memoryLimit: 40_000 });
    const { provider, region: hot } = scene.sample;
    await reader.catalogue.machines(provider, hot);
    for (const each of regions) expect((await reader.catalogue.machines(provider, each)).tier).toBe('redis');
    expect((await reader.catalogue.machines(provider, hot)).tier).toBe('memory');
    const last = regions.at(-1) ?? 0;
    const tiers = [];
    for (let reads = 0; reads < 2; reads++)
      tiers.push((await reader.catalogue.machines(provider, last)).tier);
    expect(tiers).toEqual(['redis', 'memory']);
  });
});

describe('a document that does not exist', () => {
  it('is an empty list or nothing, and random ids of regions do not reach Postgres', async () => {
    await scene.publisher.publishDirty();
    await using counted = countingSql(scene.db.url);
    const reader = await scene.linkedReader({ sql: counted.sql });
    const before = counted.statements.length;
    for (const [provider, id] of [
      [99, scene.sample.region],
      [scene.sample.provider, 4711],
      [2 ** 31 - 1, 2 ** 31 - 1],
    ] as const) {
      expect((await reader.catalogue.machines(provider, id)).body.identity.toString()).toBe('[]');
    }
    expect(counted.statements.length).toBe(before);
    expect(await reader.catalogue.machine(4711)).toBeUndefined();
    expect(await reader.catalogue.machine(scene.sample.gpu)).toBeUndefined();
    expect(await reader.catalogue.machinePrices(scene.sample.gpu)).toBeUndefined();
    expect(await reader.clusters.cluster(scene.sample.a, 'no-such')).toBeUndefined();
    expect((await reader.clusters.clusters(4711)).body.identity.toString()).toBe('[]');
  });

  it('is read from Postgres once, until the next publication', async () => {
    await scene.publisher.publishDirty();
    await using counted = countingSql(scene.db.url);
    const reader = await scene.linkedReader({ sql: counted.sql });
    const id = scene.sample.gpu + 1;
    const queries = () => counted.statements.filter((text) => text.includes('where m.id =')).length;
    for (let i = 0; i < 3; i++) expect(await reader.catalogue.machine(id)).toBeUndefined();
    expect(queries()).toBe(1);
    expect(await addMachine(scene.sql, scene.sample.emptyRegion, { name: 'new' })).toBe(id);
    expect(await reader.catalogue.machine(id)).toBeUndefined();
    expect(queries()).toBe(1);
    await scene.publisher.publishDirty();
    await until(() => reader.catalogue.machine(id));
  });

  it('is found as soon as it exists while the link is down', async () => {
    const clock = new TestClock();
    await using dead = await startTestRedis();
    await dead.kill();
    const reader = scene.reader({ redisUrl: dead.url, now: clock.now });
    const id = scene.sample.gpu + 1;
    expect(await reader.catalogue.machine(id)).toBeUndefined();
    expect(await addMachine(scene.sql, scene.sample.emptyRegion, { name: 'new' })).toBe(id);
    clock.forward(1001);
    expect((await reader.catalogue.machine(id))?.tier).toBe('postgres');
  });
});

describe('concurrent reads of one key', () => {
  it('are one statement, and all get the same result', async () => {
    await using counted = countingSql(scene.db.url);
    const reader = await scene.linkedReader({ sql: counted.sql });
    const before = counted.statements.length;
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => reader.clusters.clusters(scene.sample.a)),
    );
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
    const made = counted.statements.slice(before);
    expect(made.filter((text) => text.includes('from organizations o'))).toHaveLength(1);
    expect(made.filter((text) => text.startsWith('begin'))).toHaveLength(1);
  });

  it('are one statement for the price history too', async () => {
    await scene.publisher.publishDirty();
    await using counted = countingSql(scene.db.url);
    const reader = await scene.linkedReader({ sql: counted.sql });
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => reader.catalogue.machinePrices(scene.sample.big)),
    );
    expect(answers.map((answer) => answer?.body.identity.toString())).toEqual(Array(50).fill('[]'));
    expect(counted.statements.filter((text) => text.includes('join machine_prices'))).toHaveLength(1);
    expect((await reader.catalogue.machinePrices(scene.sample.big))?.tier).toBe('memory');
  });

  it('wait above the limit of Postgres, and above the queue’s limit are rejected with a retry time', async () => {
    const rows = await scene.sql<{ id: number }[]>`
      insert into organizations (slug, name)
      select 'org-' || i, 'Many' from generate_series(1, ${WAITING + 14}::integer) as i returning id`;
    const organizations = rows.map(({ id }) => id);
    await using dead = await startTestRedis();
    await dead.kill();
    const reader = scene.reader({ redisUrl: dead.url, postgresReads: 1, postgresDeadlineMs: 60_000 });
    await reader.catalogue.providers();
    const results = await Promise.allSettled(organizations.map((id) => reader.clusters.clusters(id)));
    const refused = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason);
    expect(refused).toHaveLength(13);
    for (const reason of refused) {
      expect(reason).toBeInstanceOf(Unavailable);
      expect(reason.retryAfterSeconds).toBe(1);
    }
    expect((await reader.clusters.clusters(organizations.at(-1) ?? 0)).tier).toBe('postgres');
  });
});

it('a provider’s new region is listed and readable once it is published', async () => {
  await scene.publisher.publishDirty();
  const reader = await scene.linkedReader();
  const id = await addRegion(scene.sql, scene.sample.provider, 'new');
  await addMachine(scene.sql, id, { name: 'first' });
  expect((await reader.catalogue.machines(scene.sample.provider, id)).body.identity.toString()).toBe('[]');
  await scene.publisher.publishDirty();
  await until(
    async () => machinesOf((await reader.catalogue.machines(scene.sample.provider, id)).body).length === 1,
  );
});

it('tokens beyond their half, once the search takes bytes, evict no other document', async () => {
  await scene.publisher.publishDirty();
  const memoryLimit = 64_000_000;
  const bytes = memoryBudget(memoryLimit).documents;
  const reader = await scene.linkedReader({ memoryLimit });
  const { documents } = reader;
  const region = { kind: 'region', regionId: scene.sample.region } as const;
  await documents.get(region);
  const record = { id: 1, organizationId: 1, scopes: [], expiresAt: null, revoked: false };
  for (let i = 0; documents.tokens.size < bytes * 0.49; i++) {
    const name = { kind: 'token', hash: String(i) } as const;
    const id = documentId(name);
    const document = formForMemory(id, encoding(tokenContent(name.hash, 1, record)).document);
    documents.tokens.onServed({ id, name }, { document, epoch: reader.link.epoch, at: Date.now() });
  }
  documents.reserve(bytes * 0.6);
  expect(documents.getFresh(region)).toBeDefined();
  await until(() => documents.memorySize <= bytes * 0.4);
  expect(documents.getFresh(region)).toBeDefined();
  expect(documents.tokens.size).toBeGreaterThan(bytes * 0.19);
});

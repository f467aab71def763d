import { pino } from 'pino';
import { beforeEach, expect, it } from 'vitest';
import type { SearchDocument } from '../../src/features/search/schema.ts';
import { Searchable } from '../../src/market/searchable.ts';
import type { Answer } from '../../src/snapshot/document/answer.ts';
import { announceRejected, moveStamps } from '../../src/snapshot/publish/fence.ts';
import { addMachine, addMachines, reprice, verify } from '../snapshot/rows.ts';
import { countingSql, sceneForEachTest, TestClock, type TestReader } from '../snapshot/scene.ts';
import { faultProxy } from '../support/fault-proxy.ts';
import { until } from '../support/until.ts';

const scene = sceneForEachTest({ redis: 'of the test' });

beforeEach(async () => {
  await addMachines(scene.sql, scene.sample.region, 10);
  await scene.publisher.publishDirty();
});

async function search(
  reader: TestReader,
): Promise<SearchDocument & Pick<Answer, 'tier' | 'asOf' | 'currency'>> {
  const answer = await reader.search.search({
    filters: {},
    ramUnit: 'AsSold',
    term: 'on_demand',
    sort: { by: 'price', descending: false },
    limit: 3,
    cursor: undefined,
    fields: ['id', 'price'],
    organizationId: undefined,
  });
  if (!answer) throw new Error('unreachable: there is no cursor');
  const { tier, asOf, currency } = answer;
  return { ...JSON.parse(answer.body.identity.toString()), tier, asOf, currency };
}

const cheapest = async (reader: TestReader) => (await search(reader)).machines[0];

/** Waits until the reader finds this price. */
const finds = (reader: TestReader, price: number) =>
  until(async () => (await cheapest(reader))?.price === price);

it('finds published machines, with their currency and age', async () => {
  const reader = await scene.linkedReader();
  expect(await search(reader)).toMatchObject({
    machines: [{ id: scene.sample.small, price: 0.0001 }, { id: scene.sample.big }, {}],
    tier: 'memory',
    currency: 'USD',
    asOf: '2026-01-02T03:04:05.678Z',
  });
});

it('is current by entries of the stream, and reads nothing from PostgreSQL', async () => {
  await using counting = countingSql(scene.db.url);
  const reader = await scene.linkedReader({ sql: counting.sql });
  const before = await search(reader);
  const statementsBefore = counting.statements.length;
  await reprice(scene.sql, scene.sample.small, '0.00005');
  await addMachine(scene.sql, scene.sample.emptyRegion, { name: 'new', price: '0.00001', source: 'cloud' });
  await scene.publisher.publishDirty();
  await finds(reader, 0.00001);
  const after = await search(reader);
  expect(after.machines[1]).toEqual({ id: scene.sample.small, price: 0.00005 });
  expect(after.version).not.toBe(before.version);
  expect(counting.statements.length).toBe(statementsBefore);
  // Another reader has the same version for the same catalogue.
  expect((await search(await scene.linkedReader())).version).toBe(after.version);
});

it('states a later verification', async () => {
  const reader = await scene.linkedReader({ blockMs: 20 });
  await search(reader);
  await verify(scene.sql, 'cloud', '2026-02-02T00:00:00.000Z');
  await scene.publisher.publishDirty();
  await until(async () => (await search(reader)).asOf === '2026-02-02T00:00:00.000Z');
  expect((await cheapest(reader))?.price).toBe(0.0001);
});

it('states a time that it covers, also after a short link', async () => {
  await using cache = await faultProxy(scene.redis.url);
  await cache.refuse();
  const time = Date.now();
  const reader = scene.reader({ redisUrl: cache.url, now: () => time });
  expect(await search(reader)).toMatchObject({ asOf: '2026-01-02T03:04:05.678Z' });
  await reprice(scene.sql, scene.sample.small, '0.00005');
  await verify(scene.sql, 'cloud', '2026-02-02T00:00:00.000Z');
  await scene.publisher.publishDirty();
  await cache.heal();
  await until(() => reader.link.linked);
  await reader.caughtUp();
  await cache.refuse();
  await until(() => !reader.link.linked);
  const { machines, asOf } = await search(reader);
  expect([machines[0]?.price, asOf]).toEqual([0.00005, '2026-02-02T00:00:00.000Z']);
});

it('states no later time while a newer version cannot be read', async () => {
  const { region, emptyRegion } = scene.sample;
  await using database = await faultProxy(scene.db.url);
  const reader = await scene.linkedReader({ databaseUrl: database.url });
  await search(reader);
  await verify(scene.sql, 'cloud', '2026-02-02T00:00:00.000Z');
  await scene.publisher.publishDirty();
  await reader.caughtUp();
  expect((await search(reader)).asOf).toBe('2026-02-02T00:00:00.000Z');
  await database.refuse();
  const received = Promise.withResolvers<void>();
  reader.documents.addPublicationListener({ onPublished: () => received.resolve(), onLineage: () => {} });
  await announceRejected(scene.cache, scene.keys, { kind: 'columns', regionId: region }, 99);
  await received.promise;
  const stamp = 'catalogue 2026-03-03T00:00:00.000Z';
  const stamps = new Map([region, emptyRegion].map((id) => [`cloud/${id}`, stamp]));
  await moveStamps(scene.cache, scene.keys, stamps);
  await reader.caughtUp();
  expect(reader.documents.freshness.confirmed(reader.link.epoch).get(`cloud/${region}`)).toBe(stamp);
  expect((await search(reader)).asOf).toBe('2026-02-02T00:00:00.000Z');
});

it('states the time of its own prices while a newer index replaces it', async () => {
  const { documents, link } = await scene.linkedReader({ blockMs: 20 });
  const logger = pino({ level: 'silent' });
  const searchable = new Searchable({ documents, link, logger, memoryLimit: 1e7, staleLimitMs: 3_600_000 });
  const earlier = await searchable.get();
  const places = earlier.index.regions.map((_, place) => place);
  await reprice(scene.sql, scene.sample.small, '0.00005');
  await verify(scene.sql, 'cloud', '2026-02-02T00:00:00.000Z');
  await scene.publisher.publishDirty();
  await until(async () => (await searchable.get()).asOf(places) === '2026-02-02T00:00:00.000Z');
  expect((await searchable.get()).index).not.toBe(earlier.index);
  expect(earlier.asOf(places)).toBe('2026-01-02T03:04:05.678Z');
});

it('is read from PostgreSQL if the cache is empty, and again after a gap', async () => {
  const reader = await scene.linkedReader({ blockMs: 20 });
  await scene.cache.flushall();
  expect((await cheapest(reader))?.price).toBe(0.0001);
  await reprice(scene.sql, scene.sample.small, '0.00005');
  await scene.publisher.compare();
  await finds(reader, 0.00005);
});

it('is compared with PostgreSQL without the cache, and uses the cache again later', async () => {
  const clock = new TestClock();
  const reader = await scene.linkedReader({ blockMs: 20, now: clock.now });
  await search(reader);
  await scene.redis.kill();
  await until(() => !reader.link.linked);
  await reprice(scene.sql, scene.sample.small, '0.00005');
  clock.forward(1500);
  await finds(reader, 0.00005);
  expect((await search(reader)).tier).toBe('memory');
});

it('answers until STALE_LIMIT if neither server answers', async () => {
  await using proxy = await faultProxy(scene.db.url);
  const clock = new TestClock();
  const reader = await scene.linkedReader({
    blockMs: 20,
    now: clock.now,
    staleLimitMs: 60_000,
    postgresDeadlineMs: 300,
    databaseUrl: proxy.url,
  });
  const before = await search(reader);
  await scene.redis.kill();
  await proxy.refuse();
  await until(() => !reader.link.linked);
  clock.forward(30_000);
  expect((await search(reader)).version).toBe(before.version);
  clock.forward(31_000);
  await expect(search(reader)).rejects.toMatchObject({ name: 'Unavailable' });
});

it('is unavailable with a reason if it does not fit; the rest works', async () => {
  const reader = await scene.linkedReader({ searchLimit: 3000 });
  await expect(search(reader)).rejects.toThrow(/MEMORY_LIMIT/);
  await expect(search(reader)).rejects.toMatchObject({ retryAfterSeconds: 60 });
  expect(reader.searchCounts()).toMatchObject({ machines: 0, failures: { 'too-large': 1, failed: 0 } });
  expect((await reader.catalogue.machine(scene.sample.small))?.tier).toBeDefined();
});

it('takes its memory from documents', async () => {
  const reader = await scene.linkedReader({ memoryLimit: 300_000, searchLimit: 80_000 });
  const region = () => reader.catalogue.machines(scene.sample.provider, scene.sample.region);
  await region();
  await search(reader);
  expect((await region()).body.identity.length).toBeGreaterThan(100);
  expect(reader.documents.memorySize).toBeLessThan(93_750);
});

it('never compares prices in two currencies', async () => {
  const reader = await scene.linkedReader();
  await search(reader);
  await scene.sql`update lineage set currency = 'EUR'`;
  await reprice(scene.sql, scene.sample.small, '0.00005');
  await scene.publisher.publishDirty();
  // The other region is still in the earlier currency.
  expect(await search(reader)).toMatchObject({ currency: 'USD', machines: [{ price: 0.0001 }, {}, {}] });
  await scene.sql`update regions set version = version + 1 where id = ${scene.sample.emptyRegion}`;
  await scene.publisher.publishDirty();
  await until(async () => (await search(reader)).currency === 'EUR');
  expect((await cheapest(reader))?.price).toBe(0.00005);
});

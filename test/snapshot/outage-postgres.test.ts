import { performance } from 'node:perf_hooks';
import { afterAll, afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { hashToken } from '../../src/domain/token.ts';
import { Unavailable } from '../../src/snapshot/document/answer.ts';
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { run } from '../support/postgres.ts';
import { until } from '../support/until.ts';
import { addOrganization, reprice } from './rows.ts';
import { type ReaderOptions, sceneForEachTest, TestClock, type TestReader } from './scene.ts';

const MINUTE = 60_000;

const scene = sceneForEachTest({ redis: 'of the test' });

let proxy: FaultProxy;
let token: string;
const proxies: FaultProxy[] = [];

beforeEach(async () => {
  proxy = await faultProxy(scene.db.url);
  proxies.push(proxy);
  const organizationId = scene.sample.a;
  ({ token } = await createToken(scene.store.db, { organizationId, scopes: ['clusters:read'] }));
  await scene.publisher.publishDirty();
});
// Hanging connections take long to close, so the proxy is healed first.
afterEach(() => proxy.heal());
afterAll(() => Promise.all(proxies.map((used) => used[Symbol.asyncDispose]())));

/** A reader that reaches Postgres only through the proxy. */
const open = (options: Partial<ReaderOptions> = {}) =>
  scene.reader({ databaseUrl: proxy.url, postgresDeadlineMs: 500, ...options });

async function linked(options: Partial<ReaderOptions> = {}): Promise<TestReader> {
  const reader = open(options);
  await reader.catalogue.providers();
  await until(() => reader.link.linked);
  return reader;
}

const machines = (reader: TestReader) =>
  reader.catalogue.machines(scene.sample.provider, scene.sample.region);

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

const outages: [string, () => Promise<void> | void][] = [
  ['refuses connections', () => proxy.refuse()],
  ['hangs', () => proxy.hang()],
];

describe.each(outages)('when Postgres %s', (_, strike) => {
  it('memory answers at once, and so does the cache for the rest', async () => {
    const reader = await linked();
    await machines(reader);
    await strike();
    const took = await timed(async () => {
      expect((await machines(reader)).tier).toBe('memory');
      expect((await reader.catalogue.machine(scene.sample.big))?.tier).toBe('memory');
      expect((await reader.clusters.cluster(scene.sample.b, 'cluster-test'))?.tier).toBe('redis');
      expect((await reader.clusters.clusters(scene.sample.b)).asOf).toBe('2026-01-01T00:00:00.000Z');
      expect(await reader.tokens.verify(token)).toMatchObject({ organizationId: scene.sample.a });
    });
    expect(took).toBeLessThan(2000);
  });

  it('publications still arrive', async () => {
    // Only the version's entry of the stream can outdate memory.
    const reader = await linked();
    await machines(reader);
    await strike();
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    const name = { kind: 'region', regionId: scene.sample.region } as const;
    await until(async () => (await reader.documents.get(name)).document?.version === version);
    expect((await machines(reader)).tier).toBe('memory');
  });

  it('data that no tier has is unavailable in bounded time, soon at once, and available again with Postgres', async () => {
    const unpublished = await addOrganization(scene.sql, 'unpublished');
    const reader = await linked();
    await strike();
    const readClusters = () => reader.clusters.clusters(unpublished);
    const first = await timed(() =>
      Promise.all(
        Array.from({ length: 4 }, (_, i) =>
          expect(reader.catalogue.machine(5000 + i)).rejects.toThrow(Unavailable),
        ),
      ),
    );
    expect(first).toBeLessThan(4000);
    expect(await timed(() => expect(readClusters()).rejects.toThrow(Unavailable))).toBeLessThan(900);
    await proxy.heal();
    await until(readClusters, { timeoutMs: 5000 });
    expect((await readClusters()).body.identity.toString()).toBe('[]');
  });

  it('a reader that starts then learns the lineage and the data from the cache', async () => {
    await strike();
    const reader = open();
    await until(() => reader.catalogue.providers(), { timeoutMs: 8000 });
    expect((await machines(reader)).tier).toBe('redis');
    expect(await reader.tokens.verify(token)).toMatchObject({ organizationId: scene.sample.a });
    await until(() => reader.link.linked);
  });
});

describe('dead connections', () => {
  it('are closed after several reads in a row without an answer, and not after a rejection', async () => {
    const onHang = vi.fn();
    const reader = await linked({ onHang, postgresDeadlineMs: 1000 });
    const readClusters = (id: number) => expect(reader.clusters.clusters(id)).rejects.toThrow(Unavailable);
    // If PostgreSQL does not name the lineage in time, the reader asks again later.
    await until(() => reader.documents.checkPostgres());
    await reader.clusters.clusters(4000);
    proxy.hang();
    await Promise.all([readClusters(4001), readClusters(4002)]);
    expect(onHang).not.toHaveBeenCalled();
    await readClusters(4003);
    expect(onHang).toHaveBeenCalledOnce();
    await proxy.refuse();
    for (let i = 0; i < 5; i++) await readClusters(4004 + i);
    expect(onHang).toHaveBeenCalledOnce();
  });
});

describe('when Postgres rejects all new connections', () => {
  it('known data is served, and new reads work once it accepts connections again', async () => {
    const { adminUrl } = inject('postgres');
    const reader = scene.reader();
    await until(async () => (await reader.catalogue.providers()) && reader.link.linked);
    const unpublished = await addOrganization(scene.sql, 'unpublished');
    await run(adminUrl, `alter database ${scene.db.name} allow_connections false`);
    await run(
      adminUrl,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${scene.db.name}'`,
    );
    expect((await machines(reader)).tier).toBe('redis');
    await expect(reader.clusters.clusters(unpublished)).rejects.toThrow(Unavailable);
    await run(adminUrl, `alter database ${scene.db.name} allow_connections true`);
    await until(() => reader.clusters.clusters(unpublished), { timeoutMs: 5000 });
    expect((await reader.clusters.clusters(unpublished)).body.identity.toString()).toBe('[]');
  });
});

describe('broken connections to Postgres', () => {
  it('fail no read', async () => {
    const ids = [];
    for (let i = 0; i < 12; i++) ids.push(await addOrganization(scene.sql, `org-${i}`));
    const reader = await linked({ postgresDeadlineMs: 20_000 });
    for (let round = 0; round < 3; round++) {
      await Promise.all(ids.slice(round * 4, round * 4 + 2).map((id) => reader.clusters.clusters(id)));
      const reading = Promise.all(
        ids.slice(round * 4 + 2, round * 4 + 4).map((id) => reader.clusters.clusters(id)),
      );
      await scene.cache.ping();
      proxy.cut();
      for (const { tier } of await reading) expect(tier).toBe('postgres');
    }
  });
});

describe('while the cache is away and Postgres is slow', () => {
  it('a token waits for Postgres, which knows that it is revoked, and a list comes from memory', async () => {
    const clock = new TestClock();
    const reader = await linked({ now: clock.now, postgresDeadlineMs: 5000 });
    const other = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes: ['clusters:read'],
    });
    await machines(reader);
    expect(await reader.tokens.verify(other.token)).toBeDefined();
    await scene.redis.kill();
    await until(() => !reader.link.linked);
    await revokeToken(scene.store.db, other.id);
    proxy.delay(300);
    clock.forward(MINUTE);
    expect((await machines(reader)).tier).toBe('memory');
    expect(await reader.tokens.verify(other.token)).toBeUndefined();
  });
});

describe('while cache and Postgres are both away', () => {
  async function strand(reader: TestReader): Promise<void> {
    await Promise.all([scene.redis.kill(), proxy.refuse()]);
    await until(() => !reader.link.linked);
  }

  it('memory serves documents up to the stale limit and tokens up to theirs, then nothing', async () => {
    const clock = new TestClock();
    const reader = await linked({ now: clock.now });
    const before = await machines(reader);
    await reader.tokens.verify(token);
    await strand(reader);
    clock.forward(14 * MINUTE);
    const stale = await machines(reader);
    expect([stale.tier, stale.body, stale.asOf]).toEqual(['memory', before.body, before.asOf]);
    expect(await reader.tokens.verify(token)).toMatchObject({ organizationId: scene.sample.a });
    clock.forward(2 * MINUTE);
    await expect(reader.tokens.verify(token)).rejects.toThrow(Unavailable);
    expect((await machines(reader)).tier).toBe('memory');
    clock.forward(43 * MINUTE);
    expect((await machines(reader)).tier).toBe('memory');
    clock.forward(2 * MINUTE);
    await expect(machines(reader)).rejects.toThrow(Unavailable);
  });

  it('each request is answered at once', async () => {
    const clock = new TestClock();
    const reader = await linked({ now: clock.now });
    await machines(reader);
    await Promise.all([scene.redis.kill(), proxy.hang()]);
    await until(() => !reader.link.linked);
    clock.forward(MINUTE);
    // Only the first few wait for a timeout.
    await Promise.allSettled([
      machines(reader),
      ...Array.from({ length: 3 }, async (_, i) => reader.clusters.clusters(3000 + i)),
    ]);
    const took = await timed(async () => {
      for (let i = 0; i < 50; i++) expect((await machines(reader)).tier).toBe('memory');
    });
    expect(took).toBeLessThan(4000);
  });

  it('the limit counts from the last confirmation of memory, not from its read', async () => {
    const clock = new TestClock();
    const reader = await linked({ now: clock.now });
    await machines(reader);
    clock.forward(600 * MINUTE);
    await reader.caughtUp();
    await proxy.refuse();
    const { epoch } = reader.link;
    // An empty cache cannot confirm memory.
    await scene.redis.restart();
    await until(() => reader.link.linked && reader.link.epoch > epoch);
    clock.forward(59 * MINUTE);
    expect((await machines(reader)).tier).toBe('memory');
    clock.forward(2 * MINUTE);
    await expect(machines(reader)).rejects.toThrow(Unavailable);
  });

  it('a revoked token stays rejected while no server is reachable', async () => {
    const reader = await linked();
    const other = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes: ['clusters:read'],
    });
    expect(await reader.tokens.verify(other.token)).toBeDefined();
    expect(await reader.tokens.verify(token)).toBeDefined();
    await proxy.refuse();
    await revokeToken(scene.store.db, other.id);
    await scene.publisher.publishDirty();
    const name = { kind: 'token', hash: hashToken(other.token) } as const;
    await until(() => reader.documents.getFresh(name) === undefined);
    await scene.redis.kill();
    await until(() => !reader.link.linked);
    await expect(reader.tokens.verify(other.token)).rejects.toThrow(Unavailable);
    expect(await reader.tokens.verify(token)).toBeDefined();
  });
});

describe('the price history', () => {
  it('comes from memory while Postgres is away, if it was read before', async () => {
    const clock = new TestClock();
    await scene.sql`
      insert into machine_prices (machine_id, valid_from, price, source_amount, source_per, source_currency)
      values (${scene.sample.small}, '2026-01-01T00:00:00.123456Z', 0.0001, 0.0001, 'minute', 'USD')`;
    const reader = await linked({ now: clock.now });
    const first = await reader.catalogue.machinePrices(scene.sample.small);
    expect(JSON.parse(first?.body.identity.toString() ?? '')).toEqual([
      { price: 0.0001, from: '2026-01-01T00:00:00.123456Z', to: null },
    ]);
    await proxy.refuse();
    clock.forward(59 * MINUTE);
    await reader.caughtUp();
    const stale = await reader.catalogue.machinePrices(scene.sample.small);
    expect([stale?.tier, stale?.body]).toEqual(['memory', first?.body]);
    await expect(reader.catalogue.machinePrices(scene.sample.big)).rejects.toThrow(Unavailable);
    clock.forward(2 * MINUTE);
    await reader.caughtUp();
    await expect(reader.catalogue.machinePrices(scene.sample.small)).rejects.toThrow(Unavailable);
  });
});

describe('a lineage from the cache', () => {
  it('is dropped when Postgres is back and has another', async () => {
    await proxy.refuse();
    const reader = open({ blockMs: 20 });
    await until(() => reader.catalogue.providers());
    expect((await machines(reader)).tier).toBe('redis');
    // A newer database that no worker has published yet: only Postgres has its lineage.
    await scene.sql`update lineage set id = gen_random_uuid()`;
    await scene.sql`update machines set name = 'of the younger one' where id = ${scene.sample.small}`;
    await proxy.heal();
    await until(async () => (await machines(reader)).body.identity.includes('of the younger one'), {
      timeoutMs: 8000,
    });
    expect((await machines(reader)).tier).toBe('memory');
  });
});

import { describe, expect, it } from 'vitest';
import { moveStamps } from '../../../src/snapshot/publish/fence.ts';
import { type FaultProxy, faultProxy } from '../../support/fault-proxy.ts';
import { until } from '../../support/until.ts';
import { addMachine, addOrganization, reprice, verify } from '../rows.ts';
import { loseEntry, sceneForEachTest, TestClock, type TestReader } from '../scene.ts';

const scene = sceneForEachTest();

/** Waits until a reader has joined the stream again, and so has read all stamps. */
async function untilJoined(): Promise<void> {
  const joins = async () =>
    Number(/cmdstat_hgetall:calls=(\d+)/.exec(await scene.cache.info('commandstats'))?.[1] ?? 0);
  const before = await joins();
  await until(async () => (await joins()) > before + 1);
}

describe('the freshness of an answer', () => {
  it('is that of the document’s oldest source, in each tier', async () => {
    const cloud = '2026-01-02T03:04:05.678Z';
    const reader = scene.reader();
    expect((await reader.catalogue.machines(scene.sample.provider, scene.sample.region)).asOf).toBe(cloud);
    await scene.publisher.publishDirty();
    const linked = await scene.linkedReader();
    expect((await linked.catalogue.machine(scene.sample.small))?.asOf).toBe(cloud);
    expect((await linked.catalogue.machine(scene.sample.small))?.asOf).toBe(cloud);
    expect((await linked.clusters.clusters(scene.sample.b)).asOf).toBe('2026-01-01T00:00:00.000Z');
    await verify(scene.sql, 'cloud', '2026-01-02T04:00:00Z');
    await scene.publisher.publishDirty();
    await linked.caughtUp();
    expect((await linked.catalogue.machine(scene.sample.small))?.asOf).toBe('2026-01-02T04:00:00.000Z');
  });

  it('is never newer than the document, also if the entry of a change was lost', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    await reader.catalogue.machine(scene.sample.small);
    const received: string[] = [];
    reader.documents.addInvalidationListener({
      onInvalidate: () => {},
      onInvalidateAll: () => received.push('changes'),
      onFreshness: () => received.push('times'),
    });
    await scene.cache.hset(scene.keys.stamps, 'cloud', 'catalogue 2026-01-02T05:00:00.000Z');
    await loseEntry(scene);
    await reader.caughtUp();
    // The link ends, and then the epoch.
    expect(received).toEqual(['changes', 'changes', 'times']);
  });

  it('advances without a stream once all of memory was compared after it', async () => {
    const clock = new TestClock();
    const reader = scene.reader({ redisUrl: 'redis://127.0.0.1:1', now: clock.now });
    const readOnce = async () => {
      const { asOf, body } = (await reader.catalogue.machine(scene.sample.small)) ?? expect.unreachable();
      return { asOf, price: (JSON.parse(body.identity.toString()) as { price: number }).price };
    };
    // The times are read now, the region later: it is fresher when the times are read again.
    await reader.clusters.clusters(scene.sample.b);
    clock.forward(900);
    const before = await readOnce();
    await scene.sql.begin(async (sql) => {
      await reprice(sql as never, scene.sample.small, '0.75');
      await verify(sql as never, 'cloud', '2026-01-02T06:00:00Z');
    });
    clock.forward(150);
    expect(await readOnce()).toEqual(before);
    // Time passes: the reader queries PostgreSQL again if a busy machine was late.
    await until(async () => {
      clock.forward(20);
      return (await readOnce()).asOf !== before.asOf;
    });
    const after = await readOnce();
    expect(after.asOf).toBe('2026-01-02T06:00:00.000Z');
    expect(after.price).not.toBe(before.price);
  });

  it('is at most the last confirmation of the given document if no publisher confirms it', async () => {
    await using way = await faultProxy(scene.db.url);
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ databaseUrl: way.url });
    await reader.catalogue.machine(scene.sample.small);
    await way.refuse();
    const lost = Date.now();
    // The cache has lost the region and an entry, and states that its source was read since.
    const later = new Date(lost + 60_000).toISOString();
    await scene.cache
      .pipeline()
      .del(scene.keys.document({ kind: 'region', regionId: scene.sample.region }))
      .hset(
        scene.keys.stamps,
        'cloud',
        `catalogue ${later}`,
        `cloud/${scene.sample.region}`,
        `catalogue ${later}`,
      )
      .exec();
    await loseEntry(scene);
    await reader.caughtUp();
    expect(reader.documents.freshness.confirmed(reader.link.epoch).get('cloud')).toBe(`catalogue ${later}`);
    const { tier, asOf } = (await reader.catalogue.machine(scene.sample.small)) ?? expect.unreachable();
    expect(tier).toBe('memory');
    expect(Date.parse(asOf ?? '')).toBeLessThanOrEqual(lost);
  });

  it('is that of the cache for a document of the cache, also after PostgreSQL named a later one', async () => {
    await using way = await faultProxy(scene.redis.url);
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ redisUrl: way.url });
    const readOnce = async () => {
      const { asOf, body } = (await reader.catalogue.machine(scene.sample.small)) ?? expect.unreachable();
      return { asOf, price: (JSON.parse(body.identity.toString()) as { price: number }).price };
    };
    const before = await readOnce();
    await way.refuse();
    await until(() => !reader.link.linked);
    // A run commits, and its publisher is late.
    await scene.sql.begin(async (sql) => {
      await reprice(sql as never, scene.sample.small, '0.75');
      await verify(sql as never, 'cloud', '2026-01-02T06:00:00Z');
    });
    const known = async () => (await reader.documents.freshness.begin()).postgres.get('cloud');
    await until(async () => (await known()) === 'catalogue 2026-01-02T06:00:00.000Z');
    await way.heal();
    await until(() => reader.link.linked);
    expect(await readOnce()).toEqual(before);
    await scene.publisher.publishDirty();
    let after = before;
    // On a busy machine a read that began before the publication may be under way.
    await until(async () => {
      await reader.caughtUp();
      after = await readOnce();
      return after.asOf !== before.asOf;
    });
    expect(after.asOf).toBe('2026-01-02T06:00:00.000Z');
    expect(after.price).not.toBe(before.price);
  });

  /** Commits and publishes a price together with the time of its run. */
  async function runAndPublish(price: string, at: string) {
    await scene.sql.begin(async (sql) => {
      await reprice(sql as never, scene.sample.small, price);
      await verify(sql as never, 'cloud', at);
    });
    await scene.publisher.publishDirty();
  }

  const shown = async (reader: TestReader) => {
    const { asOf, body, tier } = (await reader.catalogue.machine(scene.sample.small)) ?? expect.unreachable();
    return { asOf, price: (JSON.parse(body.identity.toString()) as { price: number }).price, tier };
  };

  /** A reader with a test clock that reaches only PostgreSQL at first, over one connection. */
  async function readerOfPostgres(cache: FaultProxy, databaseUrl = scene.db.url) {
    await scene.publisher.publishDirty();
    await cache.refuse();
    let time = Date.now();
    const options = { now: () => time, postgresReads: 1, postgresDeadlineMs: 60_000 };
    const reader = scene.reader({ ...options, redisUrl: cache.url, databaseUrl });
    await reader.clusters.clusters(scene.sample.a);
    const forward = (ms: number) => {
      time += ms;
    };
    return { reader, forward };
  }

  it('is from before the read if the reader gets linked during the read', async () => {
    await using cache = await faultProxy(scene.redis.url);
    await using database = await faultProxy(scene.db.url);
    const { reader, forward } = await readerOfPostgres(cache, database.url);
    // The statement is prepared by its second use. The clusters read the stamps, so the region does not.
    for (let reads = 0; reads < 2; reads++) {
      forward(1001);
      await reader.clusters.clusters(scene.sample.a);
      await shown(reader);
    }
    forward(1001);
    await reader.clusters.clusters(scene.sample.a);
    // All waiting reads have had the connection.
    await reader.documents.postgres((sql) => sql`select 1`);
    const [muted] = await scene.sql<{ now: string }[]>`select clock_timestamp()::text as now`;
    database.mute();
    const reading = shown(reader);
    await until(async () => {
      const [, answered] = await scene.sql.begin((sql) => [
        sql`set local role none`,
        sql`
          select from pg_stat_activity
          where datname = current_database() and state = 'idle' and query_start > ${muted?.now ?? ''}::text::timestamptz
            and query like '%version%regions%'`,
      ]);
      return answered.length > 0;
    });
    await runAndPublish('0.75', '2026-01-02T06:00:00Z');
    await cache.heal();
    await until(() => reader.link.linked);
    await reader.caughtUp();
    await database.heal();
    const before = ['2026-01-02T03:04:05.678Z', 0.0001];
    const after = ['2026-01-02T06:00:00.000Z', 0.75];
    const { asOf, price } = await reading;
    expect([asOf, price]).toEqual(before);
    // Memory may have answered, and the read go on. A request that joins it gets what it has read before the link.
    await until(async () => {
      const answer = await shown(reader);
      expect([before, after]).toContainEqual([answer.asOf, answer.price]);
      return answer.price === 0.75;
    });
  });

  it('covers memory, also after a link of only a moment', async () => {
    await using cache = await faultProxy(scene.redis.url);
    const { reader } = await readerOfPostgres(cache);
    const before = await shown(reader);
    await runAndPublish('0.75', '2026-01-02T06:00:00Z');
    await cache.heal();
    await until(() => reader.link.linked);
    await reader.caughtUp();
    await cache.refuse();
    await until(() => !reader.link.linked);
    expect(before).toMatchObject({ asOf: '2026-01-02T03:04:05.678Z', price: 0.0001 });
    expect(await shown(reader)).toMatchObject({ asOf: '2026-01-02T06:00:00.000Z', price: 0.75 });
  });

  it('stops at the first newer version while the newer document cannot be read', async () => {
    await using cache = await faultProxy(scene.redis.url);
    await using database = await faultProxy(scene.db.url);
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ redisUrl: cache.url, databaseUrl: database.url });
    const before = await shown(reader);
    await verify(scene.sql, 'cloud', '2026-01-02T05:00:00Z');
    await scene.publisher.publishDirty();
    await reader.caughtUp();
    expect(await shown(reader)).toEqual({ ...before, tier: 'memory', asOf: '2026-01-02T05:00:00.000Z' });
    const received = Promise.withResolvers<void>();
    reader.documents.addPublicationListener({ onPublished: () => received.resolve(), onLineage: () => {} });
    await runAndPublish('0.75', '2026-01-02T06:00:00Z');
    await received.promise;
    await reader.caughtUp();
    await database.refuse();
    await cache.refuse();
    await until(() => !reader.link.linked);
    expect(await shown(reader)).toEqual({ ...before, tier: 'memory', asOf: '2026-01-02T05:00:00.000Z' });
  });

  it('is that of the present cache after the cache was restored to an older state', async () => {
    await scene.publisher.publishDirty();
    const earlier = new Map<string, Buffer>();
    for (const key of await scene.cache.keys('*')) {
      const value = await scene.cache.dumpBuffer(key);
      if (value) earlier.set(key, value);
    }
    const reader = await scene.linkedReader();
    await runAndPublish('0.75', '2026-01-02T06:00:00Z');
    await reader.caughtUp();
    // At once, as a failover does: the reader may join at any time.
    const restoring = scene.cache.multi();
    for (const [key, value] of earlier) restoring.restore(key, 0, value, 'REPLACE');
    await restoring.exec();
    await reader.caughtUp();
    expect(await shown(reader)).toMatchObject({ asOf: '2026-01-02T03:04:05.678Z', price: 0.0001 });
  });

  it('of documents in memory does not go back after the cache was flushed', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    const before = await shown(reader);
    const { epoch } = reader.link;
    await scene.cache.flushall();
    await until(async () => {
      await reader.caughtUp();
      return reader.link.epoch > epoch;
    });
    expect(await shown(reader)).toMatchObject({ asOf: before.asOf, price: before.price });
  });

  it('is not taken from a damaged cache', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    for (const stamp of [
      'catalogue 2099-01-01T00:00:00Z\u0001',
      'catalogue 2099',
      'unknown 2099-01-01T00:00:00Z',
    ])
      await scene.cache.hset(scene.keys.stamps, 'cloud', stamp);
    await loseEntry(scene);
    await reader.caughtUp();
    expect((await reader.catalogue.machine(scene.sample.small))?.asOf).toBe('2026-01-02T03:04:05.678Z');
  });

  const stampRegion = (source: string, regionId: number, at: string) => scene.sql`
    insert into region_freshness (source_id, region_id, verified_at) values (${source}, ${regionId}, ${at})
    on conflict (source_id, region_id) do update set verified_at = excluded.verified_at`;
  const addOld = () => scene.sql`
    insert into sources (id, kind, adapter, verified_at) values ('old', 'catalogue', 'test', '2025-06-01T00:00:00Z')`;

  it('is separate for each region: an unread one keeps its time', async () => {
    await stampRegion('cloud', scene.sample.emptyRegion, '2025-12-31T00:00:00Z');
    await scene.publisher.publishDirty();
    const { provider, region, emptyRegion } = scene.sample;
    for (const reader of [scene.reader(), await scene.linkedReader()]) {
      expect((await reader.catalogue.machines(provider, region)).asOf).toBe('2026-01-02T03:04:05.678Z');
      expect((await reader.catalogue.machines(provider, emptyRegion)).asOf).toBe('2025-12-31T00:00:00.000Z');
    }
  });

  it('of a region of two sources is the older one’s, as long as both have a machine there', async () => {
    const { provider, region } = scene.sample;
    await addOld();
    await stampRegion('old', region, '2025-06-01T00:00:00Z');
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    const asOf = async () => (await reader.catalogue.machines(provider, region)).asOf;
    expect(await asOf()).toBe('2026-01-02T03:04:05.678Z');
    await addMachine(scene.sql, region, { name: 'its own', source: 'old' });
    await scene.publisher.publishDirty();
    await until(async () => (await asOf()) === '2025-06-01T00:00:00.000Z');
  });

  it('of a region of two sources is absent while one of them was never read there', async () => {
    const { provider, region } = scene.sample;
    await addOld();
    await addMachine(scene.sql, region, { name: 'its own', source: 'old' });
    await scene.publisher.publishDirty();
    for (const reader of [scene.reader(), await scene.linkedReader()])
      expect((await reader.catalogue.machines(provider, region)).asOf).toBeUndefined();
  });

  it('of a region without machines is that of the oldest source that read it, and never goes back', async () => {
    const { provider, emptyRegion } = scene.sample;
    await addOld();
    await stampRegion('old', emptyRegion, '2025-06-01T00:00:00Z');
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ blockMs: 10 });
    const empty = () => reader.catalogue.machines(provider, emptyRegion);
    expect((await empty()).asOf).toBe('2025-06-01T00:00:00.000Z');
    await scene.cache.hset(scene.keys.stamps, `old/${emptyRegion}`, 'catalogue 2024-01-01T00:00:00.000Z');
    const { epoch } = reader.link;
    await untilJoined();
    expect(reader.link.epoch).toBe(epoch);
    expect((await empty()).asOf).toBe('2025-06-01T00:00:00.000Z');
  });

  it('of an organization without clusters is that of the oldest source of clusters that is not retired', async () => {
    const organization = await addOrganization(scene.sql, 'empty');
    await scene.sql`
      insert into sources (id, kind, adapter, verified_at) values ('late', 'clusters', 'test', '2026-02-01T00:00:00Z')`;
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    const asOf = async () => (await reader.clusters.clusters(organization)).asOf;
    expect(await asOf()).toBe('2026-01-01T00:00:00.000Z');
    await scene.sql`update sources set retired_at = now() where id = 'plane'`;
    await scene.publisher.publishDirty();
    await until(async () => (await asOf()) === '2026-02-01T00:00:00.000Z');
    // A publisher that read before and writes after does not restore it; the next good run does.
    await moveStamps(scene.cache, scene.keys, new Map([['plane', 'clusters 2026-01-01T00:00:00.000Z']]));
    expect(await scene.cache.hget(scene.keys.stamps, 'plane')).toBe('retired 2026-01-01T00:00:00.000Z');
    await scene.sql`update sources set retired_at = null, verified_at = '2026-01-15T00:00:00Z' where id = 'plane'`;
    await scene.publisher.publishDirty();
    await until(async () => (await asOf()) === '2026-01-15T00:00:00.000Z');
  });

  it('of the list of providers is that of the oldest catalogue', async () => {
    await addOld();
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    expect((await reader.catalogue.providers()).asOf).toBe('2025-06-01T00:00:00.000Z');
    expect((await reader.clusters.clusters(await addOrganization(scene.sql, 'empty'))).asOf).toBe(
      '2026-01-01T00:00:00.000Z',
    );
  });

  it('comes from Postgres while the cache is reachable and has none', async () => {
    const reader = await scene.linkedReader();
    await reader.caughtUp();
    expect(await scene.cache.exists(scene.keys.stamps)).toBe(0);
    const late = await scene.linkedReader();
    await late.caughtUp();
    expect((await late.clusters.clusters(scene.sample.a)).asOf).toBe('2026-01-01T00:00:00.000Z');
  });

  it('is absent while one of the sources was never verified', async () => {
    await scene.sql`update sources set verified_at = null where id = 'plane'`;
    const reader = scene.reader();
    expect((await reader.clusters.clusters(scene.sample.a)).asOf).toBeUndefined();
    expect((await reader.catalogue.machine(scene.sample.small))?.asOf).toBeDefined();
  });
});

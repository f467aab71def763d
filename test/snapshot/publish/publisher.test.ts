import { beforeEach, describe, expect, it } from 'vitest';
import type { Sql } from '../../../src/db/connection/connect.ts';
import { readLineage } from '../../../src/db/lineage.ts';
import { createToken, revokeToken } from '../../../src/db/tokens.ts';
import { allVersions, dirtyDocuments } from '../../../src/db/versions.ts';
import { readColumns } from '../../../src/snapshot/document/columns.ts';
import { decodeDocument } from '../../../src/snapshot/document/format.ts';
import { type DocumentName, documentId, LINEAGE_KEY } from '../../../src/snapshot/document/keys.ts';
import { Publisher } from '../../../src/snapshot/publish/publisher.ts';
import { startTestRedis } from '../../support/redis.ts';
import { addMachine, addSample, reprice, setStatus, verify } from '../rows.ts';
import { announcedIn, openScene, sceneForEachTest } from '../scene.ts';

const scene = sceneForEachTest();

const region = (): DocumentName => ({ kind: 'region', regionId: scene.sample.region });
const dirty = async () =>
  (await dirtyDocuments(scene.store.db, 1000)).map(({ name }) => documentId(name)).sort();
const announced = async () => (await announcedIn(scene)).length;

async function cached(name: DocumentName) {
  const value = await scene.cache.getBuffer(scene.keys.document(name));
  return value ? decodeDocument(name, value) : undefined;
}

/** Documents whose exact version of Postgres is not in the cache. */
async function differing(): Promise<string[]> {
  const found: string[] = [];
  for await (const batch of allVersions(scene.store.db, 100)) {
    for (const { name, version } of batch) {
      if ((await cached(name))?.version !== version) found.push(documentId(name));
    }
  }
  return found;
}

describe('publishing dirty documents', () => {
  it('sends each document of a new database, marks it, and then finds nothing', async () => {
    await createToken(scene.store.db, { organizationId: scene.sample.a, scopes: ['machines:read'] });
    expect(await dirty()).toHaveLength(6);
    expect(await scene.publisher.publishDirty()).toEqual({ published: 6 });
    expect(await dirty()).toEqual([]);
    expect(await differing()).toEqual([]);
    expect(await scene.publisher.publishDirty()).toEqual({ published: 0 });
    expect(await scene.publisher.compare()).toEqual({ published: 0 });
    expect(await announced()).toBe(10);
  });

  it('sends only the documents that contain a change', async () => {
    await scene.publisher.publishDirty();
    const version = await reprice(scene.sql, scene.sample.small, '0.0002');
    expect(await dirty()).toEqual([`region:${scene.sample.region}`]);
    expect(await scene.publisher.publishDirty()).toEqual({ published: 1 });
    const document = await cached(region());
    expect(document?.version).toBe(version);
    expect(JSON.parse(document?.slice(String(scene.sample.small))?.identity.toString() ?? '').price).toBe(
      0.0002,
    );
    await setStatus(scene.sql, scene.sample.clusterOfB, 'Stopped');
    expect(await dirty()).toEqual([`clusters:${scene.sample.b}`]);
  });

  it('sends tokens first and the list of providers last', async () => {
    const token = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes: ['machines:read'],
    });
    await revokeToken(scene.store.db, token.id);
    const names = (await dirtyDocuments(scene.store.db, 100)).map(({ name }) => name.kind);
    expect(names).toEqual(['token', 'clusters', 'clusters', 'region', 'region', 'providers']);
    expect((await dirtyDocuments(scene.store.db, 1)).map(({ name }) => name.kind)).toEqual(['token']);
  });

  it('ends while every publication is followed by another commit', async () => {
    await scene.publisher.publishDirty();
    let price = 1;
    const commit = () => reprice(scene.sql, scene.sample.small, `${++price}.0`);
    const cache = new Proxy(scene.cache, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return async (...sent: unknown[]) => {
          const answer: unknown = await Reflect.apply(value, target, sent);
          if (name === 'fleetbookSetIfNewer') await commit();
          return answer;
        };
      },
    });
    await commit();
    expect(await new Publisher(scene.store.db, cache).publishDirty()).toEqual({ published: 1 });
    expect(await dirty()).toEqual([`region:${scene.sample.region}`]);
  });

  it('completes, with any publisher, a publication whose publisher died after the commit', async () => {
    await scene.publisher.publishDirty();
    await reprice(scene.sql, scene.sample.small, '0.0003');
    expect(await (await scene.secondPublisher()).publishDirty()).toEqual({ published: 1 });
    expect(await differing()).toEqual([]);
  });

  it('only marks documents that are already in the cache, after a crash between sending and marking', async () => {
    await scene.publisher.publishDirty();
    await scene.sql`update regions set published_version = 0 where id = ${scene.sample.region}`;
    const before = await announced();
    expect(await scene.publisher.publishDirty()).toEqual({ published: 1 });
    expect(await announced()).toBe(before);
    expect(await dirty()).toEqual([]);
  });

  it('publishes the others if some documents are rejected, leaves those dirty, and fails; the comparison repairs them', async () => {
    const refused = [region(), { kind: 'providers' } as const];
    for (const name of refused) await scene.cache.lpush(scene.keys.document(name), 'in the way');
    await expect(scene.publisher.publishDirty()).rejects.toThrow('WRONGTYPE');
    expect(await dirty()).toEqual(refused.map(documentId).sort());
    expect((await cached({ kind: 'clusters', organizationId: scene.sample.b }))?.keys()).toContain(
      'cluster-test',
    );
    expect(await scene.publisher.compare()).toEqual({ published: refused.length });
    expect(await dirty()).toEqual([]);
  });

  it('reaches the last document after more rejected ones than one batch', async () => {
    const tokens = await Promise.all(
      Array.from({ length: 10 }, () =>
        createToken(scene.store.db, { organizationId: scene.sample.a, scopes: ['machines:read'] }),
      ),
    );
    expect(tokens).toHaveLength(10);
    const first = (await dirtyDocuments(scene.store.db, 10)).map(({ name }) => name);
    for (const name of first) await scene.cache.lpush(scene.keys.document(name), 'in the way');
    await expect(scene.publisher.publishDirty()).rejects.toThrow('WRONGTYPE');
    expect(await dirty()).toEqual(first.map(documentId).sort());
  });

  it('fails at once and marks nothing while the cache is away', async () => {
    await using own = await startTestRedis();
    await using away = await openScene(own);
    await addSample(away.sql);
    await own.kill();
    const start = performance.now();
    await expect(away.publisher.publishDirty()).rejects.toThrow();
    expect(performance.now() - start).toBeLessThan(4000);
    expect(await dirtyDocuments(away.store.db, 100)).toHaveLength(5);
  });

  it('publishes a deleted organization as an empty list, and its tokens as revoked', async () => {
    const token = await createToken(scene.store.db, { organizationId: scene.sample.a, scopes: [] });
    await scene.publisher.publishDirty();
    await revokeToken(scene.store.db, token.id);
    await scene.sql`update organizations set deleted_at = now(), clusters_version = clusters_version + 1 where id = ${scene.sample.a}`;
    expect(await dirty()).toEqual([`clusters:${scene.sample.a}`, expect.stringMatching(/^token:/)]);
    expect(await scene.publisher.publishDirty()).toEqual({ published: 2 });
    expect(await dirty()).toEqual([]);
    const reader = await scene.linkedReader();
    const found = await reader.documents.get({ kind: 'clusters', organizationId: scene.sample.a });
    expect([found.tier, found.document?.body.identity.toString()]).toEqual(['redis', '[]']);
  });
});

describe('the comparison', () => {
  beforeEach(() => scene.publisher.publishDirty());

  it('fills a flushed cache completely in the next round', async () => {
    await scene.cache.flushall();
    await reprice(scene.sql, scene.sample.small, '0.0005');
    // The changed document, and then all others.
    expect(await scene.publisher.publishDirty()).toEqual({ published: 5 });
    expect(await scene.publisher.publishDirty()).toEqual({ published: 0 });
    expect(await scene.publisher.compare()).toEqual({ published: 0 });
    expect(await differing()).toEqual([]);
    expect(await scene.cache.get(LINEAGE_KEY)).toBe(scene.keys.lineage);
    expect(Object.keys(await scene.cache.hgetall(scene.keys.stamps)).sort()).toEqual([
      'cloud',
      `cloud/${scene.sample.region}`,
      `cloud/${scene.sample.emptyRegion}`,
      'plane',
    ]);
    expect(
      await scene.cache.hget(scene.keys.machineRegions(scene.sample.big), String(scene.sample.big)),
    ).toBe(String(scene.sample.region));
  });

  it('sends only an evicted document', async () => {
    await scene.cache.del(scene.keys.document(region()));
    expect(await scene.publisher.compare()).toEqual({ published: 1 });
    expect(await differing()).toEqual([]);
  });

  it('replaces an older version after a failover, and values that are not documents', async () => {
    const key = scene.keys.document(region());
    const old = await scene.cache.getBuffer(key);
    await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    await scene.cache.set(key, old ?? '');
    await scene.cache.set(scene.keys.document({ kind: 'providers' }), 'FB2 of another release');
    expect((await differing()).sort()).toEqual(['providers', `region:${scene.sample.region}`]);
    expect(await scene.publisher.compare()).toEqual({ published: 2 });
    expect(await differing()).toEqual([]);
  });

  it('writes the index of machines again if it was evicted or is incomplete', async () => {
    const key = scene.keys.machineRegions(scene.sample.small);
    const whole = {
      [scene.sample.small]: String(scene.sample.region),
      [scene.sample.big]: String(scene.sample.region),
    };
    expect(await scene.cache.hgetall(key)).toEqual(whole);
    await scene.cache.del(key);
    expect(await scene.publisher.compare()).toEqual({ published: 0 });
    expect(await scene.cache.hgetall(key)).toEqual(whole);
    await scene.cache.hdel(key, String(scene.sample.small));
    await scene.publisher.compare();
    expect(await scene.cache.hgetall(key)).toEqual(whole);
  });

  it('counts the machines of the index again only for a new version of their region', async () => {
    const publisher = new Publisher(scene.store.db, scene.cache, { comparison: { sample: 0 } });
    await publisher.compare();
    const key = scene.keys.machineRegions(scene.sample.small);
    const whole = await scene.cache.hgetall(key);
    await scene.sql.begin(async (tx) => {
      // A comparison that reads machines would wait for this lock until its statement times out.
      await tx`lock table machines in access exclusive mode`;
      await publisher.compare();
    });
    const added = await addMachine(scene.sql, scene.sample.region, { name: 'added', source: 'cloud' });
    await publisher.publishDirty();
    await scene.cache.hdel(key, String(added));
    await publisher.compare();
    expect(await scene.cache.hgetall(key)).toEqual({ ...whole, [added]: String(scene.sample.region) });
  });

  it('announces each sent document to the readers', async () => {
    await scene.cache.flushall();
    await scene.publisher.compare();
    expect(await announced()).toBe(9);
  });
});

describe('next to the documents', () => {
  it('the lineage is published, and changes with the database', async () => {
    await scene.publisher.publishDirty();
    expect(await scene.cache.get(LINEAGE_KEY)).toBe(await readLineage(scene.sql));
    await scene.sql`update lineage set id = gen_random_uuid()`;
    await scene.publisher.compare();
    const lineage = await readLineage(scene.sql);
    expect(lineage).not.toBe(scene.keys.lineage);
    expect(await scene.cache.get(LINEAGE_KEY)).toBe(lineage);
    expect(await scene.cache.keys(`fb:{${lineage}}:region:*`)).toHaveLength(2);
  });

  it('stamps are published by kind and region, and only move forward', async () => {
    await scene.publisher.publishDirty();
    const cloud = Object.fromEntries(
      ['cloud', `cloud/${scene.sample.region}`, `cloud/${scene.sample.emptyRegion}`].map((id) => [
        id,
        'catalogue 2026-01-02T03:04:05.678Z',
      ]),
    );
    expect(await scene.cache.hgetall(scene.keys.stamps)).toEqual({
      ...cloud,
      plane: 'clusters 2026-01-01T00:00:00.000Z',
    });
    await verify(scene.sql, 'plane', '2026-01-01T00:00:01.5Z');
    await verify(scene.sql, 'cloud', '2025-01-01T00:00:00Z');
    await scene.publisher.publishDirty();
    expect(await scene.cache.hgetall(scene.keys.stamps)).toEqual({
      ...cloud,
      plane: 'clusters 2026-01-01T00:00:01.500Z',
    });
  });

  it('a comparison removes the stamps that the database no longer has', async () => {
    await scene.publisher.publishDirty();
    const before = await scene.cache.hgetall(scene.keys.stamps);
    await scene.cache.hset(scene.keys.stamps, 'cloud/77', 'catalogue 2026-01-02T03:04:05.678Z');
    await scene.publisher.compare();
    expect(await scene.cache.hgetall(scene.keys.stamps)).toEqual(before);
  });

  it.each(['publishDirty', 'compare'] as const)('%s replaces keys of another type', async (round) => {
    await scene.publisher.compare();
    const { keys, cache } = scene;
    const hashes = [keys.stamps, keys.machineRegions(scene.sample.small)];
    const before = await Promise.all(hashes.map((key) => cache.hgetall(key)));
    for (const key of hashes) await cache.set(key, 'garbage');
    await cache.del(LINEAGE_KEY);
    await cache.hset(LINEAGE_KEY, 'a', 'b');
    await scene.publisher[round]();
    expect(await Promise.all(hashes.map((key) => cache.hgetall(key)))).toEqual(before);
    expect(await cache.get(LINEAGE_KEY)).toBe(keys.lineage);
  });

  it('each published machine leads to its region, and an unpublished one is absent', async () => {
    await scene.publisher.publishDirty();
    const other = await addMachine(scene.sql, scene.sample.emptyRegion, { name: 'new' });
    await scene.publisher.publishDirty();
    expect(await scene.cache.hgetall(scene.keys.machineRegions(other))).toEqual({
      [scene.sample.small]: String(scene.sample.region),
      [scene.sample.big]: String(scene.sample.region),
      [other]: String(scene.sample.emptyRegion),
    });
  });
});

describe('a run that commits while a publisher reads the stamps', () => {
  it.each(['publishDirty', 'compare'] as const)('is in the cache before its time, with %s', async (round) => {
    await scene.publisher.publishDirty();
    const later = '2026-01-02T09:00:00.000Z';
    let version: number | undefined;
    const commit = async () => {
      version ??= await reprice(scene.sql, scene.sample.small, '0.0004');
      await verify(scene.sql, 'cloud', later);
    };
    // postgres.js sends a statement only when it is awaited.
    const sql = new Proxy(scene.sql, {
      apply(target, self, args: Parameters<Sql>) {
        const query = Reflect.apply(target, self, args) as PromiseLike<unknown>;
        if (!args[0].join('').includes('from region_freshness')) return query;
        const send = query.then.bind(query);
        const afterCommit: typeof query.then = (done, failed) => commit().then(() => send(done, failed));
        Reflect.defineProperty(query, 'then', { value: afterCommit });
        return query;
      },
    });
    const db = Object.create(scene.store.db, { $client: { value: sql } }) as typeof scene.store.db;
    await new Publisher(db, scene.cache)[round]();
    expect(version).toBeDefined();
    expect(await scene.cache.hget(scene.keys.stamps, 'cloud')).toBe(`catalogue ${later}`);
    expect((await cached(region()))?.version).toBe(version);
  });
});

describe('two concurrent publishers', () => {
  it('never leave an older version, or a mark without a document', async () => {
    const second = await scene.secondPublisher();
    const publishers = [scene.publisher, second];
    let isOver = false;
    const publish = async (publisher: Publisher) => {
      let rounds = 0;
      while (!isOver) {
        await publisher.publishDirty();
        rounds += 1;
      }
      return rounds;
    };
    const publishing = Promise.allSettled(publishers.map(publish));
    for (let i = 1; i <= 60; i++) {
      await reprice(scene.sql, scene.sample.small, String(i / 1000));
      if (i % 3 === 0) await setStatus(scene.sql, scene.sample.clusterOfA, `Status ${i}`);
      // Not after the last change: once a lost document is marked, only the comparison finds it.
      if (i % 20 === 10) await scene.cache.del(scene.keys.document(region()));
    }
    isOver = true;
    const rounds = { status: 'fulfilled', value: expect.toSatisfy((value) => value > 0) };
    expect(await publishing).toEqual([rounds, rounds]);
    await scene.publisher.publishDirty();
    expect(await dirty()).toEqual([]);
    expect(await differing()).toEqual([]);
    const document = await cached(region());
    expect(JSON.parse(document?.slice(String(scene.sample.small))?.identity.toString() ?? '').price).toBe(
      0.06,
    );
  });
});

describe('the columns of a region', () => {
  const columns = (): DocumentName => ({ kind: 'columns', regionId: scene.sample.region });

  it('are published with its list, under the same version', async () => {
    await scene.publisher.publishDirty();
    const version = await reprice(scene.sql, scene.sample.small, '0.02');
    await scene.publisher.publishDirty();
    const [list, found] = await Promise.all([cached(region()), cached(columns())]);
    expect([list?.version, found?.version]).toEqual([version, version]);
    const { names, prices, ids, kinds, kindOf } =
      readColumns(found?.body.identity ?? Buffer.alloc(0)) ?? expect.fail('there are none');
    expect([names, [...prices], [...ids]]).toEqual([
      ['大', 'klein-ß'],
      [0.01, 0.02],
      [scene.sample.big, scene.sample.small],
    ]);
    expect(kinds[kindOf[0] ?? -1]).toMatchObject({ cpu: 16, ram: 64, ramUnit: 'Binary' });
    expect(found?.sources).toEqual(list?.sources);
  });

  it('are restored by the comparison if only they are lost', async () => {
    await scene.publisher.publishDirty();
    await scene.cache.del(scene.keys.document(columns()));
    expect(await scene.publisher.compare()).toEqual({ published: 1 });
    expect((await cached(columns()))?.version).toBe((await cached(region()))?.version);
    expect(await scene.publisher.compare()).toEqual({ published: 0 });
  });

  it('leave the region dirty if the cache rejects them', async () => {
    await scene.publisher.publishDirty();
    await reprice(scene.sql, scene.sample.small, '0.02');
    await scene.cache.del(scene.keys.document(columns()));
    await scene.cache.lpush(scene.keys.document(columns()), 'in the way');
    await expect(scene.publisher.publishDirty()).rejects.toThrow('WRONGTYPE');
    expect(await dirty()).toEqual([documentId(region())]);
    await scene.publisher.compare();
    expect(await dirty()).toEqual([]);
  });
});

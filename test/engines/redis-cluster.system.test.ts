/** The cache in a real Redis Cluster: three masters with a replica each. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readLineage } from '../../src/db/lineage.ts';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { encodeDocument } from '../../src/snapshot/document/format.ts';
import { CacheKeys } from '../../src/snapshot/document/keys.ts';
import { loadContent } from '../../src/snapshot/document/load.ts';
import { setIfNewer } from '../../src/snapshot/publish/fence.ts';
import { addMachine, addRegion, addSample, reprice, type Sample } from '../snapshot/rows.ts';
import { loseEntry, openScene, type Scene, type TestReader } from '../snapshot/scene.ts';
import { until } from '../support/until.ts';
import { type ClusterNode, startTestCluster, type TestCluster } from './redis-cluster.ts';

const REGIONS = 90;

let cluster: TestCluster;
let scene: Scene;
let sample: Sample;
let regions: { readonly id: number; readonly machine: number }[];

const start = async () => {
  scene = await openScene(cluster);
  sample = await addSample(scene.sql);
  regions = [];
  for (let i = 0; i < REGIONS; i++) {
    const id = await addRegion(scene.sql, sample.provider, `r${i}`);
    regions.push({ id, machine: await addMachine(scene.sql, id, { name: 'm', source: 'cloud' }) });
  }
  await scene.publisher.publishDirty();
};

const nameOf = (regionId: number) => ({ kind: 'region', regionId }) as const;
const versionIn = async (reader: TestReader, regionId: number) =>
  (await reader.documents.get(nameOf(regionId))).document?.version ?? 0;
const slotOf = async (key: string) =>
  Number(await cluster.nodes.find(({ client }) => client.status === 'ready')?.client.cluster('KEYSLOT', key));
const masterOf = async (regionId: number) =>
  cluster.masterOf(await slotOf(scene.keys.document(nameOf(regionId))));

async function linked(reader: TestReader): Promise<TestReader> {
  await reader.catalogue.providers();
  await until(() => reader.link.linked);
  return reader;
}

/** Waits until a cold reader has read every region from the cluster. A busy machine may miss a deadline of some. */
const untilAllFromCluster = () =>
  until(async () => {
    const cold = await linked(scene.reader());
    const found = await Promise.all(regions.map(({ id }) => cold.documents.get(nameOf(id))));
    return found.every(({ tier }) => tier === 'redis');
  });

/** The node with all keys of the lineage. */
const master = () => masterOf(regions[0]?.id ?? 0);

describe('in a healthy cluster', () => {
  beforeAll(async () => {
    cluster = await startTestCluster({ replicas: 0 });
  });
  afterAll(() => cluster[Symbol.asyncDispose]());
  beforeEach(start);
  afterEach(() => scene[Symbol.asyncDispose]());

  it('has all keys of a lineage in one slot', async () => {
    const { keys } = scene;
    const all = [
      keys.stream,
      keys.stamps,
      keys.machineRegions(regions[0]?.machine ?? 0),
      ...regions.map(({ id }) => keys.document(nameOf(id))),
    ];
    const slots = new Set(await Promise.all(all.map(slotOf)));
    expect(slots.size).toBe(1);
    expect(await scene.cache.exists(...all)).toBe(all.length);
  });

  it('answers all concurrent reads of a cold reader from the cluster', async () => {
    const reader = await linked(scene.reader());
    await untilAllFromCluster();
    const machines = await Promise.all(
      regions.map(({ machine }) => reader.documents.regionOfMachine(machine)),
    );
    expect(machines).toEqual(regions.map(({ id }) => id));
  });

  it('notifies every reader of every change by its entry, and no reader finds a gap', async () => {
    const all = await Promise.all([1, 2, 3].map(() => linked(scene.reader())));
    for (const reader of all) for (const { id } of regions) await versionIn(reader, id);
    const epochs = all.map(({ link }) => link.epoch);
    const versions = new Map<number, number>();
    for (const { id, machine } of regions) versions.set(id, await reprice(scene.sql, machine, '0.5'));
    await scene.publisher.publishDirty();
    for (const reader of all) {
      for (const { id } of regions)
        await until(async () => (await versionIn(reader, id)) === versions.get(id));
    }
    expect(all.map(({ link }) => link.epoch)).toEqual(epochs);
  });

  it('readers find a publication without an entry by the gap', async () => {
    const reader = await linked(scene.reader());
    for (const { id, machine } of regions.slice(0, 3)) {
      await versionIn(reader, id);
      const version = await reprice(scene.sql, machine, '0.25');
      const content = await loadContent(scene.sql, nameOf(id));
      if (!content) throw new Error('unreachable: the region is there');
      await scene.cache.set(scene.keys.document(nameOf(id)), await encodeDocument(content));
      await loseEntry(scene);
      expect(await until(async () => (await versionIn(reader, id)) === version)).toBe(true);
    }
  });

  it('stores the newest version of each document in any order of writes', async () => {
    const contents = await Promise.all(regions.map(({ id }) => loadContent(scene.sql, nameOf(id))));
    const other = new CacheKeys('another-lineage');
    const values = await Promise.all(
      contents.flatMap((content) =>
        [3, 1, 4, 1, 5, 2].map(async (version) => {
          if (!content) throw new Error('unreachable: the region is there');
          return { version, name: content.name, value: await encodeDocument({ ...content, version }) };
        }),
      ),
    );
    await Promise.all(
      values.map(({ name, version, value }) => setIfNewer(scene.cache, other, name, version, value)),
    );
    const heads = await Promise.all(
      regions.map(({ id }) => scene.cache.getrange(other.document(nameOf(id)), 0, 19)),
    );
    expect(heads.map((head) => Number(head.slice(4, 20)))).toEqual(Array(REGIONS).fill(5));
  });

  it('one comparison fills a master that lost its data', async () => {
    const reader = await linked(scene.reader({ blockMs: 30 }));
    for (const { id } of regions) await versionIn(reader, id);
    const { epoch } = reader.link;
    await (await master()).client.flushall();
    await until(() => reader.link.epoch > epoch);
    const { published } = await scene.publisher.compare();
    expect(published).toBeGreaterThan(0);
    await untilAllFromCluster();
  });

  it('a restored database gets a new lineage, and tokens that the old documents have as revoked are revoked again', async () => {
    const tokens = await Promise.all(
      Array.from({ length: 12 }, () =>
        createToken(scene.store.db, { organizationId: sample.a, scopes: ['machines:read'] }),
      ),
    );
    for (const { id } of tokens) await revokeToken(scene.store.db, id);
    await scene.publisher.publishDirty();
    await scene.sql`update tokens set revoked_at = null, version = version - 1`;
    const before = await readLineage(scene.sql);
    const { lineage } = await scene.publisher.restored('of the test');
    expect(lineage?.revokedAgain.map(({ id }) => id)).toEqual(
      tokens.map(({ id }) => id).sort((one, other) => one - other),
    );
    expect(await readLineage(scene.sql)).not.toBe(before);
    const reader = await linked(scene.reader());
    for (const { token } of tokens) expect(await reader.tokens.verify(token)).toBeUndefined();
  });

  it('works while a slot moves to another master', async () => {
    const reader = await linked(scene.reader({ blockMs: 30 }));
    const from = await masterOf(regions[0]?.id ?? 0);
    const to = cluster.nodes.find((node) => node !== from) as ClusterNode;
    const slot = await slotOf(scene.keys.stream);
    const inSlot = regions.slice(0, 5);
    let isMoving = true;
    const moved = cluster.moveSlot(slot, to).finally(() => {
      isMoving = false;
    });
    let changes = 0;
    do {
      for (const { id, machine } of inSlot) {
        const version = await reprice(scene.sql, machine, `0.${100 + changes}`);
        changes += 1;
        await scene.publisher.publishDirty();
        await until(async () => (await versionIn(reader, id)) === version);
      }
    } while (isMoving);
    await moved;
    expect(await masterOf(inSlot[0]?.id ?? 0)).toBe(to);
    const cold = await linked(scene.reader());
    for (const { id } of inSlot)
      await until(async () => (await cold.documents.get(nameOf(id))).tier !== 'postgres');
  });
});

describe('when a node fails', () => {
  beforeEach(async () => {
    cluster = await startTestCluster();
    await start();
  });
  afterEach(async () => {
    await scene[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  it.each([
    ['dies', (node: ClusterNode) => node.kill()],
    ['hangs', async (node: ClusterNode) => node.pause()],
  ])('readers and publisher recover in seconds when a master %s', async (_, fail) => {
    const reader = await linked(scene.reader({ blockMs: 100 }));
    for (const { id } of regions) await versionIn(reader, id);
    const victim = await master();
    const affected = regions.slice(0, 20);
    await fail(victim);
    const failedAt = performance.now();
    const versions = new Map<number, number>();
    for (const { id, machine } of affected) versions.set(id, await reprice(scene.sql, machine, '0.75'));

    // A client that reads all the time always gets an answer, and never an older one than before.
    let isOver = false;
    const given = new Map<number, number>();
    let reads = 0;
    let slowestMs = 0;
    const reading = (async () => {
      while (!isOver) {
        for (const { id } of regions) {
          const began = performance.now();
          const version = await versionIn(reader, id);
          slowestMs = Math.max(slowestMs, performance.now() - began);
          reads += 1;
          expect(version).toBeGreaterThanOrEqual(given.get(id) ?? 0);
          given.set(id, version);
        }
        await sleep(10);
      }
    })();
    await until(() => scene.publisher.publishDirty().then(() => true), { everyMs: 100 });
    const publishedAfter = performance.now() - failedAt;
    await until(async () => {
      for (const { id } of affected) if ((await versionIn(reader, id)) !== versions.get(id)) return false;
      return true;
    });
    await until(() => reader.link.linked);
    const linkedAfter = performance.now() - failedAt;
    // The recovery is over, but a busy machine may have read little until now.
    await until(() => reads > 1000);
    isOver = true;
    await reading;
    victim.resume();
    expect(linkedAfter).toBeLessThan(15_000);
    expect(reads).toBeGreaterThan(1000);
    expect(publishedAfter).toBeLessThan(15_000);
    expect(slowestMs).toBeLessThan(3000);
    const cold = await linked(scene.reader());
    for (const { id } of affected) expect(await versionIn(cold, id)).toBe(versions.get(id));
  });

  it('readers do not notice a node without the lineage that dies', async () => {
    const reader = await linked(scene.reader());
    const { id, machine } = regions[0] ?? expect.unreachable('there are some');
    await versionIn(reader, id);
    const { epoch } = reader.link;
    const withLineage = await master();
    await cluster.nodes.find((node) => node.isMaster && node !== withLineage)?.kill();
    const version = await reprice(scene.sql, machine, '0.75');
    await until(() => scene.publisher.publishDirty().then(() => true));
    await until(async () => (await versionIn(reader, id)) === version);
    expect(reader.link.epoch).toBe(epoch);
  });
});

it('a start without any node names the setting and the remedy', async () => {
  const redis = openRedis(
    'redis+cluster://:x@127.0.0.1:1,127.0.0.1:2',
    'producer',
    () => {},
    'QUEUE_REDIS_URL',
  );
  await expect(redisReady(redis, 500)).rejects.toThrow(
    'Redis at 127.0.0.1:1 refuses connections: start it, or correct host and port in QUEUE_REDIS_URL',
  );
  redis.disconnect();
});

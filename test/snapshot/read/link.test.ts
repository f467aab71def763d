import { performance } from 'node:perf_hooks';
import { describe, expect, it } from 'vitest';
import { readLineage } from '../../../src/db/lineage.ts';
import { SHARED } from '../../../src/http/hot/response-cache.ts';
import { encodeDocument } from '../../../src/snapshot/document/format.ts';
import type { DocumentName } from '../../../src/snapshot/document/keys.ts';
import { loadContent } from '../../../src/snapshot/document/load.ts';
import { startHeartbeat } from '../../../src/snapshot/publish/publisher.ts';
import { faultProxy } from '../../support/fault-proxy.ts';
import { startTestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { addOrganization, addSample, reprice, setStatus } from '../rows.ts';
import { openScene, sceneForEachTest, type TestReader } from '../scene.ts';

const scene = sceneForEachTest();

const region = (): DocumentName => ({ kind: 'region', regionId: scene.sample.region });
const killSubscribers = () => scene.cache.call('CLIENT', 'KILL', 'TYPE', 'pubsub');

/** Reads until the reader gives this version. @returns milliseconds it took */
async function seenAfter(reader: TestReader, version: number): Promise<number> {
  const start = performance.now();
  const read = async () => (await reader.documents.get(region())).document?.version;
  await until(async () => (await read()) === version, { everyMs: 2, timeoutMs: 8000 });
  return performance.now() - start;
}

const median = (figures: number[]) => figures.sort((a, b) => a - b)[Math.floor(figures.length / 2)];

async function change(price = '0.5'): Promise<number> {
  const version = await reprice(scene.sql, scene.sample.small, price);
  await scene.publisher.publishDirty();
  return version;
}

/** The fence's write without its message. */
async function changeWithoutMessage(): Promise<number> {
  const version = await reprice(scene.sql, scene.sample.small, '0.7');
  const content = (await loadContent(scene.sql, region())) ?? expect.unreachable('no content');
  await scene.cache.set(scene.keys.document(region()), await encodeDocument(content));
  await scene.cache.incr(scene.keys.revision(0));
  return version;
}

describe('a linked reader', () => {
  it('shows a publication at once, long before its next check', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ pollMs: 60_000 });
    await reader.documents.get(region());
    const took: number[] = [];
    for (let i = 1; i <= 20; i++) took.push(await seenAfter(reader, await change(String(i / 100))));
    expect(median(took)).toBeLessThan(250);
    expect(Math.max(...took)).toBeLessThan(900);
    expect((await reader.documents.get(region())).tier).toBe('memory');
  });

  it('keeps its epoch while no message is lost, for any number of publications', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ pollMs: 5 });
    const { epoch } = reader.link;
    for (let i = 1; i <= 30; i++) await change(String(i / 100));
    await reader.link.poll();
    expect(reader.link.epoch).toBe(epoch);
    expect(reader.link.linked).toBe(true);
  });
});

describe('lost messages', () => {
  it('because of a broken subscription are compensated by a comparison of all of memory', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ pollMs: 60_000 });
    await reader.documents.get(region());
    const { epoch } = reader.link;
    await killSubscribers();
    const version = await change();
    expect(await seenAfter(reader, version)).toBeLessThan(5000);
    await until(() => reader.link.linked);
    expect(reader.link.epoch).toBeGreaterThan(epoch);
  });

  it('without other signs are detected by the revision', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    await reader.documents.get(region());
    const { epoch } = reader.link;
    const version = await changeWithoutMessage();
    expect(await seenAfter(reader, version)).toBeLessThan(5000);
    expect([reader.link.linked, reader.link.epoch]).toEqual([true, epoch + 1]);
  });

  it('are detected by the next message about any document', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ pollMs: 60_000 });
    await reader.documents.get(region());
    const { epoch } = reader.link;
    const version = await changeWithoutMessage();
    await setStatus(scene.sql, scene.sample.clusterOfA, 'Stopped');
    await scene.publisher.publishDirty();
    expect(await seenAfter(reader, version)).toBeLessThan(900);
    expect(reader.link.epoch).toBe(epoch + 1);
  });

  it('on a subscription that is open but silent are detected, and it is renewed', async () => {
    await using proxy = await faultProxy(scene.redis.url);
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ subscriberUrl: proxy.url });
    await reader.documents.get(region());
    proxy.abandon();
    expect(await seenAfter(reader, await change())).toBeLessThan(5000);
    await until(() => reader.link.linked, { timeoutMs: 8000 });
    expect(await seenAfter(reader, await change('0.6'))).toBeLessThan(900);
  });

  it('of another lineage are ignored', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    const { epoch } = reader.link;
    await scene.cache.publish('fb:{other}:published', `99 region:${scene.sample.region} 999`);
    await scene.cache.publish(scene.keys.published, 'nonsense');
    await scene.cache.publish(scene.keys.published, '');
    await reader.link.poll();
    expect([reader.link.linked, reader.link.epoch]).toEqual([true, epoch]);
  });

  it('an announced version that does not exist does not occupy a reader forever', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    for (let i = 0; i < 5; i++) {
      const reading = reader.documents.get(region());
      await scene.cache.publish(scene.keys.published, `${100 + i} region:${scene.sample.region} 999`);
      expect((await reading).document).toBeDefined();
    }
    expect((await reader.catalogue.machines(scene.sample.provider, scene.sample.region)).tier).toBeDefined();
  });
});

describe('the cache', () => {
  it('that was flushed costs one comparison with Postgres per document, and no failed answer', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ pollMs: 10 });
    const before = await reader.catalogue.machines(scene.sample.provider, scene.sample.region);
    const { epoch } = reader.link;
    await scene.cache.flushall();
    await until(() => reader.link.epoch > epoch);
    const after = await reader.catalogue.machines(scene.sample.provider, scene.sample.region);
    expect(after.body).toEqual(before.body);
    expect(await seenAfter(reader, await change())).toBeLessThan(900);
  });

  it('that rejects writes because its memory is full is still read', async () => {
    await using full = await startTestRedis(['--maxmemory-policy', 'noeviction']);
    await using own = await openScene(full);
    const sample = await addSample(own.sql);
    await own.publisher.publishDirty();
    const unpublished = [];
    for (let i = 0; i < 6; i++) unpublished.push(await addOrganization(own.sql, `org-${i}`));
    await own.cache.config('SET', 'maxmemory', '1');
    const reader = own.reader({ pollMs: 60_000 });
    await reader.catalogue.providers();
    const answers = await Promise.all(unpublished.map((id) => reader.clusters.clusters(id)));
    expect(answers.map(({ tier }) => tier)).toEqual(Array(6).fill('postgres'));
    // Answered after the rejections of all the write-backs.
    expect(await reader.link.commands.run((cache) => cache.ping())).toBe('PONG');
    expect((await reader.clusters.clusters(sample.b)).tier).toBe('redis');
  });
});

describe('another lineage', () => {
  it('empties memory once the database has it', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ pollMs: 20 });
    const old = await reader.documents.get(region());
    await scene.sql`update regions set version = 1, published_version = 0, name = 'another'`;
    await scene.sql`update lineage set id = gen_random_uuid()`;
    await scene.publisher.publishDirty();
    await until(async () => (await reader.documents.get(region())).document?.version === 1);
    const now = await reader.documents.get(region());
    expect(now.document?.body.hash).not.toBe(old.document?.body.hash);
    await until(() => reader.link.linked);
    await reprice(scene.sql, scene.sample.small, '0.9');
    await scene.publisher.publishDirty();
    expect(await seenAfter(reader, 2)).toBeLessThan(5000);
  });

  it('unsubscribes from the old channel', async () => {
    await using proxy = await faultProxy(scene.redis.url);
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ subscriberUrl: proxy.url, pollMs: 20 });
    await proxy.refuse();
    await scene.sql`update lineage set id = gen_random_uuid()`;
    await scene.sql`update regions set name = 'another', version = version + 1`;
    await scene.publisher.compare();
    // The reader keeps following the new lineage although no message arrives.
    await until(async () =>
      (await reader.documents.get(region())).document?.body.identity.includes('another'),
    );
    await proxy.heal();
    await until(() => reader.link.linked);
    await reader.documents.get(region());
    const { epoch } = reader.link;
    const receivers = await scene.cache.publish(
      scene.keys.published,
      `500 region:${scene.sample.region} 999`,
    );
    expect(receivers).toBe(0);
    expect(await seenAfter(reader, await change())).toBeLessThan(900);
    expect([reader.link.linked, reader.link.epoch]).toEqual([true, epoch]);
  });

  it('that only a shared cache names is not followed', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ pollMs: 10 });
    await reader.documents.get(region());
    const { epoch } = reader.link;
    await scene.cache.set('fb:lineage', '00000000-0000-0000-0000-000000000000');
    for (let i = 0; i < 5; i++) await reader.link.poll();
    expect(reader.documents.getFresh(region())).toBeDefined();
    expect([reader.link.linked, reader.link.epoch]).toEqual([true, epoch]);
    expect(await readLineage(scene.sql)).toBe(scene.keys.lineage);
  });
});

/** Blocks this process, its timers and its connections, as a stopped virtual machine does. */
const freeze = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

it('a process that was frozen is not linked until it has received its messages', async () => {
  await scene.publisher.publishDirty();
  using _heartbeat = startHeartbeat(() => scene.publisher.heartbeat(), 50);
  const reader = await scene.linkedReader({ silentAfterMs: 400, pollMs: 20 });
  const { documents, link, responses } = reader;
  await documents.get(region());
  const answer = await reader.catalogue.machine(scene.sample.small);
  const response = { target: '/v1/machines/1', owner: SHARED, route: '/v1/machines/:id' } as const;
  responses.set({ ...response, scope: 'machines:read' }, answer ?? expect.unreachable());
  expect(responses.get(response.target, 1)).toBeDefined();
  freeze(1500);
  expect(link.linked).toBe(false);
  expect(documents.getFresh(region())).toBeUndefined();
  expect(responses.get(response.target, 1)).toBeUndefined();
  await until(() => link.linked);
});

it('a closed reader logs nothing more', async () => {
  const reader = await scene.linkedReader();
  await reader[Symbol.asyncDispose]();
  expect(reader.link.linked).toBe(false);
  await reader.link.poll();
});

/** Three readers of one cache: each shows the data of Postgres, with or without entries of the stream. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { encodeDocument } from '../../src/snapshot/document/format.ts';
import type { DocumentName } from '../../src/snapshot/document/keys.ts';
import { loadContent } from '../../src/snapshot/document/load.ts';
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { IS_LONG, randomOf } from '../support/random.ts';
import { until } from '../support/until.ts';
import { reprice, setStatus } from './rows.ts';
import { cutStreams, loseEntry, type ReaderOptions, sceneForEachTest, type TestReader } from './scene.ts';

const scene = sceneForEachTest();
const READERS = 3;

const region = (): DocumentName => ({ kind: 'region', regionId: scene.sample.region });
const validatorIn = async (reader: TestReader, name = region()) =>
  (await reader.documents.get(name)).document?.version ?? 0;

/** Linked readers that have the region, the clusters of A and the list of providers in memory. */
async function readers(options: Partial<ReaderOptions> = {}): Promise<TestReader[]> {
  await scene.publisher.publishDirty();
  const all = await Promise.all(Array.from({ length: READERS }, () => scene.linkedReader(options)));
  for (const reader of all) {
    await validatorIn(reader);
    await validatorIn(reader, { kind: 'clusters', organizationId: scene.sample.a });
  }
  return all;
}

const eachShows = (all: readonly TestReader[], version: number, name = region()) =>
  until(async () =>
    (await Promise.all(all.map((reader) => validatorIn(reader, name)))).every((v) => v === version),
  );

/** Writes the document without an entry, and an entry that follows a lost one. */
async function publishWithoutEntry(name: DocumentName): Promise<void> {
  const content = await loadContent(scene.sql, name);
  if (!content) throw new Error('unreachable: the sample has it');
  await scene.cache.set(scene.keys.document(name), await encodeDocument(content));
  await loseEntry(scene);
}

describe('a change in Postgres', () => {
  it('reaches each reader by its entry alone: prices, clusters, tokens and their revocation', async () => {
    const all = await readers();
    const version = await reprice(scene.sql, scene.sample.small, '0.25');
    const clusters = await setStatus(scene.sql, scene.sample.clusterOfA, 'Stopped');
    await scene.publisher.publishDirty();
    await eachShows(all, version);
    await eachShows(all, clusters, { kind: 'clusters', organizationId: scene.sample.a });

    const { id, token } = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes: ['clusters:read'],
    });
    await scene.publisher.publishDirty();
    const grants = () => Promise.all(all.map((reader) => reader.tokens.verify(token)));
    expect((await grants()).map((grant) => grant?.organizationId)).toEqual(
      Array(READERS).fill(scene.sample.a),
    );
    await revokeToken(scene.store.db, id);
    await scene.publisher.publishDirty();
    await until(async () => (await grants()).every((grant) => grant === undefined));
    expect(all.map((reader) => reader.link.epoch)).toEqual(Array(READERS).fill(all[0]?.link.epoch));
  });

  it('reaches each reader by the gap if its entry was lost', async () => {
    const all = await readers({ blockMs: 30 });
    const epochs = all.map((reader) => reader.link.epoch);
    const version = await reprice(scene.sql, scene.sample.small, '0.25');
    await publishWithoutEntry(region());
    await eachShows(all, version);
    expect(all.every((reader, i) => reader.link.linked && reader.link.epoch > (epochs[i] ?? 0))).toBe(true);
  });

  it('reaches readers with and without a broken stream', async () => {
    await using proxy = await faultProxy(scene.redis.url);
    const [cut, ...others] = await readers({ blockMs: 50 });
    const through = await scene.linkedReader({ blockMs: 50, streamUrl: proxy.url });
    await validatorIn(through);
    const { epoch } = through.link;
    await proxy.refuse();
    const version = await reprice(scene.sql, scene.sample.small, '0.25');
    await scene.publisher.publishDirty();
    await eachShows([through, ...others, ...(cut ? [cut] : [])], version);
    await proxy.heal();
    await until(() => through.link.linked);
    // The stream still has what the reader missed.
    await through.caughtUp();
    expect(through.link.epoch).toBe(epoch);
    expect(await validatorIn(through)).toBe(version);
  });
});

describe('under random faults', () => {
  let redisProxy: FaultProxy;
  let streamProxy: FaultProxy;
  let postgresProxy: FaultProxy;
  beforeEach(async () => {
    redisProxy = await faultProxy(scene.redis.url);
    streamProxy = await faultProxy(scene.redis.url);
    postgresProxy = await faultProxy(scene.db.url);
    return () =>
      Promise.all([redisProxy, streamProxy, postgresProxy].map((proxy) => proxy[Symbol.asyncDispose]()));
  });

  it.each(IS_LONG ? [8, 27, 307] : [8])(
    'no reader gives an older version after a newer one, and each reaches the last (seed %i)',
    async (seed) => {
      const random = randomOf(seed);
      const broken = await readers({
        blockMs: 20,
        redisUrl: redisProxy.url,
        streamUrl: streamProxy.url,
        databaseUrl: postgresProxy.url,
      });
      const all = [...broken, await scene.linkedReader({ blockMs: 20 })];
      const seen: number[][] = all.map(() => []);
      let isOver = false;
      const reading = all.map(async (reader, i) => {
        while (!isOver) {
          // A read without an answer is not an old answer.
          const version = await validatorIn(reader).catch(() => undefined);
          if (version !== undefined) seen[i]?.push(version);
          await sleep(1);
        }
      });
      const refused = new Set<FaultProxy>();
      const refuse = (proxy: FaultProxy) => {
        refused.add(proxy);
        return proxy.refuse();
      };
      const healAll = async () => {
        for (const proxy of refused) await proxy.heal();
        refused.clear();
      };
      const faults: (() => unknown)[] = [
        () => redisProxy.cut(),
        () => streamProxy.cut(),
        () => postgresProxy.cut(),
        () => refuse(redisProxy),
        () => refuse(streamProxy),
        () => streamProxy.abandon(),
        () => refuse(postgresProxy),
        () => scene.cache.del(scene.keys.document(region())),
        () => scene.cache.flushall(),
        () => cutStreams(scene),
        () => publishWithoutEntry(region()),
        healAll,
        healAll,
      ];
      let last = 0;
      for (let i = 1; i <= 60; i++) {
        last = await reprice(scene.sql, scene.sample.small, String(i / 1000));
        if (random() < 0.6) await scene.publisher.publishDirty();
        if (random() < 0.5) await faults[Math.floor(random() * faults.length)]?.();
        // Each reader could have answered since.
        const before = seen.map((versions) => versions.length);
        await until(() => seen.some((versions, j) => versions.length > (before[j] ?? 0)));
      }
      await healAll();
      await scene.publisher.compare();
      await until(() => seen.every((versions) => versions.at(-1) === last), {
        what: `every reader to give version ${last}`,
      });
      isOver = true;
      await Promise.all(reading);
      for (const versions of seen) {
        expect(versions.length).toBeGreaterThan(10);
        expect(versions).toEqual(versions.toSorted((a, b) => a - b));
      }
    },
  );
});

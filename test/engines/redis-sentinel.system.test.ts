/** The cache behind real Sentinels: the master fails, and a replica replaces it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { addSample, reprice, type Sample } from '../snapshot/rows.ts';
import { openScene, type Scene } from '../snapshot/scene.ts';
import { until } from '../support/until.ts';
import { type SentinelServer, startTestSentinels, type TestSentinels } from './redis-sentinel.ts';

let sentinels: TestSentinels;
let scene: Scene;
let sample: Sample;

beforeEach(async () => {
  sentinels = await startTestSentinels();
  scene = await openScene(sentinels);
  sample = await addSample(scene.sql);
  await scene.publisher.publishDirty();
});
afterEach(async () => {
  await scene[Symbol.asyncDispose]();
  await sentinels[Symbol.asyncDispose]();
});

describe('a cache behind Sentinels', () => {
  it.each([
    ['dies', (master: SentinelServer) => master.kill()],
    ['hangs', async (master: SentinelServer) => master.pause()],
  ])('is followed by readers and publisher when the master %s', async (_, fail) => {
    const reader = scene.reader({ blockMs: 100 });
    const name = { kind: 'region', regionId: sample.region } as const;
    const versionNow = async () => (await reader.documents.get(name)).document?.version ?? 0;
    await reader.catalogue.providers();
    await until(() => reader.link.linked);
    const before = await versionNow();
    const former = await sentinels.master();
    await fail(former);
    const failedAt = performance.now();
    const version = await reprice(scene.sql, sample.small, '0.25');
    expect(version).toBeGreaterThan(before);

    let isOver = false;
    let slowest = 0;
    const given: number[] = [];
    const reading = (async () => {
      while (!isOver) {
        const began = performance.now();
        given.push(await versionNow());
        slowest = Math.max(slowest, performance.now() - began);
        await new Promise(setImmediate);
      }
    })();
    await sentinels.untilReplaced(former);
    await until(() => scene.publisher.publishDirty().then(() => true), { everyMs: 100 });
    await until(() => reader.link.linked);
    await until(async () => (await versionNow()) === version);
    const recoveredAfter = performance.now() - failedAt;
    isOver = true;
    await reading;
    former.resume();
    expect(given).toEqual([...given].sort((one, other) => one - other));
    expect(recoveredAfter).toBeLessThan(20_000);
    expect(slowest).toBeLessThan(3000);

    // The reader receives later publications from the new master.
    const { epoch } = reader.link;
    const next = await reprice(scene.sql, sample.small, '0.5');
    await until(() => scene.publisher.publishDirty().then(() => true), { everyMs: 100 });
    await until(async () => (await versionNow()) === next);
    expect(reader.link.epoch).toBeGreaterThanOrEqual(epoch);
  });

  it('the client retries if a connection is cut while it reads from the Sentinels', async () => {
    const redis = openRedis(sentinels.url, 'publisher', () => {});
    try {
      await redisReady(redis, 5000);
      for (let cut = 0; cut < 20; cut++) {
        redis.disconnect(true);
        await until(() => redis.status !== 'ready');
        await until(() => redis.status === 'connecting' || redis.status === 'end', { everyMs: 1 });
        redis.disconnect(true);
      }
      await until(() => redis.ping());
    } finally {
      redis.disconnect();
    }
    expect(await until(() => redis.status === 'end')).toBe(true);
  });
});

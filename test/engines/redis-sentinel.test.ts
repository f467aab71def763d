/** The cache behind real Sentinels: the master fails, and a replica takes its place. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addSample, reprice, type Sample } from '../snapshot/rows.ts';
import { openScene, type Scene } from '../snapshot/scene.ts';
import { type SentinelServer, startTestSentinels, type TestSentinels } from '../support/redis-sentinel.ts';
import { until } from '../support/until.ts';

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
    const reader = scene.reader({ pollMs: 100 });
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
    await until(() => scene.publisher.publishDirty().then(() => true), { timeoutMs: 25_000, everyMs: 100 });
    await until(() => reader.link.linked, { timeoutMs: 25_000 });
    await until(async () => (await versionNow()) === version);
    const recoveredAfter = performance.now() - failedAt;
    isOver = true;
    await reading;
    former.resume();
    expect(given).toEqual([...given].sort((one, other) => one - other));
    expect(recoveredAfter).toBeLessThan(20_000);
    expect(slowest).toBeLessThan(3000);

    // It hears of what is published from now on by the new master.
    const { epoch } = reader.link;
    const next = await reprice(scene.sql, sample.small, '0.5');
    await scene.publisher.publishDirty();
    await until(async () => (await versionNow()) === next);
    expect(reader.link.epoch).toBe(epoch);
  });
});

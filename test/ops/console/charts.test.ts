/** What the charts are made of, over the real way: readers and workers → the cache's Redis → the console's route. */
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { composeReader } from '../../../src/app/reader.ts';
import { readLineage } from '../../../src/db/reads/lineage.ts';
import { addReport } from '../../../src/db/reports.ts';
import type { ReaderReport } from '../../../src/domain/report.ts';
import type { ChartsAnswer, Failure } from '../../../src/ops/console/api.ts';
import { RequestCounts } from '../../../src/ops/request-counts.ts';
import { reportRequests } from '../../../src/ops/request-reports.ts';
import { CacheKeys } from '../../../src/snapshot/document/keys.ts';
import { keepPulse } from '../../../src/snapshot/publish/pulse.ts';
import { lagObserver, reportWorker } from '../../../workers/reports.ts';
import { until } from '../../support/until.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

const silent = pino({ level: 'silent' });
let scene: ConsoleScene;
let redis: Redis;
let key: string;

beforeAll(async () => {
  scene = await openConsoleScene();
  redis = new Redis(scene.config.settings.REDIS_URL ?? '');
});
beforeEach(async () => {
  // Another lineage is another stream: no test sees what the one before has reported.
  await scene.worker.store.sql`update lineage set id = gen_random_uuid()`;
  key = new CacheKeys(await readLineage(scene.worker.store.sql), 1).reports;
});
afterAll(async () => {
  redis.disconnect();
  await scene[Symbol.asyncDispose]();
});

const charts = async (query = '') => (await scene.get(`/api/charts${query}`)) as ChartsAnswer;
const sum = (line: readonly (number | null)[] | undefined) =>
  (line ?? []).reduce<number>((total, value) => total + (value ?? 0), 0);

/** Puts a text into the stream that was sent so many seconds ago. */
async function sent(secondsAgo: number, text: string): Promise<void> {
  const [seconds] = await redis.time();
  await redis.xadd(key, `${(Number(seconds) - secondsAgo) * 1000}-*`, 'report', text);
}

async function reported(secondsAgo: number, more: Partial<ReaderReport>): Promise<void> {
  const nothing = { statuses: [0, 0, 0, 0], durations: [], tiers: {} };
  const report = { kind: 'reader', process: 'a', number: 0, seconds: 15, ...nothing, ...more };
  await sent(secondsAgo, JSON.stringify(report));
}

describe('the charts', () => {
  it('say that nobody has reported, and draw nothing', async () => {
    // What was read shortly before is given again for two seconds.
    const empty = await until(async () => {
      const answer = await charts();
      return answer.readers.lastReport === null && answer;
    });
    expect([empty.readers, empty.workers]).toEqual([
      { processes: 0, lastReport: null },
      { processes: 0, lastReport: null },
    ]);
    expect(new Set(empty.requests['2xx'])).toEqual(new Set([null]));
  });

  it('add up readers, count a report that was sent twice once, and follow what comes', async () => {
    await sent(130, 'of another release');
    await reported(120, { statuses: [140, 0, 0, 30], seconds: 20 });
    // The same report again: the first may not have arrived.
    await reported(105, { statuses: [150, 0, 0, 30], seconds: 35 });
    await reported(100, { process: 'b', statuses: [60, 0, 0, 0], seconds: 30 });
    const before = await until(async () => {
      const answer = await charts('?minutes=15');
      return answer.readers.lastReport !== null && answer;
    });
    expect(sum(before.requests['2xx']) * before.step).toBeGreaterThan(150);
    // At either end a step that was told of in part is taken for a whole one, or left out.
    const failed = sum(before.requests['5xx']) * before.step;
    expect([failed > 20, failed < 45]).toEqual([true, true]);
    expect(before.readers.processes).toBe(0);
    await reported(20, { process: 'b', number: 1, statuses: [600, 0, 0, 0], seconds: 60 });
    await until(async () => sum((await charts('?minutes=15')).requests['2xx']) * before.step > 600);
    expect((await charts()).readers.processes).toBe(1);
  });

  it('hear of readers and workers, whichever process they are', async () => {
    const counts = [new RequestCounts(), new RequestCounts()];
    for (const each of counts)
      each.add({ route: '/v1/machines', method: 'GET', status: 200, seconds: 0.001, tier: 'memory' });
    await scene.worker.publisher.publishDirty();
    using _pulse = keepPulse(() => scene.worker.publisher.pulse(), 100);
    await using reader = composeReader(scene.config, silent);
    await until(async () => (await reader.readiness()).checks.cache === 'ok');
    for (const each of counts)
      await reportRequests(each, (text) => reader.report(text))[Symbol.asyncDispose]();
    const lag = lagObserver(1000);
    lag.round(0, 3);
    await using _ = reportWorker({
      sql: scene.worker.store.sql,
      cache: scene.worker.cache,
      queues: scene.queues.all,
      lag,
      everyMs: 20,
    });
    const answer = await until(async () => {
      const found = await charts();
      return found.workers.lastReport !== null && found;
    });
    expect([answer.readers.processes, answer.workers.processes]).toEqual([2, 1]);
    const [entry] = (await redis.xrevrange(key, '+', '-', 'COUNT', 1)) as [string, string[]][];
    expect(JSON.parse(entry?.[1][1] ?? '')).toMatchObject({
      kind: 'worker',
      lagSeconds: 3,
      dirty: expect.any(Number),
      waiting: { sync: 0, sweep: 0, alerts: 0 },
    });
    expect(await redis.ttl(key)).toBeGreaterThan(3600);
  });

  it('keep no more than so many reports', async () => {
    const pipeline = redis.pipeline();
    for (let i = 0; i < 40_000; i++) pipeline.xadd(key, '*', 'report', '{}');
    await pipeline.exec();
    await addReport(redis, key, '{}');
    expect(await redis.xlen(key)).toBeLessThan(31_000);
  });

  it('refuse a time that is not kept', async () => {
    expect(await charts('?minutes=1000')).toEqual({
      error: 'minutes must be a number from 5 to 181; it is "1000"',
      field: 'minutes',
    });
  });

  it('say that the cache is away', async () => {
    await using lost = await openConsoleScene({ CACHE_REDIS_URL: 'redis://127.0.0.1:1' });
    const { error } = (await lost.get('/api/charts')) as Failure;
    expect(error).toBe(
      'the cache’s Redis does not answer, so that nobody knows what was measured; readers answer without it',
    );
  });
});

describe('the lag that a worker reports', () => {
  const none = { compared: () => {}, caughtUp: () => {}, round: () => {} };

  it('is the longest since the last report, and unknown where nobody has compared lately', () => {
    let now = 0;
    const lag = lagObserver(30_000, none, () => now);
    expect(lag.take()).toBeNull();
    lag.round(0, 0);
    lag.caughtUp(4);
    expect([lag.take(), lag.take()]).toEqual([4, 0]);
    lag.round(0, 12);
    now = 60_000;
    expect(lag.take()).toBe(12);
    now = 60_001;
    expect(lag.take()).toBeNull();
  });
});

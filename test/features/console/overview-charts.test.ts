/** The charts of the overview: runs from PostgreSQL, jobs from BullMQ. */
import { Worker } from 'bullmq';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ChartsAnswer } from '../../../src/features/console/routes/answers.ts';
import { jobCounts } from '../../../src/features/console/routes/queues.ts';
import { openRedis } from '../../../src/redis/redis.ts';
import { METRICS, QUEUE_PREFIX } from '../../../workers/queues.ts';
import { until } from '../../support/until.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

let scene: ConsoleScene;
beforeAll(async () => {
  scene = await openConsoleScene();
});
beforeEach(async () => {
  const { sql } = scene.worker.store;
  await sql`delete from held_batches`;
  await sql`delete from sync_runs`;
  await sql`insert into sources (id, kind, adapter) values ('hetzner', 'catalogue', 'hetzner') on conflict do nothing`;
});
afterAll(() => scene[Symbol.asyncDispose]());

const MINUTE = 60;
/** One read serves all pages for two seconds. */
const charts = (isRead: (answer: ChartsAnswer) => boolean): Promise<ChartsAnswer> =>
  until(async () => {
    const answer = (await scene.get('/api/charts')) as ChartsAnswer;
    return isRead(answer) && answer;
  });
const sum = (line: readonly (number | null)[] | undefined) =>
  (line ?? []).reduce<number>((total, value) => total + (value ?? 0), 0);

interface Ended {
  readonly minutesAgo: number;
  readonly outcome: string;
  readonly seconds?: number;
  readonly added?: number;
}

async function ended({ minutesAgo, outcome, seconds = 10, added = 0 }: Ended): Promise<void> {
  const at = new Date(Date.now() - minutesAgo * MINUTE * 1000);
  await scene.worker.store.sql`
    insert into sync_runs (source_id, fence, started_at, finished_at, outcome, added, changed, retired)
    values ('hetzner', 1, ${new Date(at.getTime() - seconds * 1000)}, ${at}, ${outcome}, ${added}, 2, 1)`;
}

describe('the charts of the overview', () => {
  it('have no runs and no duration if no run ended', async () => {
    const { runs, seconds, rows, times } = await charts(() => true);
    expect(times).toHaveLength(48);
    expect([...Object.values(runs), ...Object.values(rows)].map(sum)).toEqual([0, 0, 0, 0, 0, 0, 0]);
    expect(new Set(Object.values(seconds).flat())).toEqual(new Set([null]));
  });

  it('count the runs of a day by outcome, with durations and changed rows', async () => {
    await ended({ minutesAgo: 25 * 60, outcome: 'failed' });
    await ended({ minutesAgo: 23.2 * 60, outcome: 'unchanged', seconds: 100 });
    for (const seconds of [10, 20, 30])
      await ended({ minutesAgo: 10, outcome: 'changed', seconds, added: 5 });
    await ended({ minutesAgo: 9, outcome: 'interrupted', seconds: 900 });
    await ended({ minutesAgo: 8, outcome: 'failed' });
    await ended({ minutesAgo: 7, outcome: 'held', added: 1000 });
    await ended({ minutesAgo: 6, outcome: 'superseded', added: 1000 });
    const { runs, seconds, rows, times } = await charts(({ runs }) => sum(runs.held) === 1);
    expect(times.map((each, i) => each - (times[i - 1] ?? each - 1800))).toEqual(Array(48).fill(1800));
    expect({ ...runs, unchanged: sum(runs.unchanged) }).toEqual({
      changed: [...Array(47).fill(0), 3],
      unchanged: 1,
      held: [...Array(47).fill(0), 1],
      failed: [...Array(47).fill(0), 2],
    });
    expect(runs.unchanged[1]).toBe(1);
    expect([seconds.median[1], seconds.median[2], seconds.longest[47]]).toEqual([100, null, 30]);
    expect(seconds.median[47]).toBeCloseTo(15);
    expect([rows.added[47], rows.changed[47], rows.retired[47]]).toEqual([15, 6, 3]);
    expect([sum(rows.added), sum(rows.changed)]).toEqual([15, 6]);
  });

  it('count ended jobs by queue, and are null while Redis does not answer', async () => {
    const connection = openRedis(scene.config.settings.REDIS_URL ?? '', 'worker', () => {});
    const worker = new Worker(
      'sync',
      async ({ name }) => {
        if (name === 'bad') throw new Error('bad');
      },
      { connection, prefix: QUEUE_PREFIX, metrics: METRICS },
    );
    const data = { sourceId: 'hetzner', slot: '2026-01-01T00:00:00Z', attempt: 0 };
    await scene.queues.sync.addBulk(['good', 'good', 'bad'].map((name) => ({ name, data })));
    const { jobs } = await charts(({ jobs }) => sum(jobs?.completed.sync) + sum(jobs?.failed.sync) === 3);
    await worker.close();
    connection.disconnect();
    expect(Object.keys(jobs?.completed ?? {})).toEqual(['sync', 'sweep', 'notifications']);
    expect([jobs?.completed.sync?.at(-1), jobs?.failed.sync?.at(-1)]).toEqual([2, 1]);
    expect(sum(jobs?.completed.sweep)).toBe(0);
    const silent = { name: 'sync', getMetrics: () => new Promise<never>(() => {}) };
    expect(await jobCounts([silent], { from: 0, step: 1800, steps: 48 }, 20)).toBeNull();
  });

  it('have the documents that wait for publication, and the held batches', async () => {
    await scene.sync(1);
    await scene.sync(100);
    const { sql } = scene.worker.store;
    await sql`update regions set published_version = version`;
    await sql`update lineage set providers_published_version = providers_version`;
    const before = await charts(({ held, publication }) => held.batches === 1 && publication.documents === 0);
    expect(before.publication).toEqual({ documents: 0, behindSince: null });
    expect(before.held).toEqual({ batches: 1, oldest: expect.stringMatching(/^\d{4}-.*Z$/) });
    await sql`update regions set version = version + 1`;
    await sql`
      insert into alerts (key, kind, subject, summary, details, opened_at)
      values ('publication_behind:cache', 'publication_behind', 'cache', '', '{}', '2026-01-02T03:04:05Z')`;
    const after = await charts(({ publication }) => publication.documents > 0);
    expect(after.publication).toEqual({ documents: 2, behindSince: '2026-01-02T03:04:05Z' });
  });

  it('state a decision at once, although another page has just read them', async () => {
    await scene.sync(1);
    await scene.sync(100);
    const [batch] = await scene.worker.store.sql<{ id: string }[]>`
      select id from held_batches where status = 'pending'`;
    await charts(({ held }) => held.batches === 1);
    expect(await scene.post(`/api/held/${batch?.id}/reject`, { reason: 'a wrong unit' })).toMatchObject({
      status: 200,
    });
    expect(await scene.get('/api/charts')).toMatchObject({ held: { batches: 0, oldest: null } });
  });
});

describe('the jobs of a queue', () => {
  const minute = (n: number) => n * 60;
  const window = { from: 0, step: 120, steps: 3 };
  const metrics = (last: number, current: number, data: readonly number[]) => ({
    name: 'sync',
    getMetrics: async () => ({
      // 10 jobs ended before the minute of the last one.
      meta: { count: 10 + current, prevCount: 10, prevTS: minute(last) * 1000 + 5000 },
      data: [...data],
      count: data.length,
    }),
  });

  it('are placed by the minute of the last job: BullMQ records nothing while no job ends', async () => {
    // Minutes 0 to 3 had 1, 2, 3 and 4 jobs. No job ended later.
    const counts = await jobCounts([metrics(3, 4, [3, 2, 1])], window, 1000);
    expect(counts?.completed.sync).toEqual([3, 7, 0]);
  });

  it('are omitted before the window, and zero without any job', async () => {
    expect((await jobCounts([metrics(1, 4, [3, 9, 9])], window, 1000))?.completed.sync).toEqual([7, 0, 0]);
    const never = {
      name: 'sync',
      getMetrics: async () => ({ meta: { count: 0, prevCount: 0, prevTS: 0 }, data: [], count: 0 }),
    };
    expect((await jobCounts([never], window, 1000))?.failed.sync).toEqual([0, 0, 0]);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import { sourceTimeline } from '../../../src/features/console/queries/timeline.ts';
import type {
  BatchRecord,
  ExcludedAnswer,
  RejectedAnswer,
  SourceAnswer,
  TimelineAnswer,
} from '../../../src/features/console/routes/answers.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

let scene: ConsoleScene;
beforeAll(async () => {
  scene = await openConsoleScene();
  await scene.sync(1);
  await scene.sync(100);
  const [batch] = (await scene.get('/api/held')) as BatchRecord[];
  await scene.post(`/api/held/${batch?.id}/reject`, { reason: 'cents' });
  await scene.post(`/api/held/${batch?.id}/undo`, { reason: 'too fast' });
  await scene.post(`/api/held/${batch?.id}/approve`, { reason: 'a new tariff' });
  await scene.fail();
});
afterAll(() => scene[Symbol.asyncDispose]());

const timeline = async (query = '') =>
  (await scene.get(`/api/sources/hetzner/timeline${query}`)) as TimelineAnswer;

describe('a source in the console', () => {
  it('has its state, its regions and its next slots', async () => {
    const { source, problems, regions, nextSlots, canRun } = (await scene.get(
      '/api/sources/hetzner',
    )) as SourceAnswer;
    expect(source).toMatchObject({ id: 'hetzner', state: 'failing', known: 12, published: 10 });
    expect(problems.map(({ kind }) => kind)).toEqual(['failing']);
    expect(regions).toMatchObject([
      { code: 'fsn1', unreadSince: null, objectiveSeconds: 10_800 },
      { code: 'nbg1', unreadSince: null, objectiveSeconds: 10_800 },
    ]);
    expect(regions[0]?.ageSeconds).toBeLessThan(120);
    expect(nextSlots).toHaveLength(5);
    expect(Date.parse(nextSlots[4] ?? '') - Date.parse(nextSlots[0] ?? '')).toBe(4 * 3_600_000);
    expect(canRun).toBe(true);
  });

  it('has one timeline of runs, held batches and decisions, the newest first', async () => {
    const { entries, hasOlder } = await timeline();
    const entryTexts = entries.map((entry) =>
      entry.kind === 'run'
        ? `run ${entry.run.outcome}`
        : entry.kind === 'action'
          ? entry.did.action
          : `${entry.kind} ${entry.batch.by ?? ''} ${entry.batch.reason ?? ''}`.trim(),
    );
    // The approval is a separate run. An undone rejection has only one entry.
    expect(entryTexts).toEqual([
      'run failed',
      'decided OPS_TOKEN a new tariff',
      'run changed',
      'run held',
      'run changed',
    ]);
    expect(hasOlder).toBe(false);
    const [failed] = entries;
    if (failed?.kind !== 'run') expect.unreachable('the last thing was a run');
    expect(failed.run).toMatchObject({ slot: null, error: expect.stringContaining('127.0.0.1') });
    const times = entries.map(({ at }) => at);
    expect(times).toEqual(times.toSorted().reverse());
  });

  it('has older pages without gaps and repetitions', async () => {
    const { entries: all } = await timeline();
    const paged: (typeof all)[number][] = [];
    for (let before = ''; ; ) {
      const page = await timeline(`?limit=2${before}`);
      paged.push(...page.entries);
      if (!page.hasOlder) break;
      before = `&before=${page.entries.at(-1)?.at}`;
    }
    expect(paged).toEqual(all);
  });

  it('rejects a wrong time of its timeline', async () => {
    for (const time of ['yesterday', '0000-01-01T00:00:00Z', '2026-02-30T00:00:00Z'])
      expect(await timeline(`?before=${time}`)).toEqual({
        error: `before must be an instant such as 2026-01-31T12:00:00Z; it is "${time}"`,
        field: 'before',
      });
  });

  it('lists excluded machines with their reasons', async () => {
    const { total, reasons, rows } = (await scene.get(
      '/api/sources/hetzner/excluded?limit=1&offset=1',
    )) as ExcludedAnswer;
    expect([total, reasons]).toEqual([
      2,
      [{ reason: 'discontinued', count: 2, meaning: 'its provider no longer sells it' }],
    ]);
    expect(rows).toMatchObject([{ name: 'cx61', regionCode: 'nbg1', reason: 'discontinued' }]);
  });

  it('lists rejected rows with their reasons', async () => {
    await scene.worker.store.sql`
      insert into quarantined_rows (source_id, row_key, reason, code, region_code, name) values
        ('hetzner', 'cx81@fsn1', 'cores is missing', 'invalid', 'fsn1', 'cx81'),
        ('hetzner', 'nbg1', 'answered 500', 'unread_region', 'nbg1', null)`;
    const path = '/api/sources/hetzner/rejected';
    const { total, reasons, rows } = (await scene.get(`${path}?q=CORES`)) as RejectedAnswer;
    expect(total).toBe(1);
    expect(reasons.map(({ code, count }) => [code, count])).toEqual([
      ['invalid', 1],
      ['unread_region', 1],
    ]);
    expect(rows).toMatchObject([{ key: 'cx81@fsn1', code: 'invalid', reason: 'cores is missing' }]);
    expect(((await scene.get(`${path}?limit=1&offset=1`)) as RejectedAnswer).rows).toHaveLength(1);
  });

  it('is run once on request, at once, and the answer states it', async () => {
    for (let attempt = 0; attempt < 2; attempt++) {
      expect(await scene.post('/api/sources/hetzner/run', {})).toEqual({
        status: 200,
        body: { source: 'hetzner', starts: 'now', currentRun: null },
      });
    }
    expect(
      await scene.worker.store
        .sql`select attempt, cause, asked_by from schedule_slots where schedule = 'hetzner'`,
    ).toEqual([{ attempt: 0, cause: 'hand', asked_by: 'OPS_TOKEN' }]);
    const subject = { kind: 'source', id: 'hetzner' };
    expect((await auditRecords(scene.worker.store.db, { subject })).rows).toMatchObject([
      { action: 'source.run', by: 'OPS_TOKEN', how: 'token', address: '127.0.0.1' },
      { action: 'source.run' },
    ]);
  });

  it('is not found under another name', async () => {
    expect(await scene.get('/api/sources/nowhere')).toEqual({ error: 'there is no source nowhere' });
    expect(await scene.post('/api/sources/nowhere/run', {})).toMatchObject({ status: 404 });
  });
});

it('has an empty timeline if nothing happened', async () => {
  const page = { before: undefined, limit: 10 };
  expect(await sourceTimeline(scene.worker.store.db, 'nowhere', page)).toEqual([]);
});

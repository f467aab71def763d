/** Runs and their changes in the console's routes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type {
  BatchRecord,
  ChangesAnswer,
  MachineChange,
  RunAnswer,
} from '../../../src/features/console/routes/answers.ts';
import { type ConsoleScene, HEADERS, openConsoleScene } from './scene.ts';

let scene: ConsoleScene;
beforeAll(async () => {
  scene = await openConsoleScene();
  // Runs 1 to 4: all rows new, held, approved, failed.
  await scene.sync(1);
  await scene.sync(100, 5);
  const [batch] = (await scene.get('/api/held')) as BatchRecord[];
  await scene.post(`/api/held/${batch?.id}/approve`, { reason: 'a new tariff' });
  await scene.fail();
});
afterAll(() => scene[Symbol.asyncDispose]());

const run = async (id: number, query = '') => (await scene.get(`/api/runs/${id}${query}`)) as RunAnswer;
const changes = async (query = '') => (await scene.get(`/api/changes${query}`)) as ChangesAnswer;
const machines = ({ diff }: Pick<RunAnswer, 'diff'>): readonly MachineChange[] =>
  diff.of === 'machines' ? diff.rows : expect.unreachable(`a diff of ${diff.of}`);

describe('a run in the console', () => {
  it('has its cause, its outcome, and each machine before and after', async () => {
    const answer = await run(3);
    expect(answer).toMatchObject({
      run: {
        sourceId: 'hetzner',
        outcome: 'changed',
        cause: 'decision',
        askedBy: 'OPS_TOKEN',
        decision: { kind: 'approve', by: 'OPS_TOKEN', reason: 'a new tariff' },
      },
      isKept: true,
      unshown: 0,
      diff: { of: 'machines', totals: { retired: 2, withdrawn: 2, repriced: 8, added: 0 } },
    });
    const repriced = machines(answer).filter(({ change }) => change === 'repriced');
    expect(repriced).toHaveLength(8);
    expect(repriced[0]).toMatchObject({
      name: 'cx11',
      regionCode: 'fsn1',
      before: { amount: '0.01', currency: 'EUR', per: 'hour' },
      after: { amount: '1' },
      factor: 100,
    });
  });

  it('is searched, filtered by kind and paged, with the counts of the search', async () => {
    const found = await run(3, '?q=cx2&kind=repriced&limit=1&offset=1');
    expect(found.diff).toMatchObject({ totals: { repriced: 2, retired: 0 } });
    expect(machines(found)).toMatchObject([{ name: 'cx21', regionCode: 'nbg1' }]);
    expect((await run(3, '?q=CX21%20NBG1')).diff).toMatchObject({ totals: { repriced: 1 } });
    expect((await run(1, '?q=fsn1&kind=added&limit=2')).diff).toMatchObject({
      totals: { added: 6 },
      rows: [{ before: null, factor: null }, {}],
    });
  });

  it('that was held or failed has that outcome and no changes', async () => {
    const held = await run(2);
    expect(held).toMatchObject({ run: { outcome: 'held', heldBatch: 1 }, isKept: true });
    expect(machines(held)).toEqual([]);
    expect(await run(4)).toMatchObject({
      run: { outcome: 'failed', error: expect.stringContaining('127.0.0.1') },
    });
  });

  it('has the runs of its source before and after it', async () => {
    await scene.worker.store.sql`
      insert into sources (id, kind, adapter) values ('other', 'catalogue', 'hetzner');
      insert into sync_runs (source_id, fence) values ('other', 1)`.simple();
    const neighbours = async (id: number) => {
      const { previous, next } = await run(id);
      return [previous, next];
    };
    expect(await neighbours(1)).toEqual([null, 2]);
    expect(await neighbours(3)).toEqual([2, 4]);
    expect(await neighbours(4)).toEqual([3, null]);
    expect(await neighbours(5)).toEqual([null, null]);
  });

  it.each(['4711', 'x', '0'])('is not found as %s', async (id) => {
    const answer = await scene.app.inject({ url: `/api/runs/${id}`, headers: HEADERS });
    expect([answer.statusCode, answer.json()]).toEqual([
      404,
      { error: expect.stringContaining(`there is no run ${id}`) },
    ]);
  });
});

describe('changes in the console', () => {
  it('are those of the last day, by kind, with the counts of clusters', async () => {
    const found = await changes();
    expect(found).toMatchObject({
      provider: null,
      diff: { of: 'machines', totals: { retired: 2, repriced: 8, added: 12 } },
      otherTotals: { retired: 0, added: 0 },
    });
    expect(machines(found).map(({ change }) => change)[0]).toBe('retired');
    expect(Date.now() - Date.parse(found.since)).toBeGreaterThan(86_000_000);
    expect((await changes('?of=clusters')).diff).toMatchObject({ of: 'clusters', rows: [] });
  });

  it('have the biggest price moves first, for any unit of a price', async () => {
    const { sql } = scene.worker.store;
    // 14.6 a month is 0.02 an hour. A price in another currency is no move.
    await sql`update machine_changes set source_amount = 14.6, source_per = 'month' where old_amount = 0.01`;
    await sql`update machine_changes set source_currency = 'USD' where old_amount = 0.02`;
    await sql`update machine_changes set source_amount = 0.00015 where old_amount = 0.03`;
    const moves = machines(await changes('?order=biggest&kind=repriced'));
    expect(moves.map(({ name, factor }) => `${name} ${factor}`)).toEqual([
      ...['cx31 0.005', 'cx31 0.005', 'cx41 100', 'cx41 100'],
      ...['cx11 2', 'cx11 2', 'cx21 null', 'cx21 null'],
    ]);
    expect(machines(await changes('?order=biggest&limit=1'))).toMatchObject([{ change: 'repriced' }]);
  });

  it('are those of one provider, by name or id', async () => {
    const [place] = ((await scene.get('/api/places')) as { providers: { id: number }[] }).providers;
    for (const provider of ['HETZNER', String(place?.id)])
      expect(await changes(`?provider=${provider}`)).toMatchObject({
        provider: 'Hetzner',
        diff: { totals: { added: 12 } },
      });
  });

  it('state if older changes are deleted', async () => {
    expect(await changes('?since=7d')).toMatchObject({ isComplete: false });
  });

  it.each([
    ['since', '?since=0000-01-01T00:00:00Z', 'since must be a time such as 24h, 7d, 2026-01-31'],
    ['since', '?since=yesterday', 'since must be a time such as 24h, 7d, 2026-01-31'],
    ['since', '?since=2999-01-01', 'since is in the future'],
    [
      'provider',
      '?provider=unknown',
      'provider must be the name or id of a stored provider; it is "unknown"',
    ],
    ['kind', '?of=clusters&kind=repriced', 'kind must be one of retired, changed, returned, added'],
    ['order', '?order=worst', 'order must be one of kind, biggest'],
    ['of', '?of=regions', 'of must be one of machines, clusters'],
  ])('are not shown for a bad %s: %s', async (field, query, error) => {
    const answer = await scene.app.inject({ url: `/api/changes${query}`, headers: HEADERS });
    expect([answer.statusCode, answer.json()]).toEqual([
      400,
      { error: expect.stringContaining(error), field },
    ]);
  });

  it('may be read by any signed-in operator', async () => {
    expect((await scene.app.inject({ url: '/api/changes' })).statusCode).toBe(401);
    expect((await scene.app.inject({ url: '/api/runs/1' })).statusCode).toBe(401);
  });
});

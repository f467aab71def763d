import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BadInput } from '../../../src/domain/input.ts';
import type { BatchRecord, HeldPreview, ShownBatch } from '../../../src/features/console/routes/answers.ts';
import { changesPage } from '../../../src/features/console/routes/held.ts';
import type { CatalogueDiff } from '../../../src/sync/catalogue/match.ts';
import { type ConsoleScene, HEADERS, openConsoleScene } from './scene.ts';

let scene: ConsoleScene;
beforeAll(async () => {
  scene = await openConsoleScene();
  await scene.sync(1);
});
afterAll(() => scene[Symbol.asyncDispose]());

const list = async () => (await scene.get('/api/held')) as BatchRecord[];
const show = async (id: number, query = '') => (await scene.get(`/api/held/${id}${query}`)) as ShownBatch;
const newest = async () => (await list())[0] ?? expect.unreachable('nothing was held');
const price = async () => {
  const [row] = await scene.worker.store.sql<{ hourly: number }[]>`
    select round(price * 60, 6)::float as hourly from machines where name = 'cx11' order by id limit 1`;
  return row?.hourly;
};

describe('a held batch in the console', () => {
  it('is listed with the reason, and compared with the stored rows', async () => {
    expect(await list()).toEqual([]);
    expect((await scene.sync(100)).outcome).toBe('held');
    const batch = await newest();
    expect(batch).toMatchObject({ sourceId: 'hetzner', status: 'pending', items: 16, decidedBy: null });
    const { changes } = await show(batch.id);
    expect(changes).toMatchObject({
      kind: 'catalogue',
      currency: 'EUR',
      diff: { known: 12, changed: 12, repriced: 12 },
      totals: { price: 10 },
      unseen: 2,
      total: 5,
      isCut: false,
    });
    // Equal factors differ by their rounding, so the order among them is open.
    expect(changes?.rows.map(({ name }) => name).toSorted()).toEqual([
      'cx11',
      'cx21',
      'cx31',
      'cx41',
      'cx51',
    ]);
    expect(changes?.rows).toMatchObject(Array.from({ length: 5 }, () => ({ regions: ['fsn1', 'nbg1'] })));
    const [row] = changes?.rows ?? [];
    if (!row || !('newPrice' in row)) expect.unreachable('a row of a machine');
    expect(row.change).toBe('price');
    expect((row.newPrice ?? 0) / (row.oldPrice ?? 0)).toBeCloseTo(100);
  });

  it('is searched and paged', async () => {
    const { id } = await newest();
    const page = await show(id, '?q=CX21');
    expect(page.changes).toMatchObject({ total: 1, rows: [{ name: 'cx21', regions: ['fsn1', 'nbg1'] }] });
    const all = (await show(id)).changes?.rows ?? [];
    expect((await show(id, '?limit=1&offset=3')).changes).toMatchObject({ total: 5, rows: [all[3]] });
    expect((await show(id, '?q=fsn1')).changes).toMatchObject({
      total: 5,
      rows: Array.from({ length: 5 }, () => ({ regions: ['fsn1'] })),
    });
    expect((await show(id, '?change=gone')).changes).toMatchObject({ total: 0, rows: [] });
  });

  it.each([
    ['limit', '?limit=0', 'limit must be a number from 1 to 1000; it is "0"'],
    ['offset', '?offset=-1', 'offset must be a number from 0 to 2000000000; it is "-1"'],
    ['offset', '?offset=1.5', 'offset must be a whole number; it is "1.5"'],
    ['q', '?q=a&q=b', 'q is given twice; give it once'],
    [
      'change',
      '?change=all',
      'change must be one of gone, excluded, price, shape, facts, published, changed, new; it is "all"',
    ],
  ])('is not shown for a bad %s: %s', async (field, query, error) => {
    const { id } = await newest();
    const answer = await scene.app.inject({
      url: `/api/held/${id}${query}`,
      headers: HEADERS,
    });
    expect([answer.statusCode, answer.json()]).toEqual([400, { error, field }]);
  });

  it.each(['4711', 'x', '0', '99999999999'])('is not found as %s', async (id) => {
    expect((await scene.get(`/api/held/${id}`)) as object).toMatchObject({
      error: expect.stringContaining(`there is no batch ${id}`),
    });
  });

  it.each([{}, { reason: '' }, { reason: '  ' }, { reason: 7 }, { reason: 'two\nlines' }])(
    'needs a reason for a decision: %j',
    async (body) => {
      const { id } = await newest();
      for (const action of ['approve', 'reject', 'undo']) {
        const answer = await scene.post(`/api/held/${id}/${action}`, body);
        expect(answer).toMatchObject({ status: 400, body: { field: 'reason' } });
      }
      expect((await newest()).status).toBe('pending');
    },
  );

  it('accepts no decision from another site or without the token', async () => {
    const { id } = await newest();
    const url = `/api/held/${id}/approve`;
    const foreign = await scene.app.inject({
      method: 'POST',
      url,
      payload: { reason: 'x' },
      headers: { ...HEADERS, 'sec-fetch-site': 'cross-site' },
    });
    expect(foreign.statusCode).toBe(403);
    const anonymous = await scene.app.inject({ method: 'POST', url, payload: { reason: 'x' } });
    expect(anonymous.statusCode).toBe(401);
    expect((await newest()).status).toBe('pending');
  });

  it('is rejected with name and reason, which can be undone', async () => {
    const { id } = await newest();
    expect(await scene.post(`/api/held/${id}/reject`, { reason: ' cents ' })).toEqual({
      status: 200,
      body: { batch: id, decision: 'rejected', counts: null, published: null },
    });
    expect(await show(id)).toMatchObject({
      status: 'rejected',
      decidedBy: 'OPS_TOKEN',
      reason: 'cents',
      changes: null,
    });
    expect(await scene.post(`/api/held/${id}/approve`, { reason: 'x' })).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining(`batch ${id} is rejected already`) },
    });
    expect(await scene.post(`/api/held/${id}/undo`, { reason: 'too fast' })).toMatchObject({ status: 200 });
    expect(await show(id)).toMatchObject({
      status: 'pending',
      undoneBy: 'OPS_TOKEN',
      undoneReason: 'too fast',
      changes: { total: 5 },
    });
  });

  it('is stored and published by an approval, which can be undone', async () => {
    const { id } = await newest();
    expect(await price()).toBe(0.01);
    expect(await scene.post(`/api/held/${id}/approve`, { reason: 'a new tariff' })).toMatchObject({
      status: 200,
      body: { decision: 'approved', counts: { added: 0, changed: 12, retired: 0 }, published: true },
    });
    expect(await price()).toBe(1);
    expect(await show(id)).toMatchObject({
      status: 'approved',
      decidedBy: 'OPS_TOKEN',
      reason: 'a new tariff',
    });
    expect(await scene.post(`/api/held/${id}/undo`, { reason: 'no' })).toMatchObject({
      status: 200,
      body: { decision: 'undone', counts: { changed: 12 }, published: true },
    });
    expect(await price()).toBe(0.01);
    const { trail } = await show(id);
    expect((await scene.get(`/api/runs/${trail.storedBy}`)) as object).toMatchObject({
      run: { decision: { kind: 'approve', batch: id } },
    });
    expect((await scene.get(`/api/runs/${trail.undoneBy}`)) as object).toMatchObject({
      run: { decision: { kind: 'undo', batch: id } },
    });
    expect(await scene.post(`/api/held/${id}/undo`, { reason: 'no' })).toMatchObject({ status: 409 });
  });

  it('accepts no decision after a younger batch has replaced it', async () => {
    await scene.sync(100);
    const { id: older } = await newest();
    const heldBy = (await show(older)).trail.heldBy;
    await scene.sync(200);
    const { id: successor } = await newest();
    expect(successor).not.toBe(older);
    expect(await show(older)).toMatchObject({
      status: 'superseded',
      worst: { rows: expect.any(Array) },
      trail: { heldBy, successor, replacedBy: { outcome: 'held' } },
    });
    expect(await scene.post(`/api/held/${older}/approve`, { reason: 'x' })).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining('superseded already') },
    });
  });
});

describe('a page of machines that a batch would change', () => {
  const machine = (regionCode: string, newPrice: number, more = {}) => ({
    change: 'price' as const,
    name: 'cx11',
    regionCode,
    oldPrice: 1,
    newPrice,
    shape: null,
    detail: '',
    ...more,
  });

  it('joins the regions of one name, change and pair of values only', () => {
    const preview: HeldPreview = {
      kind: 'catalogue',
      currency: 'EUR',
      diff: { known: 6, added: 0, changed: 5, repriced: 5, missing: 1 } as CatalogueDiff,
      regions: {},
      reasons: [],
      totals: { price: 5, gone: 1 },
      unseen: 0,
      rows: [
        machine('d', 0, { change: 'gone' }),
        machine('b', 9),
        machine('a', 9, { detail: 'x86_64 → arm64' }),
        machine('c', 9),
        machine('c', 9, { name: 'cx21' }),
        machine('a', 2, { oldPrice: 2 }),
      ],
    };
    const { rows, total, isCut } = changesPage(preview, {});
    expect(rows.map((row) => 'regions' in row && [row.name, ...row.regions])).toEqual([
      ['cx11', 'd'],
      ['cx11', 'b', 'c'],
      ['cx11', 'a'],
      ['cx21', 'c'],
      ['cx11', 'a'],
    ]);
    expect([total, isCut]).toEqual([5, false]);
  });
});

describe('a page of clusters that a batch would change', () => {
  const preview: HeldPreview = {
    kind: 'clusters',
    diff: { known: 3, added: 0, changed: 1, missing: 2 },
    reasons: [],
    organizations: [{ organization: 'acme', gone: 2, changed: 1, new: 0 }],
    totals: { gone: 2, changed: 1, new: 0 },
    rows: [
      { change: 'gone', organization: 'acme', key: 'k-1', name: 'orders', fields: [] },
      { change: 'changed', organization: 'acme', key: 'k-2', name: 'Events', fields: [] },
    ],
  };

  it.each([
    ['event', ['Events']],
    ['k-1', ['orders']],
    ['ACME', ['orders', 'Events']],
    ['nothing', []],
  ])('has the matches of %s', (q, names) => {
    expect(changesPage(preview, { q }).rows.map(({ name }) => name)).toEqual(names);
  });

  it('states that not all rows can be searched', () => {
    expect(changesPage(preview, {})).toMatchObject({ isCut: true, total: 2, unseen: 0 });
  });

  it('rejects an overlong search', () => {
    expect(() => changesPage(preview, { q: 'x'.repeat(201) })).toThrow(BadInput);
  });
});

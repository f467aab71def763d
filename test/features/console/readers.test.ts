/** The preview of a held batch, and the readers' answers after its approval. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BatchRecord, ReadersAnswer, ShownBatch } from '../../../src/features/console/routes/answers.ts';
import { loadContent } from '../../../src/snapshot/document/load.ts';
import { type ConsoleScene, HEADERS, openConsoleScene } from './scene.ts';

let scene: ConsoleScene;
beforeAll(async () => {
  scene = await openConsoleScene();
  await scene.sync(1);
});
afterAll(() => scene[Symbol.asyncDispose]());

interface Row {
  readonly change: string;
  readonly name: string;
  readonly regionCode: string;
}
/** One row for each machine in each region. */
const rowsOf = ({ changes }: ShownBatch): Row[] =>
  (changes?.rows ?? []).flatMap((row) =>
    'regions' in row
      ? row.regions.map((regionCode) => ({ change: row.change, name: row.name, regionCode }))
      : [],
  );
const newest = async () => {
  const [batch] = (await scene.get('/api/held')) as BatchRecord[];
  const shown = (await scene.get(`/api/held/${batch?.id}`)) as ShownBatch;
  return { id: shown.id, rows: rowsOf(shown) };
};
const readers = async (batch: number, { name, regionCode }: Pick<Row, 'name' | 'regionCode'>) =>
  (await scene.get(`/api/held/${batch}/readers?machine=${name}&region=${regionCode}`)) as ReadersAnswer;
/** A machine in the published documents, as JSON; null if they do not have it. */
async function published({ name, regionCode }: Row): Promise<string | null> {
  const { sql } = scene.worker.store;
  const [machine] = await sql<{ id: number; regionId: number }[]>`
    select m.id, m.region_id as "regionId" from machines m join regions r on r.id = m.region_id
    where m.name = ${name} and r.code = ${regionCode}`;
  if (!machine) return null;
  const document = await loadContent(sql, { kind: 'region', regionId: machine.regionId });
  const place = document?.index.get(String(machine.id));
  return document && place ? document.body.subarray(...place).toString() : null;
}
/** Previews every row, approves, and reads the answers. */
async function approved() {
  const { id, rows } = await newest();
  const seen = await Promise.all(rows.map((row) => readers(id, row)));
  for (const [index, row] of rows.entries()) expect(seen[index]?.now).toBe(await published(row));
  expect((await scene.post(`/api/held/${id}/approve`, { reason: 'it is right' })).status).toBe(200);
  return rows.map((row, index) => ({ row, seen: seen[index] ?? expect.unreachable('each was looked at') }));
}
const kinds = (rows: readonly { row: Row }[]) => [...new Set(rows.map(({ row }) => row.change))];

describe('the preview of a held batch', () => {
  it('equals the readers’ answers after the approval byte for byte, except for unknown ids', async () => {
    // Prices change, cx61 is published, cx71 is new.
    await scene.sync(100.0001, 8);
    const rows = await approved();
    expect(kinds(rows)).toEqual(['price', 'published', 'new']);
    for (const { row, seen } of rows) {
      const found = await published(row);
      if (row.change !== 'new') {
        expect(seen.after).toBe(found);
        continue;
      }
      expect(seen).toMatchObject({ id: null, now: null });
      const { id, ...others } = JSON.parse(found ?? '{}') as Record<string, unknown>;
      expect(id).toBeGreaterThan(0);
      expect(JSON.parse(seen.after ?? '{}')).toEqual({ id: null, ...others });
    }
    const price = rows.find(({ row }) => row.name === 'cx11')?.seen;
    expect(price?.now).toContain('"price":0.000166');
    expect(price?.after).toContain('"price":0.016666');
  });

  it('is null for a removed or excluded machine', async () => {
    await scene.sync(100.0001, 5);
    const rows = await approved();
    expect(kinds(rows)).toEqual(['gone', 'excluded']);
    for (const { row, seen } of rows) {
      expect(seen).toMatchObject({ id: expect.any(Number), now: expect.any(String), after: null });
      expect(await published(row)).toBeNull();
    }
  });

  it('exists for changed machines while the batch waits', async () => {
    await scene.sync(1, 5);
    const { id } = await newest();
    const status = async (query: string) => {
      const answer = await scene.app.inject({ url: `/api/held/${id}/readers${query}`, headers: HEADERS });
      return [answer.statusCode, answer.json().error];
    };
    expect(await status('?machine=cx11&region=fsn1')).toEqual([200, undefined]);
    expect(await status('?machine=cx11')).toEqual([400, 'region is missing']);
    expect(await status('?machine=cx11&region=nowhere')).toEqual([
      404,
      `batch ${id} changes no machine cx11 in nowhere that readers see`,
    ]);
    await scene.post(`/api/held/${id}/reject`, { reason: 'no' });
    expect(await status('?machine=cx11&region=fsn1')).toEqual([
      409,
      expect.stringContaining('is rejected already'),
    ]);
    expect((await scene.app.inject({ url: `/api/held/${id}/readers` })).statusCode).toBe(401);
  });
});

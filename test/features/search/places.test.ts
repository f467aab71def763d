/** Filters by the country and the continent of regions, over HTTP. */
import { beforeEach, expect, it } from 'vitest';
import type { RecommendDocument, SearchDocument } from '../../../src/features/search/schema.ts';
import { addMachine, addPlan, addProvider, addRegion } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { openCosts } from '../costs/scene.ts';

const scene = sceneForEachTest();

beforeEach(async () => {
  const { sql, sample } = scene;
  const provider = await addProvider(sql, 2, 'Other');
  for (const [code, country] of [
    ['muc', 'DE'],
    ['chi', 'US'],
    ['xxx', null],
  ] as const) {
    const region = await addRegion(sql, provider, code);
    await addMachine(sql, region, { name: `in-${code}`, cpu: 4, ram: 16, source: 'cloud' });
    await addPlan(sql, region);
    await sql`update regions set country = ${country} where id = ${region}`;
  }
  await sql`update regions set country = 'CH' where id = ${sample.region}`;
});

it('select machines and plans by where their region is', async () => {
  await using api = await openCosts(scene);
  const regions = async (query: string) => {
    const found = await api.json<SearchDocument>(`/v1/machines/search?min_cpu=4&max_cpu=4&${query}`);
    const plans = await api.json<{ databases: { region: { code: string } }[] }>(`/v1/databases?${query}`);
    const recommended = await api.json<RecommendDocument>(
      `/v1/machines/recommend?cpu=4&ram=16&provider=2&${query}`,
    );
    const codes = found.machines.map(({ region }) => region?.code);
    expect(plans.databases.map(({ region }) => region.code)).toEqual(codes);
    expect(recommended.recommendations.length).toBe(Math.min(codes.length, 1));
    return codes;
  };
  expect(await regions('')).toEqual(['muc', 'chi', 'xxx']);
  expect(await regions('country=de')).toEqual(['muc']);
  expect(await regions('country=DE,US')).toEqual(['muc', 'chi']);
  expect(await regions('continent=europe')).toEqual(['muc']);
  expect(await regions('continent=europe,north_america')).toEqual(['muc', 'chi']);
  expect(await regions('continent=europe&country=US')).toEqual([]);
  expect(await regions('country=ZZ')).toEqual([]);
  const { machines } = await api.json<SearchDocument>('/v1/machines/search?continent=europe');
  expect(new Set(machines.map(({ region }) => region?.code))).toEqual(new Set(['muc', 'zrh']));
  // No answer about a region has more fields than before.
  expect(machines[0]?.region).toEqual({
    id: expect.any(Number),
    name: expect.any(String),
    code: expect.any(String),
  });
});

it('keep a cursor for the same places in any order and case, and refuse it for others', async () => {
  await using api = await openCosts(scene);
  const { next } = await api.json<SearchDocument>('/v1/machines/search?country=DE,US&min_cpu=4&limit=1');
  const page = await api.json<SearchDocument>(`/v1/machines/search?country=us,de&min_cpu=4&cursor=${next}`);
  expect(page.machines.map(({ region }) => region?.code)).toEqual(['chi']);
  const refused = await api.get(`/v1/machines/search?country=US&min_cpu=4&cursor=${next}`);
  expect([refused.statusCode, refused.json().parameter]).toEqual([400, 'cursor']);
});

it.each([
  ['country', 'DEU'],
  ['country', 'D1'],
  ['country', ''],
  ['continent', 'Europe'],
  ['continent', 'antarctica'],
])('refuse %s=%s', async (name, value) => {
  await using api = await openCosts(scene);
  for (const path of ['/v1/machines/search?', '/v1/machines/recommend?cpu=1&ram=1&', '/v1/databases?']) {
    const response = await api.get(`${path}${name}=${value}`);
    expect([path, response.statusCode, response.json().parameter]).toEqual([path, 400, name]);
  }
});

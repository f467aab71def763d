/** The stock of machines over time, from a change in PostgreSQL to answers of the API. */
import { describe, expect, it } from 'vitest';
import type { AvailabilityDocument } from '../../../src/features/availability/routes.ts';
import type { FirstAvailableDocument, SearchDocument } from '../../../src/features/search/schema.ts';
import { addSource, verify } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { until } from '../../support/until.ts';
import { openCosts } from '../costs/scene.ts';

const scene = sceneForEachTest();

const DAY = 24 * 3600;
const NOW = Math.floor(Date.now() / 1000);
const ago = (days: number) => NOW - days * DAY;
const rfc3339 = (seconds: number) => `${new Date(seconds * 1000).toISOString().slice(0, -1)}000Z`;

/** Writes a history as a sync would leave it: listed 40 days ago, and then a change at each time, between in stock and sold out. */
async function setStock(machineId: number, isAvailable: boolean, changes: readonly number[]) {
  const { sql, sample } = scene;
  const begin = ago(40);
  const wasAvailable = (place: number) => ((changes.length - place) % 2 === 0) === isAvailable;
  const state = (is: boolean) => (is ? 'available' : 'sold_out');
  for (const [i, at] of changes.entries())
    await sql`insert into machine_availability (machine_id, changed_at, before, after)
      values (${machineId}, to_timestamp(${at}), ${state(wasAvailable(i))}, ${state(wasAvailable(i + 1))})`;
  await sql`update machines set stock = ${[begin, ...changes]}, created_at = to_timestamp(${begin}),
    excluded_reason = ${isAvailable ? null : 'sold_out'} where id = ${machineId}`;
  await sql`update regions set version = version + 1 where id = ${sample.region}`;
}

describe('/v1/machines/{id}/availability', () => {
  it('answers the periods of a machine, the newest first, and the share of the last 30 days', async () => {
    const { small, big } = scene.sample;
    const [out, back] = [ago(6), ago(3)];
    await setStock(small, true, [out, back]);
    await using api = await openCosts(scene);
    const found = await api.json<AvailabilityDocument>(`/v1/machines/${small}/availability`);
    expect(found).toEqual({
      id: small,
      name: expect.any(String),
      provider: { id: 1, name: 'Wölkchen 🚀' },
      region: expect.objectContaining({ code: 'zrh' }),
      available: true,
      available_share: 0.9,
      history: [
        { available: true, from: rfc3339(back), to: null },
        { available: false, from: rfc3339(out), to: rfc3339(back) },
        { available: true, from: rfc3339(ago(40)), to: rfc3339(out) },
      ],
    });
    const steady = await api.json<AvailabilityDocument>(`/v1/machines/${big}/availability`);
    expect(steady).toMatchObject({ available_share: 1, history: [{ available: true, to: null }] });
    expect(steady.history).toHaveLength(1);
  });

  it('answers for a sold-out machine, and 404 for one that is in no list', async () => {
    const { small, gpu } = scene.sample;
    await setStock(small, false, [ago(3)]);
    await using api = await openCosts(scene);
    expect(await api.json<AvailabilityDocument>(`/v1/machines/${small}/availability`)).toMatchObject({
      available: false,
      available_share: 0.9,
      history: [{ available: false, to: null }, { available: true }],
    });
    const problems = await Promise.all(
      [gpu, 999_999].map(async (id) => {
        const response = await api.get(`/v1/machines/${id}/availability`);
        return [response.statusCode, response.json().detail];
      }),
    );
    expect(problems).toEqual(Array(2).fill([404, 'There is nothing here that this token may read.']));
    await scene.sql`update machines set retired_at = now() where id = ${small}`;
    await scene.sql`update regions set version = version + 1 where id = ${scene.sample.region}`;
    await scene.publisher.publishDirty();
    await until(async () => (await api.get(`/v1/machines/${small}/availability`)).statusCode === 404);
  });

  it('is as old as the sources of its region, and not as the oldest of all', async () => {
    const { small } = scene.sample;
    await addSource(scene.sql, 'older', 'catalogue');
    await verify(scene.sql, 'older', '2025-01-01T00:00:00.000Z');
    await using api = await openCosts(scene);
    const asOf = async (path: string) => (await api.get(path)).headers['fleetbook-as-of'];
    expect(await asOf(`/v1/machines/${small}/availability`)).toBe(await asOf(`/v1/machines/${small}`));
    expect(await asOf('/v1/providers')).toBe('2025-01-01T00:00:00.000Z');
  });

  it('is that of a replica with the version of the machine’s list', async () => {
    const { small } = scene.sample;
    await setStock(small, true, [ago(6), ago(3)]);
    await using api = await openCosts(scene, { replicaUrl: scene.db.url });
    await api.json(`/v1/machines/${small}/availability`);
    await api.json(`/v1/machines/${small}/prices`);
    expect(api.replica?.counts.fenced.get('older') ?? 0).toBe(0);
    await scene.sql`update regions set version = version - 1 where id = ${scene.sample.region}`;
    await api.json(`/v1/machines/${small}/availability`);
    expect(api.replica?.counts.fenced.get('older')).toBe(1);
  });

  it.each([
    ['/v1/machines/0/availability', 'id'],
    ['/v1/machines/x/availability', 'id'],
    ['/v1/machines/1/availability?days=7', 'days'],
  ])('answers %s with a problem that names %s', async (url, parameter) => {
    await using api = await openCosts(scene);
    const response = await api.get(url);
    expect([response.statusCode, response.json().parameter]).toEqual([400, parameter]);
  });
});

describe('the share of the last 30 days', () => {
  it('is in searches and recommendations, follows changes, and passes as time does', async () => {
    const { small, big } = scene.sample;
    await setStock(small, true, [ago(6), ago(3)]);
    await using api = await openCosts(scene);
    const shares = async (query = 'fields=id,available_share') =>
      (await api.json<SearchDocument>(`/v1/machines/search?${query}`)).machines.map(
        ({ id, available_share }) => [id, available_share],
      );
    expect(await shares()).toEqual([
      [small, 0.9],
      [big, 1],
    ]);
    expect(await shares('min_cpu=1')).toEqual(await shares());
    const { recommendations } = await api.json<{ recommendations: object[] }>(
      '/v1/machines/recommend?cpu=1&ram=1',
    );
    expect(recommendations).toMatchObject([{ machine: { id: small, available_share: 0.9 } }]);
    await setStock(small, false, [ago(15)]);
    await scene.publisher.publishDirty();
    const all = 'available=all&fields=id,available_share';
    await until(async () => (await shares(all)).some(([, share]) => share === 0.5));
    expect(await shares()).toEqual([[big, 1]]);
  });
});

describe('/v1/machines/first-available', () => {
  const reasons = ({ passed }: FirstAvailableDocument) => passed.map(({ id, reason }) => [id, reason]);

  it('answers the first machine of the list that can be ordered, and why it passed the others', async () => {
    const { small, big, gpu } = scene.sample;
    await setStock(small, false, [ago(1)]);
    await using api = await openCosts(scene);
    const first = (ids: readonly number[]) =>
      api.json<FirstAvailableDocument>(`/v1/machines/first-available?ids=${ids.join(',')}`);
    const found = await first([gpu, 999_999, small, big]);
    expect(found.machine).toMatchObject({ id: big, available_share: 1, price: expect.any(Number) });
    expect(reasons(found)).toEqual([
      [gpu, 'not_listed'],
      [999_999, 'not_listed'],
      [small, 'sold_out'],
    ]);
    expect(reasons(await first([big, small]))).toEqual([]);
    const none = await first([small, gpu]);
    expect([none.machine, reasons(none)]).toEqual([
      null,
      [
        [small, 'sold_out'],
        [gpu, 'not_listed'],
      ],
    ]);
    expect(await first([big])).toEqual({ machine: found.machine, passed: [] });
    expect((await api.get(`/v1/machines/${big}`)).json()).toMatchObject({ id: big });
  });

  it('has the own price of the organization', async () => {
    const { small, a } = scene.sample;
    await scene.sql`insert into price_book_entries (organization_id, discount, valid_from) values (${a}, 50, '2026-01-01Z')`;
    await scene.sql`update organizations set clusters_version = clusters_version + 1 where id = ${a}`;
    await using api = await openCosts(scene);
    const url = `/v1/machines/first-available?ids=${small}`;
    const of = async (query: string, token: 'a' | 'b') =>
      (await api.json<FirstAvailableDocument>(url + query, token)).machine;
    expect(await of('', 'a')).toMatchObject({ price: 0.00005, price_source: 'book', list_price: 0.0001 });
    for (const [query, token] of [
      ['&prices=list', 'a'],
      ['', 'b'],
    ] as const) {
      const machine = await of(query, token);
      expect(machine?.price).toBe(0.0001);
      expect(machine).not.toHaveProperty('list_price');
    }
  });

  const many = Array.from({ length: 101 }, (_, i) => i + 1).join(',');
  it.each([
    ['', '.'],
    ['?ids=', '; it has none.'],
    ['?ids=1,x,3', '; "x" is none.'],
    ['?ids=1,,3', '; "" is none.'],
    ['?ids=1,2147483648', '; "2147483648" is none.'],
    ['?ids=7,8,7', '; it has 7 twice.'],
    ['?ids=7&ids=7', '; it has 7 twice.'],
    [`?ids=${many}`, '; it has 101.'],
  ])('refuses %s by name, and says what it takes', async (query, wrong) => {
    await using api = await openCosts(scene);
    const response = await api.get(`/v1/machines/first-available${query}`);
    expect([response.statusCode, response.json()]).toMatchObject([
      400,
      {
        type: 'urn:fleetbook:problem:invalid-parameter',
        parameter: 'ids',
        detail: `The query parameter "ids" must be given, as 1 to 100 different ids with commas between them, each a positive 32-bit integer in decimal digits${wrong}`,
      },
    ]);
  });

  it('takes 100 ids, and refuses a token without the scope', async () => {
    await using api = await openCosts(scene);
    const ids = Array.from({ length: 100 }, (_, i) => 900_000 + i).join(',');
    const found = await api.json<FirstAvailableDocument>(`/v1/machines/first-available?ids=${ids}`);
    expect([found.machine, found.passed.length]).toEqual([null, 100]);
    expect((await api.app.inject(`/v1/machines/first-available?ids=${ids}`)).statusCode).toBe(401);
  });
});

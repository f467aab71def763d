/** Machines that are sold out, over HTTP: hidden by default, and shown by search, recommendations, changes and exports. */
import { describe, expect, it } from 'vitest';
import { createToken } from '../../../src/db/tokens.ts';
import { SCOPES } from '../../../src/domain/scope.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { until } from '../../support/until.ts';
import { type ChangesApi, serveChanges } from './changes-api.ts';
import type { Page } from './copy.ts';

const scene = sceneForEachTest();

async function open() {
  const api = await serveChanges(scene);
  const { token } = await createToken(scene.store.db, {
    organizationId: scene.sample.a,
    scopes: [...SCOPES],
  });
  return { api, token, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() };
}

/** Changes the small machine and publishes its region. */
async function set(api: ChangesApi, fields: { reason?: string | null; price?: string; retired?: boolean }) {
  const { small, region } = scene.sample;
  const { reason, price, retired } = fields;
  if (reason !== undefined)
    await scene.sql`update machines set excluded_reason = ${reason} where id = ${small}`;
  if (price !== undefined) await scene.sql`update machines set price = ${price} where id = ${small}`;
  if (retired) await scene.sql`update machines set retired_at = now() where id = ${small}`;
  await scene.sql`update regions set version = version + 1 where id = ${region}`;
  await api.publisher.publishDirty();
}

const short = ({ changes }: Page) =>
  changes.map((change) => {
    const { type, machine } = change as { type: string; machine?: { available?: boolean } };
    return machine?.available === false ? `${type} sold out` : type;
  });

describe('a sold-out machine', () => {
  it('is absent from the four operations, and searches of all machines show it', async () => {
    await using opened = await open();
    const { api, token } = opened;
    const { small, big, region, provider } = scene.sample;
    const get = async (path: string) => JSON.parse((await (await api.get(path, token)).toArray()).join(''));
    const list = `/v1/machines?provider=${provider}&region=${region}`;
    const idsOf = async (path: string) =>
      (await get(path)).machines.map(({ id, available }: { id: number; available?: boolean }) => [
        id,
        available,
      ]);
    expect(await idsOf('/v1/machines/search')).toEqual([
      [small, undefined],
      [big, undefined],
    ]);
    await set(api, { reason: 'sold_out' });
    await until(async () => (await idsOf('/v1/machines/search')).length === 1);
    expect((await get(list)).map(({ id }: { id: number }) => id)).toEqual([big]);
    expect((await api.get(`/v1/machines/${small}`, token)).statusCode).toBe(404);
    expect(await idsOf('/v1/machines/search?available=all')).toEqual([
      [small, false],
      [big, undefined],
    ]);
    const least = '/v1/machines/recommend?cpu=1&ram=1';
    expect((await get(least)).recommendations).toMatchObject([{ machine: { id: big } }]);
    expect((await get(`${least}&available=all`)).recommendations).toMatchObject([
      { machine: { id: small, available: false } },
    ]);
    expect((await api.get('/v1/machines/search?available=some', token)).statusCode).toBe(400);
    await set(api, { reason: null });
    await until(async () => (await idsOf('/v1/machines/search')).length === 2);
  });

  it('is the only machine for a follower that names it, in pages and streams', async () => {
    await using opened = await open();
    const { api, token } = opened;
    const { small, big } = scene.sample;
    const begin = (await api.page('/v1/changes', token)).next;
    const { next: after } = await api.page(`/v1/changes?after=${begin}`, token);
    const named = `?after=${after}&available=all&machines=${small}`;
    const [waiting, everything] = await Promise.all([
      api.stream(token, {}, named),
      api.stream(token, {}, `?after=${after}&available=all`),
    ]);
    await until(() => api.reader.feed.size === 2);
    for (const reason of ['sold_out', null]) {
      await scene.sql`update machines set price = price * 2 where id = ${big}`;
      await set(api, { reason });
    }
    const stock = ['machine.sold_out', 'machine.restocked'];
    expect(short(await api.page(`/v1/changes${named}`, token))).toEqual(stock);
    const other = `/v1/changes?after=${after}&available=all&machines=${big},999999`;
    expect(short(await api.page(other, token))).toEqual(['machine.repriced', 'machine.repriced']);
    const late = await api.stream(token, {}, named);
    const typesOf = ({ seen }: typeof late) => seen.text.match(/(?<=^event: ).*$/gm) ?? [];
    await until(() => typesOf(everything).length === 4 && typesOf(late).length === 2);
    expect([typesOf(waiting), typesOf(late)]).toEqual([stock, stock]);
    const refused = await api.page(`/v1/changes?machines=${small},${small}`, token, 400);
    expect(refused.parameter).toBe('machines');
  });

  it('is withdrawn and added for ordinary followers, and sold out and restocked for the others', async () => {
    await using opened = await open();
    const { api, token } = opened;
    const begin = (await api.page('/v1/changes', token)).next;
    const { next: after } = await api.page(`/v1/changes?after=${begin}`, token);
    const both = async () => [
      short(await api.page(`/v1/changes?after=${after}`, token)),
      short(await api.page(`/v1/changes?after=${after}&available=all`, token)),
    ];
    await set(api, { reason: 'sold_out' });
    expect(await both()).toEqual([['machine.withdrawn'], ['machine.sold_out sold out']]);
    await set(api, { price: '0.0003' });
    expect(await both()).toEqual([
      ['machine.withdrawn'],
      ['machine.sold_out sold out', 'machine.repriced sold out'],
    ]);
    const all = await api.page(`/v1/changes?after=${after}&available=all`, token);
    expect(all.changes[1]).toMatchObject({ before: 0.0001, after: 0.0003 });
    await set(api, { reason: null });
    expect(await both()).toEqual([
      ['machine.withdrawn', 'machine.added'],
      ['machine.sold_out', 'machine.repriced', 'machine.restocked'],
    ]);
    await set(api, { reason: 'sold_out' });
    await set(api, { retired: true });
    expect(await both()).toEqual([['machine.withdrawn', 'machine.withdrawn'], ['machine.retired']]);
  });

  it('that was never available is only in feeds with sold-out machines', async () => {
    await using opened = await open();
    const { api, token } = opened;
    await set(api, { reason: 'discontinued' });
    const begin = (await api.page('/v1/changes', token)).next;
    const { next: after } = await api.page(`/v1/changes?after=${begin}`, token);
    await set(api, { reason: 'sold_out' });
    await set(api, { reason: 'discontinued' });
    const page = (query: string) => api.page(`/v1/changes?after=${after}${query}`, token);
    expect(short(await page(''))).toEqual([]);
    expect(short(await page('&available=all'))).toEqual(['machine.withdrawn']);
  });

  it('reaches the streams that include it', async () => {
    await using opened = await open();
    const { api, token } = opened;
    const begin = (await api.page('/v1/changes', token)).next;
    const { next: after } = await api.page(`/v1/changes?after=${begin}`, token);
    const [without, withIt] = await Promise.all(
      ['', '&available=all'].map((query) => api.stream(token, {}, `?after=${after}${query}`)),
    );
    await until(() => api.reader.feed.size === 2);
    await set(api, { reason: 'sold_out' });
    await until(() => without?.seen.text.includes('data: ') && withIt?.seen.text.includes('data: '));
    expect(without?.seen.text.match(/^event: .*$/gm)).toEqual(['event: machine.withdrawn']);
    expect(withIt?.seen.text.match(/^event: .*$/gm)).toEqual(['event: machine.sold_out']);
    expect(withIt?.seen.text).toContain('"available":false');
  });
});

import { expect, it } from 'vitest';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter } from '../../../src/sources/providers/fleetbook.ts';
import { listen, testApi } from '../../http/harness.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { readCatalogue } from './read-catalogue.ts';

const acme = { id: 1000, name: 'Acme' };
const machine = { id: 1, name: 'm.small', ram: 4, cpu: 2, price: 0.0003, ram_unit: 'Binary' };
const regionOf = (id: number) => ({ id, name: `Hall ${id}`, code: `dc${id}` });

function regions(upstream: FakeUpstream, ...ids: number[]): void {
  const json = [{ ...acme, regions: ids.map(regionOf) }];
  upstream.expect({ path: '/v1/providers' }, { json, headers: AS_OF });
}

const AS_OF = { 'fleetbook-as-of': '2026-02-28T22:00:00.000Z' };
const asOf = (hour: string, regionCode?: string) => ({
  kind: 'as-of',
  time: `2026-02-28T${hour}:00:00.000000Z`,
  ...(regionCode === undefined ? {} : { regionCode }),
});
const query = (id: number) => ({ provider: '1000', region: String(id) });

it('reads this service’s answer', async () => {
  await using api = await testApi();
  const port = await listen(api.app);
  const http = openSourceHttp({
    baseUrl: `http://127.0.0.1:${port}`,
    credentials: adapter.credentials,
    token: api.token,
    deadlineMs: 5_000,
    maxBytes: 1_000_000,
  });
  const options = { provider: 'Hetzner' };
  const items = await Array.fromAsync(adapter.catalogue({ http, now: () => new Date(), options }));
  expect(items.filter((item) => item.kind === 'region')).toEqual([
    { kind: 'region', code: 'fsn1', name: 'Falkenstein' },
    { kind: 'region', code: 'nbg1', name: 'Nuremberg' },
  ]);
  const offers = items.flatMap((item) => (item.kind === 'offer' ? [item.offer] : []));
  expect(offers).toHaveLength(43);
  expect(offers[0]).toEqual({
    regionCode: 'fsn1',
    name: 'cax11',
    cpu: 2,
    ram: 4,
    ramUnit: 'Decimal',
    price: { amount: '0.000103791666666667', per: 'minute', currency: 'USD' },
  });
  expect(items.filter(({ kind }) => kind === 'as-of')).toHaveLength(3);
  expect(items).toHaveLength(5 + offers.length);
});

it('reports each region’s freshness as the other instance states it', async () => {
  await using upstream = await fakeUpstream();
  regions(upstream, 1, 2, 3, 4);
  const hours = { 1: { 'fleetbook-as-of': '2026-02-28T01:00:00.000Z' }, 2: AS_OF, 3: {} };
  for (const [id, headers] of Object.entries(hours)) {
    const json = [{ ...machine, provider: acme, region: regionOf(Number(id)) }];
    upstream.expect({ path: '/v1/machines', query: query(Number(id)) }, { json, headers });
  }
  const garbled = { json: [], headers: { 'fleetbook-as-of': 'lately' } };
  upstream.expect({ path: '/v1/machines', query: query(4) }, garbled);
  const items = await readCatalogue(adapter, upstream.url, 'token', { provider: 'Acme' });
  expect(items.filter(({ kind }) => kind === 'as-of' || kind === 'unread')).toEqual([
    asOf('22'),
    asOf('01', 'dc1'),
    asOf('22', 'dc2'),
    {
      kind: 'unread',
      regionCode: 'dc3',
      reason: expect.stringMatching(/^\/v1\/machines answers without Fleetbook-As-Of, so the age/),
    },
    {
      kind: 'unread',
      regionCode: 'dc4',
      reason: '/v1/machines: Fleetbook-As-Of must be an instant such as 2026-01-02T03:04:05Z; it is "lately"',
    },
  ]);
  expect(items.filter(({ kind }) => kind === 'offer')).toHaveLength(2);
});

it('lists the known providers if the requested one is missing', async () => {
  await using upstream = await fakeUpstream();
  regions(upstream, 1);
  await expect(readCatalogue(adapter, upstream.url, 'token', { provider: 'Acne' })).rejects.toMatchObject({
    kind: 'misconfigured',
    message: '/v1/providers lists no provider "Acne"; the option provider must be one of Acme',
  });
});

it('holds all machines of a region whose answer is for another region', async () => {
  await using upstream = await fakeUpstream();
  regions(upstream, 1);
  const json = [{ ...machine, provider: acme, region: regionOf(2) }];
  upstream.expect({ path: '/v1/machines', query: query(1) }, { json, headers: AS_OF });
  const items = await readCatalogue(adapter, upstream.url, 'token', { provider: 'Acme' });
  expect(items).toEqual([
    asOf('22'),
    { kind: 'region', code: 'dc1', name: 'Hall 1' },
    asOf('22', 'dc1'),
    {
      kind: 'rejected',
      key: 'm.small@dc1',
      name: 'm.small',
      regionCode: 'dc1',
      reason: 'requested provider.id 1000 and region.id 1, got 1000 and 2',
    },
  ]);
});

it('abandons an instance if more than a few of its regions cannot be read, without requests for the rest', async () => {
  await using upstream = await fakeUpstream();
  regions(upstream, 1, 2, 3, 4, 5, 6);
  const json = [{ ...machine, provider: acme, region: regionOf(1) }];
  upstream.expect({ path: '/v1/machines', query: query(1) }, { json, headers: AS_OF });
  for (const id of [2, 3, 4, 5]) upstream.expect({ path: '/v1/machines', query: query(id) }, { status: 500 });
  await expect(readCatalogue(adapter, upstream.url, 'token', { provider: 'Acme' })).rejects.toMatchObject({
    kind: 'retry',
  });
});

it('pauses for as long as an instance requires, even for only one region', async () => {
  await using upstream = await fakeUpstream();
  regions(upstream, 1, 2);
  const away = { status: 503, headers: { 'retry-after': '3' } };
  upstream.expect({ path: '/v1/machines', query: query(1) }, away);
  await expect(readCatalogue(adapter, upstream.url, 'token', { provider: 'Acme' })).rejects.toMatchObject({
    kind: 'retry',
    retryAfterMs: 3_000,
  });
});

it('rejects a provider without regions', async () => {
  await using upstream = await fakeUpstream();
  regions(upstream);
  await expect(readCatalogue(adapter, upstream.url, 'token', { provider: 'Acme' })).rejects.toMatchObject({
    kind: 'invalid',
    message: expect.stringContaining('/v1/providers: Acme lists nothing'),
  });
});

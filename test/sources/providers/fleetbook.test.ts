import { expect, it } from 'vitest';
import { openSourceHttp } from '../../../src/sources/http.ts';
import { adapter } from '../../../src/sources/providers/fleetbook.ts';
import { listen, testApi } from '../../api/harness.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { readItems } from './read.ts';

const acme = { id: 1000, name: 'Acme' };
const machine = { id: 1, name: 'm.small', ram: 4, cpu: 2, price: 0.0003, ram_unit: 'Binary' };
const regionOf = (id: number) => ({ id, name: `Hall ${id}`, code: `dc${id}` });

function regions(upstream: FakeUpstream, ...ids: number[]): void {
  upstream.expect({ path: '/v1/providers' }, { json: [{ ...acme, regions: ids.map(regionOf) }] });
}

const query = (id: number) => ({ provider: '1000', region: String(id) });

it('reads what this very service answers', async () => {
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
  expect(items).toHaveLength(2 + offers.length);
});

it('says which providers there are when the one that it is to read is not among them', async () => {
  await using upstream = await fakeUpstream();
  regions(upstream, 1);
  await expect(readItems(adapter, upstream.url, { provider: 'Acne' })).rejects.toMatchObject({
    kind: 'misconfigured',
    message: '/v1/providers lists no provider "Acne"; the option provider must be one of Acme',
  });
});

it('holds every machine of a region that answers for another one', async () => {
  await using upstream = await fakeUpstream();
  regions(upstream, 1);
  const json = [{ ...machine, provider: acme, region: regionOf(2) }];
  upstream.expect({ path: '/v1/machines', query: query(1) }, { json });
  const items = await readItems(adapter, upstream.url, { provider: 'Acme' });
  expect(items).toEqual([
    { kind: 'region', code: 'dc1', name: 'Hall 1' },
    {
      kind: 'rejected',
      key: 'm.small@dc1',
      name: 'm.small',
      regionCode: 'dc1',
      reason: 'asked for provider.id 1000 and region.id 1, got 1000 and 2',
    },
  ]);
});

it('gives an instance up when more than a few of its regions cannot be read, without asking for the rest', async () => {
  await using upstream = await fakeUpstream();
  regions(upstream, 1, 2, 3, 4, 5, 6);
  const json = [{ ...machine, provider: acme, region: regionOf(1) }];
  upstream.expect({ path: '/v1/machines', query: query(1) }, { json });
  for (const id of [2, 3, 4, 5]) upstream.expect({ path: '/v1/machines', query: query(id) }, { status: 500 });
  await expect(readItems(adapter, upstream.url, { provider: 'Acme' })).rejects.toMatchObject({
    kind: 'retry',
  });
});

it('leaves an instance alone for as long as it asks, be it for one region only', async () => {
  await using upstream = await fakeUpstream();
  regions(upstream, 1, 2);
  const away = { status: 503, headers: { 'retry-after': '3' } };
  upstream.expect({ path: '/v1/machines', query: query(1) }, away);
  await expect(readItems(adapter, upstream.url, { provider: 'Acme' })).rejects.toMatchObject({
    kind: 'retry',
    retryAfterMs: 3_000,
  });
});

it('takes a provider without any region for no catalogue', async () => {
  await using upstream = await fakeUpstream();
  regions(upstream);
  await expect(readItems(adapter, upstream.url, { provider: 'Acme' })).rejects.toMatchObject({
    kind: 'invalid',
    message: expect.stringContaining('/v1/providers: Acme lists nothing'),
  });
});

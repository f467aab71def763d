import { expect, it } from 'vitest';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter } from '../../../src/sources/providers/linode.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { linodePrices } from '../../support/provider-answers.ts';

const list = (data: object[]) => ({ json: { data, page: 1, pages: 1, results: data.length } });
const newark = { id: 'us-east', label: 'Newark, NJ', capabilities: ['Linodes', 'GPU Linodes'] };
const nanode = {
  id: 'g6-nanode-1',
  class: 'nanode',
  memory: 1024,
  vcpus: 1,
  gpus: 0,
  successor: null,
  price: { hourly: 0.0075, monthly: 5 },
  region_prices: [],
};
const row = { region: 'us-east', plan: 'g6-nanode-1', available: true };

async function itemsOf({ region = {}, type = {}, availability = {} }): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  const query = { page: '1' };
  upstream.expect({ path: '/v4/regions', query }, list([{ ...newark, ...region }]));
  upstream.expect({ path: '/v4/linode/types', query }, list([{ ...nanode, ...type }]));
  upstream.expect({ path: '/v4beta/regions/availability', query }, list([{ ...row, ...availability }]));
  linodePrices(upstream);
  const http = openSourceHttp({
    baseUrl: upstream.url,
    credentials: 'none',
    deadlineMs: 5_000,
    maxBytes: 100_000,
  });
  const found: CatalogueItem[] = [];
  for await (const item of adapter.catalogue({ http, now: () => new Date('2026-03-01T00:00:00Z') }))
    found.push(item);
  return found.filter((item) => ['offer', 'rejected', 'unread'].includes(item.kind));
}

it.each([
  ['is offered if its region has the capability', {}, undefined],
  ['is sold out by its availability', { availability: { available: false } }, 'sold_out'],
  [
    'is offered while its region is out of order, which is no stock',
    { region: { status: 'outage' } },
    undefined,
  ],
  ['is discontinued once it has a successor', { type: { successor: 'g7-nanode-1' } }, 'discontinued'],
  ['is accelerated by only its class', { type: { class: 'gpu' } }, 'accelerated'],
  ['is accelerated by only a number of GPUs', { type: { gpus: 1 } }, 'accelerated'],
  ['is accelerated by only other devices', { type: { accelerated_devices: 1 } }, 'accelerated'],
  ['is not published at zero', { type: { price: { hourly: 0, monthly: 0 } } }, 'zero_price'],
  [
    'is excluded instead of sold out',
    { type: { gpus: 1, successor: 'x' }, availability: { available: false } },
    'accelerated',
  ],
])('a Linode type %s', async (_, fields, excluded) => {
  const [item, ...more] = await itemsOf(fields);
  expect(more).toEqual([]);
  expect(item).toMatchObject({ kind: 'offer', offer: { regionCode: 'us-east', name: 'g6-nanode-1' } });
  expect(item?.kind === 'offer' ? item.offer.excluded : 'rejected').toBe(excluded);
});

it('a Linode region of an unknown kind is unread, and keeps its machines', async () => {
  expect(await itemsOf({ region: { site_type: 'orbital' } })).toContainEqual({
    kind: 'unread',
    regionCode: 'us-east',
    reason: 'site_type must be core or distributed; it is "orbital"',
  });
});

it('a Linode type that no region can sell is rejected, not missing', async () => {
  for (const region of [{ capabilities: ['Compute'] }, { site_type: 'distributed' }]) {
    expect(await itemsOf({ region })).toEqual([
      {
        kind: 'rejected',
        key: 'g6-nanode-1',
        name: 'g6-nanode-1',
        reason: 'no region has the capability "Linodes" that class nanode needs',
      },
    ]);
  }
});

it('a Linode type with an unreadable availability is rejected there, not offered', async () => {
  expect(await itemsOf({ availability: { available: 'yes' } })).toEqual([
    {
      kind: 'rejected',
      key: 'g6-nanode-1@us-east',
      name: 'g6-nanode-1',
      regionCode: 'us-east',
      reason: 'availability: available expected boolean, received string; it is "yes"',
    },
  ]);
});

it('a Linode availability without its plan is rejected for the whole region', async () => {
  const [unread, offer] = await itemsOf({ availability: { plan: 7 } });
  expect(unread).toMatchObject({ kind: 'rejected', key: 'availability 1', regionCode: 'us-east' });
  expect(offer).toMatchObject({ kind: 'offer' });
});

it('a Linode price that is not published is rejected, and a monthly price replaces a missing hourly one', async () => {
  expect(await itemsOf({ type: { price: { hourly: null, monthly: null } } })).toEqual([
    expect.objectContaining({ reason: 'price.hourly must be a price, unless monthly is one; it is null' }),
  ]);
  const [monthly] = await itemsOf({ type: { price: { monthly: 5 } } });
  expect(monthly).toMatchObject({
    kind: 'offer',
    offer: { price: { amount: '5', per: 'month', currency: 'USD' } },
  });
});

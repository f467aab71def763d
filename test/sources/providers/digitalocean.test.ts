import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/providers/digitalocean.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { fates, readCatalogue } from './read-catalogue.ts';

const at = (path: string, page: number) => ({ path, query: { page: String(page), per_page: '200' } });
const nyc3 = { slug: 'nyc3', name: 'New York 3', available: true };
const basic = {
  slug: 's-1vcpu-1gb',
  memory: 1024,
  vcpus: 1,
  price_monthly: 5,
  price_hourly: 0.00744,
  regions: ['nyc3'],
  available: true,
};

async function itemsOf(size: object | string, region: object = {}): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  const regions = [{ ...nyc3, ...region }];
  upstream.expect(at('/v2/regions', 1), { json: { regions, links: {}, meta: { total: 1 } } });
  const text = typeof size === 'string' ? size : JSON.stringify({ ...basic, ...size });
  upstream.expect(at('/v2/sizes', 1), { raw: `{"sizes":[${text}],"links":{},"meta":{"total":1}}` });
  const items = await readCatalogue(adapter, upstream.url);
  return items.filter((item) => item.kind === 'offer' || item.kind === 'rejected');
}

it.each([
  ['is offered if it is available', {}, {}, 'offered'],
  ['is unavailable if its regions do not name the region', { regions: [] }, {}, 'unavailable'],
  ['is unavailable if it states that', { available: false }, {}, 'unavailable'],
  ['is unavailable in a region without Droplets', {}, { available: false }, 'unavailable'],
  ['is accelerated by its GPU fields', { gpu_info: { count: 1 } }, {}, 'accelerated'],
  ['is accelerated by only its slug', { slug: 'gpu-h100x1-80gb' }, {}, 'accelerated'],
  ['is accelerated, not sold out', { gpu_info: { count: 8 }, regions: [] }, {}, 'accelerated'],
  ['is not published at zero', { price_hourly: 0 }, {}, 'zero_price'],
  ['is rejected without any price', { price_hourly: null, price_monthly: null }, {}, 'rejected'],
])('a size of DigitalOcean %s', async (_, size, region, fate) => {
  expect(fates(await itemsOf(size, region))).toEqual([fate]);
});

// Descriptions of `doctl compute size list` in boxcutter/oci, of August 2025, and of a droplet of October 2026.
it.each([
  ['s-2vcpu-2gb-intel', 'Basic Intel', 'shared'],
  ['c-4-intel', 'Premium Intel', 'dedicated'],
  ['g-2vcpu-8gb-intel', 'General Purpose — Premium Intel', 'dedicated'],
  ['m-2vcpu-16gb-intel', 'Premium Memory-Optimized', 'dedicated'],
  ['so1_5-2vcpu-16gb-intel', 'Premium Storage-Optimized 1.5x SSD', 'dedicated'],
  ['c5-2vcpu-4gb', 'CPU Intensive 5x SSD', 'dedicated'],
  ['s5-1vcpu-1gb-30gb', 'v5 Shared', 'shared'],
  ['g5-2vcpu-4gb-30gb', 'v5 General Purpose', 'dedicated'],
  ['x-2vcpu-4gb', 'Something New', undefined],
])('the size %s of DigitalOcean, "%s", has a %s cpu', async (slug, description, cpuKind) => {
  const [item] = await itemsOf({ slug, description });
  expect(item?.kind === 'offer' && item.offer.facts?.cpuKind).toBe(cpuKind);
});

// Rows of ratecard-cloud/ratecard, data/raw/digitalocean/compute.json of October 2026 (010e78b). A month of v5 has 744 hours.
it.each([
  ['boot', 's5-1vcpu-1gb-30gb', 'v5 Shared', 30, 0.02398, 17.84, [0, undefined]],
  ['local', 's-1vcpu-1gb', 'Basic', 25, 0.00893, 6, [26.844, '6']],
] as const)('a size of DigitalOcean with a %s disk has its local disk and its cap: %s', async (...row) => {
  const [type, slug, description, disk, price_hourly, price_monthly, expected] = row;
  const disk_info = [{ type, size: { amount: disk, unit: 'gib' } }];
  const [item] = await itemsOf({ slug, description, disk, price_hourly, price_monthly, disk_info });
  expect(item?.kind === 'offer' && [item.offer.facts?.localDisk, item.offer.monthlyCap]).toEqual(expected);
});

it.each([
  ['0.00743999984', '0.00743999984'],
  ['0.007439999841153622', '0.007439999841153622'],
  ['7.439999841153622e-03', '0.007439999841153622'],
  ['0.00744', '0.00744'],
])('a price of DigitalOcean is stored unchanged: %s', async (sent, amount) => {
  const [item] = await itemsOf(JSON.stringify({ ...basic, price_hourly: 'sent' }).replace('"sent"', sent));
  expect(item).toMatchObject({ kind: 'offer', offer: { price: { amount, per: 'hour', currency: 'USD' } } });
});

it('a size of DigitalOcean has its monthly price if there is no hourly one', async () => {
  const [item] = await itemsOf({ price_hourly: undefined });
  expect(item).toMatchObject({ kind: 'offer', offer: { price: { amount: '5', per: 'month' } } });
});

it('a size of DigitalOcean has mebibytes although the API names megabytes', async () => {
  const [item] = await itemsOf({ memory: 512 });
  expect(item).toMatchObject({ kind: 'offer', offer: { ram: 0.5, ramUnit: 'Binary' } });
});

describe('the pages of DigitalOcean', () => {
  const page = (numbers: { prev?: number; next?: number }, total = 2) => {
    const url = (number: number) => `https://api.digitalocean.com/v2/regions?page=${number}&per_page=200`;
    const pages = Object.fromEntries(Object.entries(numbers).map(([rel, number]) => [rel, url(number)]));
    return { json: { regions: [nyc3], links: { pages }, meta: { total } } };
  };

  it.each([
    ['the first is another one', [page({ prev: 1 })], 'requested page 1'],
    ['one is left out', [page({ next: 3 })], 'requested page 1'],
    ['the first is repeated', [page({ next: 2 }), page({ next: 2 })], 'requested page 2'],
  ])('are rejected if %s', async (_, answers, message) => {
    await using upstream = await fakeUpstream();
    for (const [index, answer] of answers.entries()) {
      upstream.expect(at('/v2/regions', index + 1), answer);
    }
    await expect(readCatalogue(adapter, upstream.url)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining(message),
    });
  });

  it('are rejected if an address has no number', async () => {
    await using upstream = await fakeUpstream();
    const json = { regions: [nyc3], links: { pages: { next: 'more' } }, meta: { total: 2 } };
    upstream.expect(at('/v2/regions', 1), { json });
    await expect(readCatalogue(adapter, upstream.url)).rejects.toMatchObject({ kind: 'invalid' });
  });

  it('show by their total that the link to the next one was lost', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect(at('/v2/regions', 1), page({}));
    upstream.expect(at('/v2/sizes', 1), { json: { sizes: [basic], meta: { total: 1 } } });
    expect(await readCatalogue(adapter, upstream.url)).toContainEqual({
      kind: 'total',
      of: 'regions',
      advertised: 2,
      fetched: 1,
    });
  });
});

import { describe, expect, it } from 'vitest';
import { limitBroken } from '../../../src/domain/machine.ts';
import { adapter } from '../../../src/sources/providers/vultr.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { needsRecorded, RECORDED, WRITTEN } from '../../support/payloads.ts';
import { answersInMemory } from './answers-in-memory.ts';
import { fates, readCatalogue } from './read-catalogue.ts';

const REGIONS = { path: '/v2/regions', query: { per_page: '500' } };
const PLANS = { path: '/v2/plans', query: { type: 'all', per_page: '500' } };
const meta = (total: number, next = '') => ({ total, links: { next, prev: '' } });
const ewr = { id: 'ewr', city: 'New Jersey' };
const vc2 = {
  id: 'vc2-1c-1gb',
  vcpu_count: 1,
  ram: 1024,
  type: 'vc2',
  locations: ['ewr'],
  hourly_cost: 0.007,
  monthly_cost: 5,
  location_cost: {},
  deploy_ondemand: true,
};

/** Reads one plan with New Jersey as the only region. */
async function itemsOf(fields: object): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  upstream.expect(REGIONS, { json: { regions: [ewr], meta: meta(1) } });
  upstream.expect(PLANS, { json: { plans: [{ ...vc2, ...fields }], meta: meta(1) } });
  const items = await readCatalogue(adapter, upstream.url);
  return items.filter((item) => item.kind === 'offer' || item.kind === 'rejected');
}

describe('a plan of Vultr', () => {
  it.each([
    ['is offered if its locations name the region', {}, 'offered'],
    ['is offered if on demand is not mentioned', { deploy_ondemand: undefined }, 'offered'],
    ['is unavailable if its locations do not name the region', { locations: [] }, 'unavailable'],
    ['is unavailable while only preemptible machines are sold', { deploy_ondemand: false }, 'unavailable'],
    ['is accelerated by its type alone', { type: 'vdm' }, 'accelerated'],
    ['is accelerated by its id alone', { id: 'vcg-a40-24c-120g-48vram' }, 'accelerated'],
    ['is accelerated by a brand alone', { gpu_brand: 'AMD' }, 'accelerated'],
    ['is accelerated by a kind of GPU alone', { gpu_type: 'NVIDIA_A16' }, 'accelerated'],
    ['is accelerated by GPU memory alone', { gpu_vram_gb: 2 }, 'accelerated'],
    ['has no GPU if those fields are empty', { gpu_brand: '', gpu_type: null, gpu_vram_gb: 0 }, 'offered'],
    // Each plan without a GPU: data/raw/vultr/compute.json@010e78b5 of ratecard-cloud/ratecard, recorded in 2026.
    ['has no GPU if the brand is `none`', { gpu_brand: 'none' }, 'offered'],
    ['is accelerated by its type next to that brand', { gpu_brand: 'none', type: 'vcg' }, 'accelerated'],
    ['is not published at zero', { hourly_cost: 0, monthly_cost: 0 }, 'zero_price'],
    ['keeps its reason when it is sold out too', { gpu_brand: 'AMD', locations: [] }, 'accelerated'],
  ])('%s', async (_, fields, fate) => {
    expect(fates(await itemsOf(fields))).toEqual([fate]);
  });

  it.each([
    ['its own price', {}, '0.007', 'hour'],
    ['the price of the region instead', { location_cost: { ewr: { hourly_cost: 0.01 } } }, '0.01', 'hour'],
    ['no price of another region', { location_cost: { sao: { hourly_cost: 0.01 } } }, '0.007', 'hour'],
    [
      'the monthly price of the region, not its hourly price',
      { location_cost: { ewr: { monthly_cost: 7 } } },
      '7',
      'month',
    ],
    ['the monthly price if there is no hourly one', { hourly_cost: undefined }, '5', 'month'],
    ['the monthly price next to a zero for an hour', { hourly_cost: 0 }, '5', 'month'],
    [
      'the monthly price of the region next to its zero for an hour',
      { location_cost: { ewr: { hourly_cost: 0, monthly_cost: 7 } } },
      '7',
      'month',
    ],
    ['the hourly price next to a zero for a month', { monthly_cost: 0 }, '0.007', 'hour'],
    ['its own price next to an empty map of PHP', { location_cost: [] }, '0.007', 'hour'],
    ['its own price if the answer has no overrides', { location_cost: undefined }, '0.007', 'hour'],
  ])('has %s', async (_, fields, amount, per) => {
    expect(await itemsOf(fields)).toEqual([
      expect.objectContaining({
        offer: expect.objectContaining({ price: { amount, per, currency: 'USD' } }),
      }),
    ]);
  });

  // Rows of the same recording: vx1-m-2c-16g and vx1-g-2c-8g-120s.
  it.each([
    ['the size of its disk', { disk: 25, storage_type: 'local_storage' }, 25],
    ['that size if the answer states no kind of storage', { disk: 25 }, 25],
    ['that size if it can have volumes too', { disk: 120, storage_type: 'local_and_block_storage' }, 120],
    ['no disk if it has volumes only', { disk: 1, storage_type: 'block_storage' }, 0],
    ['no known size with two disks', { disk: 25, disk_count: 2, storage_type: 'local_storage' }, undefined],
  ])('has %s', async (_, fields, localDisk) => {
    const [item] = await itemsOf({ disk_count: 1, ...fields });
    expect(item?.kind === 'offer' && item.offer.facts?.localDisk).toBe(localDisk);
  });

  it('has mebibytes although the API names MB', async () => {
    const [item] = await itemsOf({ ram: 512 });
    expect(item).toMatchObject({ kind: 'offer', offer: { ram: 0.5, ramUnit: 'Binary' } });
  });

  it('ignores an empty text among its locations', async () => {
    expect(fates(await itemsOf({ locations: ['', 'ewr'] }))).toEqual(['offered']);
  });

  it('is rejected in only one region if only that price is broken', async () => {
    expect(await itemsOf({ location_cost: { ewr: { hourly_cost: 'much' } } })).toEqual([
      {
        kind: 'rejected',
        key: 'vc2-1c-1gb@ewr',
        name: 'vc2-1c-1gb',
        regionCode: 'ewr',
        reason: 'location_cost.ewr.hourly_cost must be a decimal amount; it is "much"',
      },
    ]);
  });

  it('is rejected for an unlisted region, and offered in the others', async () => {
    const [offer, rejected, ...more] = await itemsOf({ locations: ['ewr', 'mars'] });
    expect(offer).toMatchObject({ kind: 'offer', offer: { regionCode: 'ewr' } });
    expect(rejected).toMatchObject({ kind: 'rejected', key: 'vc2-1c-1gb@mars', regionCode: 'mars' });
    expect(more).toEqual([]);
  });
});

describe('the pages of Vultr', () => {
  async function failureOf(next: (page: number) => string, pages: number): Promise<unknown> {
    await using upstream = await fakeUpstream();
    for (let page = 1; page <= pages; page++) {
      const query = page === 1 ? REGIONS.query : { ...REGIONS.query, cursor: next(page - 1) };
      const json = { regions: [{ id: `r${page}`, city: 'City' }], meta: meta(500, next(page)) };
      upstream.expect({ path: REGIONS.path, query }, { json });
    }
    return await readCatalogue(adapter, upstream.url).catch((error: unknown) => error);
  }

  it('are rejected if they lead in a circle', async () => {
    const error = await failureOf((page) => (page === 3 ? 'c1' : `c${page}`), 3);
    expect(error).toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('/v2/regions repeats a page'),
    });
  });

  it('are rejected if they do not end', async () => {
    let page = 0;
    const http = answersInMemory(() => {
      page += 1;
      return { regions: [{ id: `r${page}`, city: 'City' }], meta: meta(500, `c${page}`) };
    });
    await expect(Array.fromAsync(adapter.catalogue({ http, now: () => new Date() }))).rejects.toMatchObject({
      kind: 'invalid',
      message: '/v2/regions has more than 1000 pages',
    });
  });
});

const catalogues = [
  { kind: 'small', payloads: WRITTEN, plans: 3, regions: 2, soldPairs: 3, options: {} },
  { kind: 'recorded', payloads: RECORDED, plans: 21, regions: 17, soldPairs: 256, options: needsRecorded },
];
for (const { kind, payloads, plans, regions, soldPairs, options } of catalogues)
  it(
    `the ${kind} catalogue of Vultr has ${plans} plans in ${regions} regions, all within the limits, ${soldPairs} pairs for sale, by the month`,
    options,
    async () => {
      await using upstream = await fakeUpstream();
      upstream.expect(REGIONS, payloads.raw('vultr/regions.json'));
      upstream.expect(PLANS, payloads.raw('vultr/plans.json'));
      const items = await readCatalogue(adapter, upstream.url);
      const offers = items.flatMap((item) => (item.kind === 'offer' ? [item.offer] : []));
      const sold = offers.filter((offer) => offer.excluded === undefined);
      expect([new Set(offers.map((offer) => offer.name)).size, offers.length, sold.length]).toEqual([
        plans,
        plans * regions,
        soldPairs,
      ]);
      expect(offers.filter((offer) => limitBroken(offer) !== undefined)).toEqual([]);
      expect(new Set(offers.map((offer) => offer.excluded))).toEqual(new Set([undefined, 'unavailable']));
      expect(sold.filter((offer) => offer.name === 'vdc-8vcpu-32gb')).toEqual([]);
      expect(items.filter((item) => item.kind !== 'offer' && item.kind !== 'region')).toEqual([
        { kind: 'total', of: 'regions', advertised: regions, fetched: regions },
        { kind: 'total', of: 'plans', advertised: plans, fetched: plans },
      ]);
      expect(sold.find((offer) => offer.name === 'vhf-12c-48gb' && offer.regionCode === 'cdg')).toEqual({
        regionCode: 'cdg',
        name: 'vhf-12c-48gb',
        cpu: 12,
        ram: 48,
        ramUnit: 'Binary',
        price: { amount: '256', per: 'month', currency: 'USD' },
        monthlyCap: '256',
        facts: { cpuKind: 'shared', localDisk: 768, includedTraffic: 8192, includedIpv4: 1 },
      });
    },
  );

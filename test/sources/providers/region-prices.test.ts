/** Monthly caps, and prices of regions: what an adapter yields if a payload states them badly. */
import { describe, expect, it } from 'vitest';
import { adapter as hetzner } from '../../../src/sources/providers/hetzner.ts';
import { RegionPrices } from '../../../src/sources/schema/region-prices.ts';
import { type CatalogueItem, SourceError } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { hetznerPricing } from '../../support/provider-answers.ts';
import { readCatalogue } from './read-catalogue.ts';

const price = { item: 'traffic_out', name: 'traffic', unit: 'GB', per: undefined, currency: 'EUR' } as const;
const failing = (error: Error) => () => Promise.reject(error);

function rowsOf(prices: RegionPrices): unknown[] {
  return [...prices.items()].map((item) =>
    item.kind === 'region-price' ? [item.regionCode, item.price.tiers] : item,
  );
}
const leftOut = (kind: string, reason: string) => {
  return { kind: 'rejected', key: kind, name: kind, reason: `one price is left out; the first is ${reason}` };
};

describe('a payload with prices of regions only', () => {
  it('yields one reason if it cannot be read, and the prices of the others', async () => {
    const prices = new RegionPrices();
    await prices.read('ipv4', '/a', failing(new SourceError('gone', '/a answers 404')));
    await prices.read('traffic_out', '/b', async () => prices.add('r', { ...price, amount: '0.01' }));
    expect(rowsOf(prices)).toEqual([
      ['r', [{ from: '0', amount: '0.01' }]],
      { kind: 'unread-prices', items: ['ipv4'] },
      leftOut('address prices', '/a: /a answers 404'),
    ]);
  });

  it('is not requested if the upstream accepts no request for now', async () => {
    const prices = new RegionPrices();
    const limited = new SourceError('retry', '/a answers 429', { limitsAll: true });
    await prices.read('ipv4', '/a', failing(limited));
    await prices.read('traffic_out', '/b', () => expect.unreachable('it was requested'));
    expect(rowsOf(prices)).toEqual([
      { kind: 'unread-prices', items: ['traffic_out', 'ipv4'] },
      leftOut('address prices', '/a: /a answers 429'),
      leftOut('traffic prices', '/b: /a answers 429'),
    ]);
  });

  it('leaves the last prices of an item that it states only badly', () => {
    const prices = new RegionPrices();
    prices.add('r', { ...price, amount: '0.01' });
    prices.leaveOut('ipv4', 'r', 'price must be a decimal amount');
    prices.leaveOut('traffic_out', 's', 'price must be a decimal amount');
    expect(rowsOf(prices)[1]).toEqual({ kind: 'unread-prices', items: ['ipv4'] });
  });

  it('ends the run if the run itself ends', async () => {
    const aborted = new Error('aborted');
    await expect(new RegionPrices().read('ipv4', '/a', failing(aborted))).rejects.toBe(aborted);
  });
});

/** Reads two machine types in one location. */
async function itemsOf(first: object, second: object = first, currency = 'EUR'): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  const meta = { pagination: { page: 1, next_page: null, total_entries: null } };
  const query = { page: '1', per_page: '50' };
  const price = { location: 'fsn1', price_hourly: { net: '0.01' } };
  const server_types = [first, second].map((fields, index) => {
    return { name: `cx${index + 1}`, cores: 2, memory: 4, prices: [{ ...price, ...fields }] };
  });
  const locations = [{ name: 'fsn1', city: 'Falkenstein' }];
  upstream.expect({ path: '/v1/locations', query }, { json: { locations, meta } });
  upstream.expect({ path: '/v1/server_types', query }, { json: { server_types, meta } });
  hetznerPricing(upstream, currency);
  return await readCatalogue(hetzner, upstream.url);
}
const reasons = (items: readonly CatalogueItem[]) =>
  items.flatMap((item) => (item.kind === 'rejected' ? [`${item.key}: ${item.reason}`] : []));
const caps = (items: readonly CatalogueItem[]) =>
  items.flatMap((item) => (item.kind === 'offer' ? [item.offer.monthlyCap] : []));
const trafficIn = (items: readonly CatalogueItem[]) =>
  items.flatMap((item) =>
    item.kind === 'region-price' && item.price.item === 'traffic_out' ? item.price.tiers : [],
  );

describe('a monthly cap', () => {
  it('is absent if the payload states none, or zero', async () => {
    expect(caps(await itemsOf({}, { price_monthly: { net: '0.0000000000' } }))).toEqual([
      undefined,
      undefined,
    ]);
  });

  it('rejects its machine if it is no amount', async () => {
    const items = await itemsOf({ price_monthly: { net: '5' } }, { price_monthly: { net: 'five' } });
    expect(caps(items)).toEqual(['5']);
    expect(reasons(items)).toEqual([
      'cx2@fsn1: prices[0].price_monthly.net must be a decimal amount; it is "five"',
    ]);
  });
});

describe('the price of traffic at Hetzner', () => {
  const perTb = (net: unknown) => ({ price_per_tb_traffic: { net } });

  it('is that of the machines in a location, for a GiB', async () => {
    expect(trafficIn(await itemsOf(perTb('7.4000000000')))).toEqual([{ from: '0', amount: '0.0072265625' }]);
  });

  it('is unknown without one, and if machines differ; an unreadable one is left out', async () => {
    const without = await itemsOf({});
    expect([trafficIn(without), reasons(without)]).toEqual([[], []]);
    const different = await itemsOf(perTb('1'), perTb('2'));
    expect([trafficIn(different), reasons(different)]).toEqual([
      [],
      [
        'traffic prices: one price is left out; the first is fsn1: price_per_tb_traffic differs between machines: 1, 2',
      ],
    ]);
    const unreadable = await itemsOf(perTb('1'), perTb('much'));
    expect([trafficIn(unreadable), reasons(unreadable)]).toEqual([
      [{ from: '0', amount: '0.0009765625' }],
      [
        'traffic prices: one price is left out; the first is cx2@fsn1: prices[0].price_per_tb_traffic.net must be a ' +
          'decimal amount; it is "much"',
      ],
    ]);
    expect(caps(unreadable)).toHaveLength(2);
  });
});

// A project in US dollars: data/raw/hetzner/egress.json@41798e50 of ratecard-cloud/ratecard, recorded in 2026.
describe('the currency of Hetzner', () => {
  it.each(['EUR', 'USD'])(
    'is that of the project’s owner for machines, traffic and volumes: %s',
    async (owned) => {
      const row = { price_monthly: { net: '5.9900000000' }, price_per_tb_traffic: { net: '1.2000000000' } };
      const currencies = (await itemsOf(row, row, owned)).flatMap((item) => {
        if (item.kind === 'offer') return [['machine', item.offer.price.currency]];
        return item.kind === 'region-price' ? [[item.price.item, item.price.currency]] : [];
      });
      expect(currencies).toEqual([
        ['machine', owned],
        ['machine', owned],
        ['traffic_out', owned],
        ['block_storage', owned],
      ]);
    },
  );
});

import { describe, expect, it } from 'vitest';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter } from '../../../src/sources/providers/hetzner.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { hetznerPricing } from '../../support/provider-answers.ts';
import { answersInMemory } from './answers-in-memory.ts';

const meta = { pagination: { page: 1, next_page: null, total_entries: null } };
const price = (location: string) => ({ location, price_hourly: { net: '0.0070000000' } });
const announced = { announced: '2025-10-16T08:00:00+00:00', unavailable_after: '2027-01-01T00:00:00+00:00' };
const cpx11 = {
  name: 'cpx11',
  cores: 2,
  memory: 2.0,
  deprecated: false,
  deprecation: null,
  prices: [price('fsn1')],
};

/** Reads one server type with the locations fsn1 and hel1. */
async function itemsOf(serverType: object): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  const locations = [
    { name: 'fsn1', city: 'Falkenstein' },
    { name: 'hel1', city: 'Helsinki' },
  ];
  upstream.expect(
    { path: '/v1/locations', query: { page: '1', per_page: '50' } },
    { json: { locations, meta } },
  );
  const json = { server_types: [serverType], meta };
  upstream.expect({ path: '/v1/server_types', query: { page: '1', per_page: '50' } }, { json });
  hetznerPricing(upstream);
  const http = openSourceHttp({
    baseUrl: upstream.url,
    credentials: 'none',
    deadlineMs: 5_000,
    maxBytes: 100_000,
  });
  const found: CatalogueItem[] = [];
  for await (const item of adapter.catalogue({ http, now: () => new Date('2026-03-01T00:00:00Z') }))
    found.push(item);
  return found.filter((item) => item.kind !== 'region' && item.kind !== 'region-price');
}

/** The reason of an exclusion, else the announced end of the sale. */
const fateOf = async (serverType: object) =>
  (await itemsOf(serverType)).map((item) =>
    item.kind === 'offer'
      ? (item.offer.excluded ?? item.offer.facts?.orderableUntil ?? 'offered')
      : item.kind,
  );

describe('a server type of Hetzner', () => {
  it.each([
    ['is offered', {}, 'offered'],
    ['is discontinued by the old field, which has no date', { deprecated: true }, 'discontinued'],
    ['is sold until an announced date', { deprecated: true, deprecation: announced }, '2027-01-01T00:00:00Z'],
    [
      'is sold until an announced date next to `deprecated: false`',
      { deprecation: announced },
      '2027-01-01T00:00:00Z',
    ],
    ['is rejected if it is announced without a date', { deprecation: { announced: 'soon' } }, 'rejected'],
    [
      'is sold until the date of its location',
      { locations: [{ name: 'fsn1', deprecation: announced }] },
      '2027-01-01T00:00:00Z',
    ],
    [
      'is offered if its location overrides the type’s deprecation',
      { deprecation: announced, locations: [{ name: 'fsn1', deprecation: null }] },
      'offered',
    ],
    [
      'is sold until the date of the type if its location states nothing',
      { deprecation: announced, locations: [{ name: 'fsn1' }] },
      '2027-01-01T00:00:00Z',
    ],
    [
      'is sold out if it is out of stock',
      { locations: [{ name: 'fsn1', deprecation: null, available: false }] },
      'sold_out',
    ],
    ['is unavailable if none of its locations offers it', { locations: [] }, 'unavailable'],
  ])('%s', async (_, fields, fate) => {
    expect(await fateOf({ ...cpx11, ...fields })).toEqual([fate]);
  });

  it('keeps a fraction of a gigabyte unchanged', async () => {
    const [item] = await itemsOf({ ...cpx11, memory: 0.5 });
    expect(item).toMatchObject({ kind: 'offer', offer: { ram: 0.5, ramUnit: 'Decimal' } });
  });

  it('is rejected in a location that lists it without a price', async () => {
    const locations = ['fsn1', 'hel1'].map((name) => ({ name, deprecation: null, available: true }));
    const [offer, rejected] = await itemsOf({ ...cpx11, locations });
    expect(offer).toMatchObject({ kind: 'offer', offer: { regionCode: 'fsn1' } });
    expect(rejected).toEqual({
      kind: 'rejected',
      key: 'cpx11@hel1',
      name: 'cpx11',
      regionCode: 'hel1',
      reason: 'prices has no entry for a location that locations lists',
    });
  });

  it('is rejected if no location has a price for it', async () => {
    expect(await itemsOf({ ...cpx11, prices: [] })).toEqual([
      expect.objectContaining({
        kind: 'rejected',
        key: 'cpx11',
        name: 'cpx11',
        reason: expect.stringContaining('prices is empty'),
      }),
    ]);
  });

  it('is rejected with the field, the expected and the actual value', async () => {
    expect(await itemsOf({ ...cpx11, cores: 1.5, memory: '2' })).toEqual([
      {
        kind: 'rejected',
        key: 'cpx11',
        name: 'cpx11',
        reason: 'cores must be a whole number above 0; it is 1.5; memory must be a number above 0; it is "2"',
      },
    ]);
    expect(await itemsOf({ ...cpx11, name: 'a\u0000b' })).toEqual([
      expect.objectContaining({
        kind: 'rejected',
        key: 'server type 1',
        reason: expect.stringContaining('control characters'),
      }),
    ]);
  });
});

describe('the pages of Hetzner', () => {
  it('are rejected if they do not end', async () => {
    const http = answersInMemory((path, { page }) => {
      expect(path).toBe('/v1/locations');
      const pagination = { page, next_page: Number(page) + 1, total_entries: null };
      return { locations: [{ name: `l${page}`, city: 'City' }], meta: { pagination } };
    });
    const reading = Array.fromAsync(adapter.catalogue({ http, now: () => new Date() }));
    await expect(reading).rejects.toMatchObject({
      kind: 'invalid',
      message: '/v1/locations has more than 1000 pages',
    });
  });
});

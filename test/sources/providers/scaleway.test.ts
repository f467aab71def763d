import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/providers/scaleway.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { type FakeAnswer, fakeUpstream } from '../../support/fake-upstream.ts';
import { scalewayVolumes } from '../../support/provider-answers.ts';
import { fates, readCatalogue } from './read-catalogue.ts';

const ZONES = ['fr-par-1', 'fr-par-2', 'fr-par-3', 'nl-ams-1', 'nl-ams-2', 'nl-ams-3'].concat([
  'pl-waw-1',
  'pl-waw-2',
  'pl-waw-3',
]);
const CATALOGUE = '/product-catalog/v2alpha1/public-catalog/products';
const productsOf = (page: number) => ({ product_types: 'instance', page: String(page), page_size: '100' });
const pathOf = (zone: string) => `/instance/v1/zones/${zone}/products/servers`;
const query = (page: number) => ({ page: String(page), per_page: '100' });

const dev1 = {
  ncpus: 2,
  ram: 2_147_483_648,
  gpu: 0,
  gpu_info: null,
  end_of_service: false,
  hourly_price: 0.01368,
  monthly_price: 9.9864,
};

function page(servers: object, headers: Record<string, string> = {}): FakeAnswer {
  return { json: { servers }, headers: { 'x-total-count': String(Object.keys(servers).length), ...headers } };
}

const some = page({ 'PLAY2-NANO': { ...dev1, ncpus: 1 } });
const stocked = page({ 'PLAY2-NANO': { availability: 'available' } });

function product(zone: string, fields: object = {}): object {
  return { sku: `/compute/play2_nano/run_${zone}`, locality: { zone }, ...fields };
}

function catalogue(products: readonly object[], total = products.length): FakeAnswer {
  return { json: { products, total_count: total } };
}

/** All items if each zone but the first has one type. */
async function read(servers: FakeAnswer[], availability: FakeAnswer = stocked): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  const zones = ZONES.map((zone) => product(zone));
  upstream.expect({ path: CATALOGUE, query: productsOf(1) }, catalogue(zones));
  scalewayVolumes(upstream);
  const first = pathOf('fr-par-1');
  for (const [index, answer] of servers.entries()) {
    upstream.expect({ path: first, query: query(index + 1), times: 'any' }, answer);
  }
  upstream.expect({ path: `${first}/availability`, query: query(1), times: 'any' }, availability);
  for (const zone of ZONES.slice(1)) {
    upstream.expect({ path: pathOf(zone), query: query(1), times: 'any' }, some);
    upstream.expect({ path: `${pathOf(zone)}/availability`, query: query(1), times: 'any' }, stocked);
  }
  return await readCatalogue(adapter, upstream.url);
}

/** The same, only of the first zone. */
function inParis(items: readonly CatalogueItem[]): CatalogueItem[] {
  return items.filter(
    (item) =>
      (item.kind === 'offer' && item.offer.regionCode === 'fr-par-1') ||
      ((item.kind === 'rejected' || item.kind === 'unread') && item.regionCode === 'fr-par-1'),
  );
}

async function itemsOf(name: string, fields: object = {}, stock: string | null = 'available') {
  const availability = page({ [name]: stock === null ? {} : { availability: stock } });
  return inParis(await read([page({ [name]: { ...dev1, ...fields } })], availability));
}

describe('a server type of Scaleway', () => {
  it.each<[string, string, object, string | null, string]>([
    ['is offered while it is in stock', 'DEV1-S', {}, 'available', 'offered'],
    ['is offered while it is scarce', 'DEV1-S', {}, 'scarce', 'offered'],
    ['is sold out in a shortage', 'DEV1-S', {}, 'shortage', 'sold_out'],
    ['is rejected if its stock is missing', 'DEV1-S', {}, null, 'rejected'],
    ['is rejected if its stock is an unknown word', 'DEV1-S', {}, 'plenty', 'rejected'],
    [
      'is discontinued at an end of its service without a date',
      'START1-S',
      { end_of_service: true },
      'available',
      'discontinued',
    ],
    ['is discontinued with any stock', 'START1-S', { end_of_service: true }, null, 'discontinued'],
    ['is accelerated by its number of GPUs', 'L4-1-24G', { gpu: 1 }, 'available', 'accelerated'],
    ['is accelerated by its GPU description', 'L4-1-24G', { gpu_info: {} }, 'shortage', 'accelerated'],
    ['is licensed with Windows', 'POP2-2C-8G-WIN', {}, 'available', 'licensed'],
    ['is not licensed by a name that only starts with the same letters', 'WIN-1', {}, 'available', 'offered'],
    ['is not published at zero', 'STARDUST1-S', { hourly_price: 0 }, 'available', 'zero_price'],
    [
      'is rejected without any price',
      'DEV1-S',
      { hourly_price: null, monthly_price: null },
      'available',
      'rejected',
    ],
    ['is rejected under a name that cannot be stored', 'DEV1\u0000', {}, 'available', 'rejected'],
  ])('%s', async (_, name, fields, stock, fate) => {
    expect(fates(await itemsOf(name, fields, stock))).toEqual([fate]);
  });

  it('has bytes, which are whole gibibytes', async () => {
    expect(await itemsOf('DEV1-S')).toEqual([
      {
        kind: 'offer',
        offer: {
          regionCode: 'fr-par-1',
          name: 'DEV1-S',
          cpu: 2,
          ram: 2,
          ramUnit: 'Binary',
          price: { amount: '0.01368', per: 'hour', currency: 'EUR' },
        },
      },
    ]);
  });
});

describe('a zone of Scaleway', () => {
  it.each<[string, FakeAnswer]>([
    ['answers an error', { status: 503 }],
    ['does not exist', { status: 404 }],
    ['does not state its number of types', { ...some, headers: {} }],
    ['states it as text', page({ 'DEV1-S': dev1 }, { 'x-total-count': 'many' })],
    ['has no map of types', { json: { pictures: {} }, headers: { 'x-total-count': '1' } }],
    ['is empty', page({})],
  ])('is unread alone, and keeps all its machines, if it %s', async (_, answer) => {
    const items = await read([answer]);
    expect(inParis(items)).toEqual([
      {
        kind: 'unread',
        regionCode: 'fr-par-1',
        reason: expect.stringContaining(pathOf('fr-par-1')),
      },
    ]);
    expect(fates(items)).toEqual(['unread', ...Array(8).fill('offered')]);
    expect(items.filter((item) => item.kind === 'region').map((item) => item.code)).toEqual(ZONES);
  });

  it('ends the run if it requires a pause', async () => {
    const limited: FakeAnswer = { status: 429, headers: { 'retry-after': '30' } };
    await expect(read([limited])).rejects.toMatchObject({ kind: 'retry', retryAfterMs: 30_000 });
  });

  it('ends the run if no other zone can be read either', async () => {
    await using upstream = await fakeUpstream();
    const zones = ZONES.map((zone) => product(zone));
    upstream.expect({ path: CATALOGUE, query: productsOf(1) }, catalogue(zones));
    for (const zone of ZONES) upstream.expect({ path: pathOf(zone), query: query(1) }, { status: 502 });
    await expect(readCatalogue(adapter, upstream.url)).rejects.toMatchObject({ kind: 'retry' });
  });
});

describe('the zones of Scaleway', () => {
  /** Reads these pages of the product catalogue; each requested zone has one type. */
  async function zonesOf(pages: readonly FakeAnswer[], expectedZones: readonly string[]) {
    await using upstream = await fakeUpstream();
    for (const [index, answer] of pages.entries())
      upstream.expect({ path: CATALOGUE, query: productsOf(index + 1) }, answer);
    scalewayVolumes(upstream);
    for (const zone of expectedZones) {
      upstream.expect({ path: pathOf(zone), query: query(1) }, some);
      upstream.expect({ path: `${pathOf(zone)}/availability`, query: query(1) }, stocked);
    }
    const items = await readCatalogue(adapter, upstream.url);
    const names = items.flatMap((item) => (item.kind === 'region' ? [[item.code, item.name]] : []));
    return { items, names: Object.fromEntries(names) };
  }

  it('are those of the product catalogue, and no other is requested', async () => {
    const products = ['nl-ams-1', 'it-mil-1', 'xx-abc-2'].map((zone) => product(zone));
    const { names, items } = await zonesOf([catalogue(products)], ['nl-ams-1', 'it-mil-1', 'xx-abc-2']);
    // The catalogue has no names: an unknown place gets its code as name.
    expect(names).toEqual({ 'nl-ams-1': 'Amsterdam 1', 'it-mil-1': 'Milan 1', 'xx-abc-2': 'xx-abc-2' });
    expect(fates(items)).toEqual(['offered', 'offered', 'offered']);
    expect(items).toContainEqual({ kind: 'total', of: 'products', advertised: 3, fetched: 3 });
  });

  it('are read to the last page', async () => {
    const first = Array.from({ length: 100 }, (_, index) => product('fr-par-1', { sku: `/${index}` }));
    const { names } = await zonesOf(
      [catalogue(first, 101), catalogue([product('fr-par-2')], 101)],
      ['fr-par-1', 'fr-par-2'],
    );
    expect(Object.keys(names)).toEqual(['fr-par-1', 'fr-par-2']);
  });

  it('do not include regions, other places and ended products', async () => {
    const products = [
      product('fr-par-1'),
      product('nl-ams-9', { status: 'retired' }),
      ...[{ global: true }, { region: 'pl-waw' }, { datacenter: 'DC2', zone: null }].map((locality, index) =>
        product('', { sku: `/elsewhere/${index}`, locality }),
      ),
    ];
    const { names, items } = await zonesOf([catalogue(products)], ['fr-par-1']);
    expect(Object.keys(names)).toEqual(['fr-par-1']);
    expect(fates(items)).toEqual(['offered']);
  });

  it.each([
    ['states no place', { locality: {} }, 'locality must have one of zone, region'],
    ['has an invalid zone', { locality: { zone: '../../admin' } }, 'locality.zone must be a zone'],
    ['has no locality', { locality: undefined }, 'locality'],
  ])('are read past a product that %s, which is reported', async (_, fields, reason) => {
    const { items } = await zonesOf([catalogue([product('odd', fields), product('fr-par-1')])], ['fr-par-1']);
    expect(items.filter((item) => item.kind === 'rejected')).toEqual([
      {
        kind: 'rejected',
        key: '/compute/play2_nano/run_odd',
        reason: expect.stringContaining(reason),
      },
    ]);
    expect(fates(items).toSorted()).toEqual(['offered', 'rejected']);
  });

  it.each<[string, FakeAnswer[], string, string]>([
    ['cannot be read', [{ status: 503 }], 'retry', CATALOGUE],
    ['is empty', [catalogue([])], 'invalid', 'lists nothing'],
    ['has no zone', [catalogue([product('', { locality: { global: true } })])], 'invalid', 'lists nothing'],
    [
      'repeats a page',
      [1, 2].map(() =>
        catalogue(
          Array.from({ length: 100 }, (_, index) => product('fr-par-1', { sku: `/${index}` })),
          200,
        ),
      ),
      'invalid',
      'requested page 2, got /0, which page 1 had',
    ],
  ])('are unknown if the catalogue %s, and nothing is read', async (_, pages, kind, message) => {
    await expect(zonesOf(pages, [])).rejects.toMatchObject({
      kind,
      message: expect.stringContaining(message),
    });
  });
});

describe('the pages of Scaleway', () => {
  const link = (target: string, rel: string) => ({ link: `<${target}>; rel="${rel}"` });
  const next = (number: number) => link(`/products/servers?page=${number}&per_page=100&`, 'next');
  const types = (...names: string[]) => Object.fromEntries(names.map((name) => [name, dev1]));

  it('are read to the end, and their rows are counted against the announced number', async () => {
    const items = await read(
      [
        page(types('A', 'B'), { 'x-total-count': '4', ...next(2) }),
        page(types('C'), { 'x-total-count': '4', ...link('/products/servers?page=2', 'last') }),
      ],
      page(Object.fromEntries(['A', 'B', 'C'].map((name) => [name, { availability: 'available' }]))),
    );
    expect(fates(inParis(items))).toEqual(['offered', 'offered', 'offered']);
    expect(items).toContainEqual({
      kind: 'total',
      of: 'server types of fr-par-1',
      advertised: 4,
      fetched: 3,
    });
  });

  it.each([
    ['the next after the first is not the second', [page(types('A'), next(3))], 'requested page 1'],
    ['the first is repeated', [page(types('A'), next(2)), page(types('A'))], 'got A, which page 1 had'],
  ])('are rejected if %s', async (_, servers, reason) => {
    expect(inParis(await read(servers))).toMatchObject([
      { kind: 'unread', regionCode: 'fr-par-1', reason: expect.stringContaining(reason) },
    ]);
  });
});

import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/providers/scaleway.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { type FakeAnswer, fakeUpstream } from '../../support/fake-upstream.ts';
import { fates, readCatalogue } from '../../support/read-catalogue.ts';

const ZONES = ['fr-par-1', 'fr-par-2', 'fr-par-3', 'nl-ams-1', 'nl-ams-2', 'nl-ams-3'].concat([
  'pl-waw-1',
  'pl-waw-2',
  'pl-waw-3',
]);
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

/** Everything that comes when all zones but the first have one type each. */
async function read(servers: FakeAnswer[], availability: FakeAnswer = stocked): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
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

/** The same, of the first zone alone. */
function inParis(items: readonly CatalogueItem[]): CatalogueItem[] {
  return items.filter(
    (item) =>
      (item.kind === 'offer' && item.offer.regionCode === 'fr-par-1') ||
      (item.kind === 'rejected' && item.regionCode === 'fr-par-1'),
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
    ['is unavailable in a shortage', 'DEV1-S', {}, 'shortage', 'unavailable'],
    ['is rejected when nothing is said of its stock', 'DEV1-S', {}, null, 'rejected'],
    ['is rejected when what is said means nothing', 'DEV1-S', {}, 'plenty', 'rejected'],
    [
      'is deprecated at the end of its service',
      'START1-S',
      { end_of_service: true },
      'available',
      'deprecated',
    ],
    ['is deprecated whatever its stock', 'START1-S', { end_of_service: true }, null, 'deprecated'],
    ['is accelerated by its number of GPUs', 'L4-1-24G', { gpu: 1 }, 'available', 'accelerated'],
    ['is accelerated by what is said of them', 'L4-1-24G', { gpu_info: {} }, 'shortage', 'accelerated'],
    ['is licensed with Windows', 'POP2-2C-8G-WIN', {}, 'available', 'licensed'],
    ['is not licensed by a name that only begins so', 'WIN-1', {}, 'available', 'offered'],
    ['is not published for nothing', 'STARDUST1-S', { hourly_price: 0 }, 'available', 'zero_price'],
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

  it('has bytes, which make whole gibibytes', async () => {
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
  const held = (items: readonly CatalogueItem[]) => inParis(items).map((item) => ({ ...item }));

  it.each<[string, FakeAnswer]>([
    ['is out of order', { status: 503 }],
    ['is gone', { status: 404 }],
    ['does not say how many types there are', { ...some, headers: {} }],
    ['says it in no number', page({ 'DEV1-S': dev1 }, { 'x-total-count': 'many' })],
    ['has no map of types', { json: { pictures: {} }, headers: { 'x-total-count': '1' } }],
    ['lists nothing', page({})],
  ])('is held alone, with all its machines, when it %s', async (_, answer) => {
    const items = await read([answer]);
    expect(held(items)).toEqual([
      {
        kind: 'rejected',
        key: 'fr-par-1',
        regionCode: 'fr-par-1',
        reason: expect.stringContaining(pathOf('fr-par-1')),
      },
    ]);
    expect(fates(items)).toEqual(['rejected', ...Array(8).fill('offered')]);
    expect(items.filter((item) => item.kind === 'region').map((item) => item.code)).toEqual(ZONES);
  });

  it('ends the run when it asks to be left alone', async () => {
    const limited: FakeAnswer = { status: 429, headers: { 'retry-after': '30' } };
    await expect(read([limited])).rejects.toMatchObject({ kind: 'retry', retryAfterMs: 30_000 });
  });

  it('ends the run when no other can be read either', async () => {
    await using upstream = await fakeUpstream();
    for (const zone of ZONES) upstream.expect({ path: pathOf(zone), query: query(1) }, { status: 502 });
    await expect(readCatalogue(adapter, upstream.url)).rejects.toMatchObject({ kind: 'retry' });
  });
});

describe('the pages of Scaleway', () => {
  const link = (target: string, rel: string) => ({ link: `<${target}>; rel="${rel}"` });
  const next = (number: number) => link(`/products/servers?page=${number}&per_page=100&`, 'next');
  const types = (...names: string[]) => Object.fromEntries(names.map((name) => [name, dev1]));

  it('are followed to the end, and their rows are counted against what was announced', async () => {
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
    ['the next of the first is not the second', [page(types('A'), next(3))], 'asked for page 1'],
    ['the first comes twice', [page(types('A'), next(2)), page(types('A'))], 'got A, which page 1 had'],
  ])('are not taken when %s', async (_, servers, reason) => {
    expect(inParis(await read(servers))).toMatchObject([
      { kind: 'rejected', regionCode: 'fr-par-1', reason: expect.stringContaining(reason) },
    ]);
  });
});

/** Terms of machines and prices of regions: from a sync to answers of the API. */
import Big from 'big.js';
import { expect, it } from 'vitest';
import type { RegionPricesDocument, TermsDocument } from '../../../src/features/costs/schemas.ts';
import type { RecommendDocument, SearchDocument } from '../../../src/features/search/schema.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { until } from '../../support/until.ts';
import { openCosts } from './scene.ts';

const scene = sceneForEachTest();

const price = (amount: string) => ({ price: { amount, per: 'hour', currency: 'EUR' } });
const source = price('1');
const SPOT = { terms: { spot: { price: '0.00004', upfront: null, source } } };
const RESERVED = { price: '0.0005', upfront: '87.6', source: { ...price('0.02'), upfront: '87.6' } };

const DISK = {
  item: 'block_storage',
  name: 'volume',
  isDefault: true,
  unit: 'GB',
  tiers: [{ from: '0', price: '0.000001' }],
  source: { tiers: [], currency: 'EUR', per: 'month' },
};
const TRAFFIC = {
  item: 'traffic_out',
  name: 'internet',
  isDefault: true,
  unit: 'GB',
  tiers: [
    { from: '0', price: '0' },
    { from: '100', price: '0.01' },
  ],
  source: { tiers: [], currency: 'EUR' },
};

/** Writes terms as a sync would leave them. */
async function setTerms(machineId: number, terms: unknown, from: string, to: string | null = null) {
  const { sql } = scene;
  await sql`insert into machine_terms (machine_id, valid_from, valid_to, terms)
    values (${machineId}, ${from}::timestamptz, ${to}::timestamptz, ${JSON.stringify(terms)}::text::jsonb)`;
  if (to !== null) return;
  await sql`update machines set terms = ${JSON.stringify(terms)}::text::jsonb where id = ${machineId}`;
  await sql`update regions set version = version + 1 where id = ${scene.sample.region}`;
}

async function setPrices(prices: readonly unknown[]) {
  await scene.sql`update regions set version = version + 1, prices = ${JSON.stringify(prices)}::text::jsonb
    where id = ${scene.sample.region}`;
}

it('answers the terms of a machine, and the periods of each term', async () => {
  const { small } = scene.sample;
  const both = { terms: { ...SPOT.terms, reserved_1y: RESERVED } };
  await setTerms(small, SPOT, '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z');
  await setTerms(small, both, '2026-01-03T00:00:00Z', '2026-01-04T00:00:00Z');
  const cap = { price: '4.15', source: { amount: '4.15', currency: 'EUR' } };
  await setTerms(small, { ...both, monthly_cap: cap }, '2026-01-04T00:00:00Z');
  await using api = await openCosts(scene);
  const found = await api.json<TermsDocument>(`/v1/machines/${small}/terms`);
  const since = '2026-01-04T00:00:00.000Z';
  const onDemand = { term: 'on_demand', price: 0.0001, upfront: null, recurring_price: 0.0001 };
  const spot = { term: 'spot', price: 0.00004, upfront: null, recurring_price: 0.00004, monthly_cap: null };
  expect(found).toMatchObject({ id: small, region: { code: 'zrh' } });
  expect(found.terms).toEqual([
    { ...onDemand, monthly_cap: 4.15, since: null },
    { ...spot, since },
    {
      term: 'reserved_1y',
      price: 0.0005,
      recurring_price: 0.000333333333333,
      upfront: 87.6,
      monthly_cap: null,
      since,
    },
  ]);
  const { terms } = await api.json<TermsDocument>(`/v1/machines/${small}/terms?history=true`);
  expect(terms.map(({ term, since: from, history }) => [term, from, history?.length])).toEqual([
    ['on_demand', terms[0]?.history?.[0]?.from ?? null, terms[0]?.history?.length],
    ['spot', '2026-01-02T00:00:00.000000Z', 1],
    ['reserved_1y', '2026-01-03T00:00:00.000000Z', 1],
  ]);
  expect(terms[1]?.history).toEqual([
    { list_price: 0.00004, upfront: null, from: '2026-01-02T00:00:00.000000Z', to: null },
  ]);
});

it('answers own prices of terms to their organization alone, and list prices on request', async () => {
  const { small, a } = scene.sample;
  const cap = { price: '4', source: { amount: '4', currency: 'EUR' } };
  await setTerms(
    small,
    { terms: { ...SPOT.terms, reserved_1y: RESERVED }, monthly_cap: cap },
    '2026-01-04T00:00:00Z',
  );
  await using api = await openCosts(scene);
  const terms = async (query = '', of: 'a' | 'b' = 'a') =>
    (await api.json<TermsDocument>(`/v1/machines/${small}/terms${query}`, of)).terms;
  const list = await terms();
  expect(JSON.stringify(list)).not.toContain('price_source');
  await scene.sql`
    insert into price_book_entries (organization_id, term, machine_id, discount, price, valid_from)
    values (${a}, null, null, 25, null, '2026-01-01Z'), (${a}, 'spot', ${small}, null, 0.00001, '2026-01-01Z'),
      (${a}, 'on_demand', null, 50, null, '2999-01-01Z')`;
  await scene.sql`update organizations set clusters_version = clusters_version + 1 where id = ${a}`;
  await scene.publisher.publishDirty();
  await until(async () => (await terms())[0]?.price_source === 'book');
  expect(await terms()).toMatchObject([
    { term: 'on_demand', price: 0.000075, monthly_cap: 3, price_source: 'book', list_price: 0.0001 },
    { term: 'spot', price: 0.00001, recurring_price: 0.00001, price_source: 'book', list_price: 0.00004 },
    {
      term: 'reserved_1y',
      price: 0.000375,
      recurring_price: 0.00025,
      upfront: 65.7,
      price_source: 'book',
      list_price: 0.0005,
    },
  ]);
  expect(await terms('?prices=list')).toEqual(list);
  expect(await terms('', 'b')).toEqual(list);
});

it('answers the prices of a region, and null for an item without a price', async () => {
  await setPrices([DISK, TRAFFIC]);
  await using api = await openCosts(scene);
  expect(await api.json<RegionPricesDocument>(`/v1/regions/${scene.sample.region}/prices`)).toEqual({
    region: { id: scene.sample.region, name: 'Zürich', code: 'zrh' },
    provider: { id: 1, name: 'Wölkchen 🚀' },
    block_storage: [
      {
        name: 'volume',
        default: true,
        unit: 'GB',
        per: 'minute',
        included: 0,
        tiers: [{ from: 0, price: 0.000001 }],
      },
    ],
    traffic_out: [
      {
        name: 'internet',
        default: true,
        unit: 'GB',
        per: 'unit',
        included: 100,
        tiers: [
          { from: 0, price: 0 },
          { from: 100, price: 0.01 },
        ],
      },
    ],
    ipv4: null,
  });
});

it.each([
  ['/v1/machines/999999/terms', 404],
  ['/v1/machines/0/terms', 400],
  ['/v1/machines/1/terms?history=yes', 400],
  ['/v1/machines/1/terms?at=now', 400],
  ['/v1/regions/999999/prices', 404],
  ['/v1/regions/x/prices', 400],
])('answers %s with %i', async (url, status) => {
  await using api = await openCosts(scene);
  expect((await api.get(url)).statusCode).toBe(status);
});

it('searches and recommends by the price of a term, and leaves out machines without it', async () => {
  await setTerms(scene.sample.small, SPOT, '2026-01-02T00:00:00Z');
  await using api = await openCosts(scene);
  const found = await api.json<SearchDocument>('/v1/machines/search?term=spot&fields=id,price');
  const machine = { id: scene.sample.small, price: 0.00004, term: 'spot' };
  expect(found.machines).toEqual([machine]);
  expect(
    (await api.json<SearchDocument>('/v1/machines/search?term=spot&max_price=0.00003')).machines,
  ).toEqual([]);
  expect((await api.json<SearchDocument>('/v1/machines/search?term=reserved_3y')).machines).toEqual([]);
  const { recommendations } = await api.json<RecommendDocument>(
    '/v1/machines/recommend?cpu=1&ram=1&term=spot',
  );
  expect(recommendations).toMatchObject([{ machine, total: 1.752, complete: true }]);
  const refused = await api.get('/v1/machines/search?term=monthly');
  expect([refused.statusCode, refused.json().parameter, refused.json().detail]).toEqual([
    400,
    'term',
    expect.stringContaining(
      'one of on_demand, spot, savings_plan_1y, savings_plan_3y, reserved_1y, reserved_3y',
    ),
  ]);
});

it('recommends with a breakdown that adds up, and says when a price is unknown', async () => {
  const cap = { price: '3', source: { amount: '3', currency: 'EUR' } };
  await setTerms(scene.sample.small, { terms: {}, monthly_cap: cap }, '2026-01-02T00:00:00Z');
  await setPrices([DISK, TRAFFIC]);
  await scene.sql`update machines set included_traffic = 50 where id = ${scene.sample.small}`;
  await using api = await openCosts(scene);
  const recommend = async (query: string) => {
    const { recommendations } = await api.json<RecommendDocument>(
      `/v1/machines/recommend?cpu=2&ram=8&${query}`,
    );
    return recommendations[0] ?? expect.fail('nothing is recommended');
  };
  const whole = await recommend('storage=100&traffic=250');
  expect(whole).toMatchObject({
    total: 8.38,
    complete: true,
    breakdown: { machine: 3, storage: 4.38, traffic: 1, ipv4: 0 },
    computed:
      '0.0001 a minute × 60 × 730 hours, at most 3 a month + 100 GB of storage + 250 GB of traffic a month',
  });
  const sum = Object.values(whole.breakdown).reduce<Big>((all, part) => all.plus(part ?? 0), new Big(0));
  expect(sum.toNumber()).toBe(whole.total);
  const partly = await recommend('ipv4=1&hours=365');
  expect(partly).toMatchObject({
    total: null,
    known_total: 2.19,
    complete: false,
    breakdown: { machine: 2.19, ipv4: null },
  });
});

it('takes the addresses in the price of a machine off, also where no price of an address is known', async () => {
  await scene.sql`update machines set included_ipv4 = 1 where id = ${scene.sample.small}`;
  await scene.sql`update regions set version = version + 1`;
  await using api = await openCosts(scene);
  const ipv4 = async (count: number) => {
    const url = `/v1/machines/recommend?cpu=2&ram=8&ipv4=${count}`;
    return (await api.json<RecommendDocument>(url)).recommendations[0];
  };
  expect(await ipv4(1)).toMatchObject({
    machine: { included_ipv4: 1 },
    complete: true,
    breakdown: { ipv4: 0 },
  });
  expect(await ipv4(2)).toMatchObject({ complete: false, breakdown: { ipv4: null } });
});

/** Own prices and alternatives: what an organization pays, and which machines would cost it less. */
import { describe, expect, it } from 'vitest';
import type {
  AlternativesDocument,
  CostDocument,
  CostHistoryDocument,
  CostsDocument,
} from '../../../src/features/costs/schemas.ts';
import { addMachine, addProvider, addRegion } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { until } from '../../support/until.ts';
import { openCosts } from './scene.ts';

const scene = sceneForEachTest();

interface Entry {
  readonly organization?: number;
  readonly provider?: number;
  readonly machine?: number;
  readonly term?: string;
  readonly discount?: string;
  readonly price?: string;
  readonly from?: string;
  readonly to?: string;
}

async function addEntry(given: Entry): Promise<number> {
  const { organization = scene.sample.a, provider = null, machine = null, term = null } = given;
  const { discount = null, price = null, from = '2026-01-01T00:00:00Z', to = null } = given;
  const [row] = await scene.sql<{ id: number }[]>`
    insert into price_book_entries (organization_id, provider_id, machine_id, term, discount, price, valid_from, valid_to)
    values (${organization}, ${provider}, ${machine}, ${term}, ${discount}, ${price}, ${from}, ${to}) returning id`;
  await scene.sql`update organizations set clusters_version = clusters_version + 1 where id = ${organization}`;
  return row?.id ?? 0;
}

const costOf = (api: Awaited<ReturnType<typeof openCosts>>, query = '', of: 'a' | 'b' = 'a') =>
  api.json<CostDocument>(`/v1/clusters/cluster-test/cost${query}`, of);

describe('own prices', () => {
  it('replace list prices, name their entry, and are those of one organization', async () => {
    const { provider, small, big, a } = scene.sample;
    const discount = await addEntry({ provider, discount: '20' });
    await using api = await openCosts(scene);
    expect(await costOf(api)).toMatchObject({
      prices: 'own',
      machine: {
        price: 0.00008,
        list_price: 0.0001,
        price_source: 'book',
        entry: discount,
        per_month: 10.512,
      },
    });
    expect(await costOf(api, '?prices=list')).toMatchObject({
      prices: 'list',
      machine: { id: small, price: 0.0001, price_source: 'current', entry: null },
    });
    expect((await costOf(api, '', 'b')).machine).toMatchObject({
      id: big,
      price: 0.01,
      price_source: 'current',
      entry: null,
    });
    const own = await api.json<CostsDocument>('/v1/costs');
    const list = await api.json<CostsDocument>('/v1/costs?prices=list');
    expect([own.total.per_month, list.total.per_month]).toEqual([10.52979812, 13.15779812]);
    expect(a).toBe(scene.sample.a);
  });

  it('lower the monthly cap by a discount, and have no cap if they are fixed', async () => {
    const { small, region } = scene.sample;
    const source = { amount: '4', currency: 'USD' };
    const terms = { terms: {}, monthly_cap: { price: '4', source } };
    await scene.sql`update machines set terms = ${scene.sql.json(terms)} where id = ${small}`;
    await scene.sql`update regions set version = version + 1 where id = ${region}`;
    await using list = await openCosts(scene);
    expect((await costOf(list)).machine).toMatchObject({ monthly_cap: 4, per_month: 12 });
    await addEntry({ discount: '50' });
    await using discounted = await openCosts(scene);
    expect((await costOf(discounted)).machine).toMatchObject({
      price: 0.00005,
      monthly_cap: 2,
      per_month: 6,
    });
    await addEntry({ machine: small, price: '0.0002' });
    await using fixed = await openCosts(scene);
    expect((await costOf(fixed)).machine).toMatchObject({
      price: 0.0002,
      monthly_cap: null,
      per_month: 26.28,
    });
  });

  it('give a price to a machine that no catalogue lists', async () => {
    const { small } = scene.sample;
    await scene.sql`update machines set excluded_reason = 'unlisted', price = null where id = ${small}`;
    const entry = await addEntry({ machine: small, price: '0.0005' });
    await using api = await openCosts(scene);
    expect(await costOf(api)).toMatchObject({
      machine: { price: 0.0005, list_price: null, price_source: 'book', entry, in_catalogue: false },
      complete: true,
    });
  });

  it('add no term that the provider does not sell, also if they are fixed', async () => {
    const { small } = scene.sample;
    await addEntry({ machine: small, price: '0.00001' });
    await addEntry({ machine: small, price: '0.00002', term: 'reserved_1y' });
    await using api = await openCosts(scene);
    for (const term of ['spot', 'reserved_1y'])
      expect(await costOf(api, `?term=${term}`)).toMatchObject({
        machine: { price: null, price_source: null, entry: null, reason: 'term_not_sold' },
        complete: false,
      });
    const path = '/v1/clusters/cluster-test/cost/history?term=spot';
    const { steps } = await api.json<CostHistoryDocument>(path);
    expect(steps.filter(({ price }) => price !== null)).toEqual([]);
  });

  it('apply from their begin to their end, also in the past', async () => {
    const { small } = scene.sample;
    await scene.sql`
      insert into machine_prices (machine_id, valid_from, price, source_amount, source_per, source_currency)
      values (${small}, '2026-01-01T00:00:00Z', '0.0001', 1, 'hour', 'USD')`;
    const entry = await addEntry({
      discount: '10',
      from: '2026-02-01T00:00:00Z',
      to: '2026-03-01T00:00:00Z',
    });
    await using api = await openCosts(scene);
    const priceAt = async (at: string) => (await costOf(api, `?at=${at}T00:00:00Z`)).machine.price;
    expect(await Promise.all(['2026-01-31', '2026-02-01', '2026-03-01'].map(priceAt))).toEqual([
      0.0001, 0.00009, 0.0001,
    ]);
    expect((await costOf(api)).machine.price).toBe(0.0001);
    const { steps } = await api.json<CostHistoryDocument>('/v1/clusters/cluster-test/cost/history');
    expect(steps.map(({ from, to, price, entry: of }) => [from, to, price, of])).toEqual([
      ['2026-01-01T00:00:00.000000Z', '2026-02-01T00:00:00.000000Z', 0.0001, null],
      ['2026-02-01T00:00:00.000000Z', '2026-03-01T00:00:00.000000Z', 0.00009, entry],
      ['2026-03-01T00:00:00.000000Z', null, 0.0001, null],
    ]);
  });
});

describe('/v1/clusters/{slug}/alternatives', () => {
  /** Cheaper and dearer machines than that of the cluster, which costs 0.01 a minute and has 16 cpu and 64 GiB. */
  async function addMarket() {
    const { region, emptyRegion, big, clusterOfA, a } = scene.sample;
    const machine = (at: number, name: string, price: string, more = {}) =>
      addMachine(scene.sql, at, { name, price, cpu: 16, ram: 64, source: 'cloud', ...more });
    const other = await addRegion(scene.sql, await addProvider(scene.sql, 2, 'Other'), 'o1');
    const ids = {
      near: await machine(region, 'near', '0.009'),
      small: await machine(region, 'too-small', '0.001', { cpu: 15 }),
      soldOut: await machine(region, 'sold-out', '0.002', { excluded: 'sold_out' }),
      dear: await machine(region, 'dear', '0.011'),
      same: await machine(region, 'same-price', '0.01'),
      far: await machine(emptyRegion, 'far', '0.008', { cpu: 32 }),
      other: await machine(other, 'other', '0.007', { ram: 128 }),
    };
    await scene.sql`
      update machines set architecture = 'x86_64', local_disk = 80, cpu_kind = 'shared' where id in ${scene.sql([big, ids.near])}`;
    await scene.sql`
      update machines set architecture = 'arm64', local_disk = 100 where id = ${ids.far}`;
    await scene.sql`update clusters set machine_id = ${big} where id = ${clusterOfA}`;
    await scene.sql`update organizations set clusters_version = clusters_version + 1 where id = ${a}`;
    return ids;
  }

  const path = '/v1/clusters/cluster-test/alternatives';
  const idsOf = (list: AlternativesDocument['anywhere']) => list.map(({ machine }) => machine.id);

  it('lists machines of the same architecture and kind of CPU where both are known', async () => {
    const ids = await addMarket();
    await using api = await openCosts(scene);
    const found = await api.json<AlternativesDocument>(path);
    // `far` is arm64, and nothing is known of `other`.
    expect(found.match).toBe('kind');
    expect(idsOf(found.same_region)).toEqual([ids.near]);
    expect(idsOf(found.same_provider)).toEqual([ids.near]);
    expect(idsOf(found.anywhere)).toEqual([ids.other, ids.near]);
    await scene.sql`update machines set cpu_kind = 'dedicated' where id = ${ids.near}`;
    const after = await api.json<AlternativesDocument>(path);
    expect(after.same_region).toEqual([]);
  });

  it('compares memory in bytes: 64 GB are less than 64 GiB', async () => {
    const ids = await addMarket();
    await scene.sql`update machines set ram_unit = 'Decimal' where id in ${scene.sql([ids.near, ids.other])}`;
    await scene.sql`update regions set version = version + 1`;
    await using api = await openCosts(scene);
    const found = await api.json<AlternativesDocument>(`${path}?match=size`);
    // 128 GB are enough.
    expect([idsOf(found.same_region), idsOf(found.anywhere)]).toEqual([[], [ids.other, ids.far]]);
  });

  it('lists larger machines that cost less, the largest saving first, with facts compared', async () => {
    const ids = await addMarket();
    await using api = await openCosts(scene);
    const found = await api.json<AlternativesDocument>(`${path}?match=size`);
    expect(found.match).toBe('size');
    expect(found.machine).toMatchObject({ id: scene.sample.big, price: 0.01, per_month: 1314 });
    expect(idsOf(found.same_region)).toEqual([ids.near]);
    expect(idsOf(found.same_provider)).toEqual([ids.far, ids.near]);
    expect(idsOf(found.anywhere)).toEqual([ids.other, ids.far, ids.near]);
    expect(found.same_region[0]).toMatchObject({
      per_month: 1182.6,
      saving_per_month: 131.4,
      compared: {
        cpu_ratio: 1,
        memory_ratio: 1,
        same_architecture: true,
        same_cpu_kind: true,
        local_disk_difference: 0,
      },
    });
    expect(found.anywhere[1]?.compared).toEqual({
      cpu_ratio: 2,
      memory_ratio: 1,
      same_architecture: false,
      same_cpu_kind: null,
      local_disk_difference: 20,
    });
    const some = await api.json<AlternativesDocument>(`${path}?match=size&limit=1&min_saving=200`);
    expect([some.same_region, idsOf(some.anywhere)]).toEqual([[], [ids.other]]);
    expect(await api.json(`${path}?term=spot`)).toMatchObject({
      machine: { reason: 'term_not_sold' },
      anywhere: [],
    });
  });

  it('finds a machine whose monthly cap makes it the cheapest, although many cost less per minute', async () => {
    await addMarket();
    const { region } = scene.sample;
    for (let i = 0; i < 8; i++)
      await addMachine(scene.sql, region, {
        name: `low${i}`,
        price: `0.00${i + 1}`,
        cpu: 16,
        ram: 64,
        source: 'cloud',
      });
    const capped = await addMachine(scene.sql, region, {
      name: 'capped',
      price: '0.02',
      cpu: 16,
      ram: 64,
      source: 'cloud',
    });
    const terms = { terms: {}, monthly_cap: { price: '30', source: { amount: '30', currency: 'USD' } } };
    await scene.sql`update machines set terms = ${scene.sql.json(terms)} where id = ${capped}`;
    await using api = await openCosts(scene);
    const { same_region, anywhere } = await api.json<AlternativesDocument>(`${path}?limit=1`);
    expect([idsOf(same_region), idsOf(anywhere)]).toEqual([[capped], [capped]]);
    expect(anywhere[0]?.per_month).toBe(90);
  });

  it('compares own prices', async () => {
    const ids = await addMarket();
    await addEntry({ machine: ids.dear, price: '0.001' });
    await addEntry({ provider: 2, discount: '90' });
    await using api = await openCosts(scene);
    const { anywhere } = await api.json<AlternativesDocument>(`${path}?match=size`);
    expect(
      anywhere.map(({ machine }) => [machine.id, machine.price, machine.list_price, machine.price_source]),
    ).toEqual([
      [ids.other, 0.0007, 0.007, 'book'],
      [ids.dear, 0.001, 0.011, 'book'],
      [ids.far, 0.008, 0.008, 'current'],
      [ids.near, 0.009, 0.009, 'current'],
    ]);
    const list = await api.json<AlternativesDocument>(`${path}?match=size&prices=list`);
    expect(idsOf(list.anywhere)).toEqual([ids.other, ids.far, ids.near]);
  });

  it('have the new price of an entry that a change of the currency restates', async () => {
    const { dear } = await addMarket();
    const entry = await addEntry({ machine: dear, price: '0.001' });
    await using api = await openCosts(scene);
    const cheapest = async () => (await api.json<AlternativesDocument>(path)).anywhere[0];
    expect(await cheapest()).toMatchObject({ machine: { id: dear, price: 0.001 } });
    await scene.sql`update price_book_entries set price = '0.002' where id = ${entry}`;
    await scene.sql`update organizations set clusters_version = clusters_version + 1 where id = ${scene.sample.a}`;
    await scene.publisher.publishDirty();
    await until(async () => (await cheapest())?.machine.price === 0.002, { timeoutMs: 20_000 });
  });

  it('accepts a least saving of 0, which every cheaper machine has', async () => {
    await addMarket();
    await using api = await openCosts(scene);
    expect(await api.json(`${path}?min_saving=0`)).toEqual(await api.json(path));
  });

  it('has the errors of the cluster and of its parameters', async () => {
    await using api = await openCosts(scene);
    expect((await api.get('/v1/clusters/unknown/alternatives')).statusCode).toBe(404);
    for (const [name, value] of Object.entries({
      term: 'x',
      match: 'x',
      limit: '51',
      min_saving: '-1',
      at: 'x',
    })) {
      const response = await api.get(`${path}?${name}=${value}`);
      expect([response.statusCode, response.json().parameter]).toEqual([400, name]);
    }
  });
});

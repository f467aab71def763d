/** Costs of clusters whose provider leaves existing machines at the price of their creation. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { inOrganization } from '../../../src/db/connection/client.ts';
import { seedProviders } from '../../../src/db/providers.ts';
import { costOfCluster } from '../../../src/features/console/routes/costs/costs.ts';
import type {
  AlternativesDocument,
  CostDocument,
  CostHistoryDocument,
  CostsDocument,
} from '../../../src/features/costs/schemas.ts';
import { possibleSavings } from '../../../src/features/notifications/possible-savings.ts';
import { addCluster, addMachine } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { runs } from '../../support/random.ts';
import { until } from '../../support/until.ts';
import { openCosts } from './scene.ts';

const scene = sceneForEachTest();
const SINCE = '2026-02-01T00:00:00Z';
const CREATED = '2026-01-15T12:00:00';

/** Both clusters of the sample cost half of today's price since their creation. @param since the rule of their provider */
async function keepPrices(since: string | null = SINCE) {
  const { provider, small, big } = scene.sample;
  await scene.sql`
    update clusters set created_at = ${CREATED}, machine_since = ${`${CREATED}Z`}, creation_as_of = ${SINCE}, creation_reason = null,
      creation_price = case machine_id when ${small} then 0.00005 when ${big} then 0.005 end`;
  await scene.sql`update providers set keeps_prices_since = ${since} where id = ${provider}`;
  await scene.sql`update organizations set clusters_version = clusters_version + 1`;
}

const addDiscount = async (discount: string) => {
  const { a, provider } = scene.sample;
  const [row] = await scene.sql<{ id: number }[]>`
    insert into price_book_entries (organization_id, provider_id, discount, valid_from)
    values (${a}, ${provider}, ${discount}, '2026-01-01T00:00:00Z') returning id`;
  await scene.sql`update organizations set clusters_version = clusters_version + 1 where id = ${a}`;
  return row?.id ?? 0;
};
type Api = Awaited<ReturnType<typeof openCosts>>;
const COST = '/v1/clusters/cluster-test/cost';
const costOf = (api: Api, query = '', of: 'a' | 'b' = 'a') => api.json<CostDocument>(`${COST}${query}`, of);

it('name the price that they use: that of the creation, of now, or of the price book', async () => {
  await keepPrices();
  await using api = await openCosts(scene);
  const kept = { price: 0.00005, list_price: 0.0001, price_source: 'creation', entry: null, per_month: 6.57 };
  const current = {
    price: 0.0001,
    list_price: 0.0001,
    price_source: 'current',
    entry: null,
    per_month: 13.14,
  };
  expect(await costOf(api)).toMatchObject({
    prices: 'own',
    creation: {
      created_at: `${CREATED}.000000Z`,
      price: 0.00005,
      monthly_cap: null,
      as_of: '2026-02-01T00:00:00.000000Z',
      estimate: true,
      kept_since: '2026-02-01T00:00:00.000000Z',
      reason: null,
    },
    machine: kept,
  });
  expect(await costOf(api, '?prices=current')).toMatchObject({ prices: 'current', machine: current });
  expect(await costOf(api, '?prices=list')).toMatchObject({ prices: 'list', machine: current });
  // Before the change, the provider charged all machines the same.
  expect(await costOf(api, '?at=2026-01-20T00:00:00Z')).toMatchObject({ machine: { price_source: null } });
  const entry = await addDiscount('20');
  await using own = await openCosts(scene);
  const book = { price: 0.00008, list_price: 0.0001, price_source: 'book', entry };
  for (const query of ['', '?prices=current'])
    expect(await costOf(own, query)).toMatchObject({ machine: book });
  expect(await costOf(own, '?prices=list')).toMatchObject({ machine: current });
  // The other organization has no book.
  expect(await costOf(own, '', 'b')).toMatchObject({ machine: { price: 0.005, price_source: 'creation' } });
});

it('use the current price if the provider changes prices of all machines, and for other terms', async () => {
  await keepPrices(null);
  await using api = await openCosts(scene);
  expect(await costOf(api)).toMatchObject({
    creation: { price: 0.00005, kept_since: null },
    machine: { price: 0.0001, price_source: 'current' },
  });
  await keepPrices();
  await using kept = await openCosts(scene);
  expect(await costOf(kept, '?term=spot')).toMatchObject({
    machine: { price: null, reason: 'term_not_sold' },
  });
});

it('have a price at the creation though no catalogue has one now', async () => {
  await keepPrices();
  await scene.sql`update machines set excluded_reason = 'no_exchange_rate', price = null where id = ${scene.sample.small}`;
  await using api = await openCosts(scene);
  expect(await costOf(api)).toMatchObject({
    machine: { price: 0.00005, list_price: null, price_source: 'creation', reason: null },
    complete: true,
  });
});

it('are the same in the sum of an organization, in the console and for webhooks', async () => {
  const { a, region, small } = scene.sample;
  await keepPrices();
  const cheap = await addMachine(scene.sql, region, {
    name: 'cheap',
    cpu: 2,
    ram: 8,
    price: '0.00004',
  });
  await using api = await openCosts(scene);
  const { per_month } = await costOf(api);
  const costs = await api.json<CostsDocument>('/v1/costs');
  expect(costs.clusters).toMatchObject([{ slug: 'cluster-test', price_source: 'creation', per_month }]);
  expect(costs.total).toMatchObject({ per_month });
  const current = await api.json<CostsDocument>('/v1/costs?prices=current');
  expect(current.clusters).toMatchObject([{ price_source: 'current' }]);
  expect((current.total.per_month ?? 0) - (per_month ?? 0)).toBeCloseTo(6.57, 8);
  const [row] = await scene.sql<{ id: number }[]>`select id from clusters where organization_id = ${a}`;
  expect(await costOfCluster(scene.store.db, a, row?.id ?? 0)).toMatchObject({
    perMonth: per_month,
    priceSource: 'creation',
    machine: { id: small },
    best: { id: cheap },
  });
  const { same_region } = await api.json<AlternativesDocument>('/v1/clusters/cluster-test/alternatives');
  // 0.00001 a minute for three nodes, not the 0.00006 below today's price.
  expect(same_region.map(({ saving_per_month }) => saving_per_month)).toEqual([1.314]);
  await scene.publisher.publishDirty();
  const savings = await inOrganization(scene.store.db, a, (db) =>
    possibleSavings(db, a, '1', undefined, new Date()),
  );
  expect(savings.clusters).toMatchObject([{ slug: 'cluster-test', saving_per_month: 1.314 }]);
});

it('find savings of clusters that pay different prices for one machine', async () => {
  const { a, region, small } = scene.sample;
  await keepPrices();
  await addMachine(scene.sql, region, { name: 'between', cpu: 2, ram: 8, price: '0.00006' });
  await addCluster(scene.sql, a, { slug: 'young', source: 'plane', regionId: region, machineId: small });
  await scene.publisher.publishDirty();
  const savings = await inOrganization(scene.store.db, a, (db) =>
    possibleSavings(db, a, '0.01', undefined, new Date()),
  );
  // The older cluster pays 0.00005 a minute.
  expect(savings.clusters.map(({ slug }) => slug)).toEqual(['young']);
});

it('follow a rule that a release brings', async () => {
  const { provider } = scene.sample;
  await keepPrices(null);
  await using api = await openCosts(scene);
  const source = async () => (await api.json<CostsDocument>('/v1/costs')).clusters[0]?.price_source;
  expect(await source()).toBe('current');
  await seedProviders(scene.store.db, [{ id: provider, name: 'Wölkchen 🚀', keepsPricesSince: SINCE }]);
  await until(async () => (await source()) === 'creation');
});

it('use the current price until a run has stored that of the time of the rule', async () => {
  await keepPrices('2026-03-01T00:00:00Z');
  await using api = await openCosts(scene);
  expect(await costOf(api)).toMatchObject({
    creation: { price: 0.00005, as_of: '2026-02-01T00:00:00.000000Z' },
    machine: { price: 0.0001, price_source: 'current' },
  });
});

it('have a step where the cluster got another machine', async () => {
  const { small } = scene.sample;
  await keepPrices('2026-01-16T00:00:00Z');
  await scene.sql`
    insert into machine_prices (machine_id, valid_from, price, source_amount, source_per, source_currency)
    values (${small}, '2026-01-01T00:00:00Z', 0.00005, 1, 'hour', 'USD') on conflict do nothing`;
  await using api = await openCosts(scene);
  const { steps } = await api.json<CostHistoryDocument>(`${COST}/history`);
  expect(steps.at(-1)).toMatchObject({ from: '2026-02-01T00:00:00.000000Z', price_source: 'creation' });
});

it('have a step where the provider began to keep prices', async () => {
  const { small } = scene.sample;
  await keepPrices();
  await scene.sql`delete from machine_prices where machine_id = ${small}`;
  await scene.sql`
    insert into machine_prices (machine_id, valid_from, valid_to, price, source_amount, source_per, source_currency) values
      (${small}, '2026-01-01T00:00:00Z', '2026-02-01T01:00:00Z', 0.00005, 1, 'hour', 'USD'),
      (${small}, '2026-02-01T01:00:00Z', null, 0.0001, 1, 'hour', 'USD')`;
  await using api = await openCosts(scene);
  const steps = async (query = '') =>
    (await api.json<CostHistoryDocument>(`${COST}/history${query}`)).steps.map(
      ({ from, price, price_source }) => [from, price, price_source],
    );
  expect(await steps()).toEqual([
    [`${CREATED}.000000Z`, 0.00005, 'current'],
    ['2026-02-01T00:00:00.000000Z', 0.00005, 'creation'],
    // The list price changes, and the provider leaves the cluster alone.
    ['2026-02-01T01:00:00.000000Z', 0.00005, 'creation'],
  ]);
  expect(await steps('?prices=current')).toEqual([
    [`${CREATED}.000000Z`, 0.00005, 'current'],
    ['2026-02-01T01:00:00.000000Z', 0.0001, 'current'],
  ]);
  expect(await costOf(api, '?at=2026-01-20T00:00:00Z')).toMatchObject({
    machine: { price: 0.00005, price_source: 'current' },
  });
});

it.each([
  ['cost?at=2026-01-15T11:59:59Z', 'at', '2026-01-15T11:59:59.000000Z'],
  ['cost/history?from=2025-12-01T00:00:00Z', 'from', '2025-12-01T00:00:00.000000Z'],
  ['cost/history?to=2026-01-01T00:00:00Z', 'to', '2026-01-01T00:00:00.000000Z'],
])('name a time before the creation of the cluster: %s', async (path, parameter, time) => {
  await keepPrices();
  await using api = await openCosts(scene);
  const response = await api.get(`/v1/clusters/cluster-test/${path}`);
  expect([response.statusCode, response.json()]).toMatchObject([
    400,
    {
      type: 'urn:fleetbook:problem:before-creation',
      title: 'Before creation',
      detail: `The query parameter "${parameter}" is ${time}, and the cluster cluster-test was created at ${CREATED}.000000Z: it cost nothing before. Ask for ${CREATED}.000000Z or later.`,
      parameter,
      created_at: `${CREATED}.000000Z`,
    },
  ]);
  // The slug of another organization is as unknown as any.
  expect((await api.get(`/v1/clusters/no-such/${path}`)).statusCode).toBe(404);
  expect((await api.get(`/v1/costs?at=${time}`)).statusCode).toBe(200);
});

it('are there from the microsecond of the creation, as the problem says', async () => {
  await keepPrices();
  await scene.sql`update clusters set created_at = '2026-01-15T12:00:00.567713'`;
  await using api = await openCosts(scene);
  const statusOf = async (time: string) =>
    Promise.all(
      [`cost?at=${time}`, `cost/history?from=${time}`, `cost/history?to=${time}`].map(
        async (path) => (await api.get(`/v1/clusters/cluster-test/${path}`)).statusCode,
      ),
    );
  expect(await statusOf('2026-01-15T12:00:00.567712Z')).toEqual([400, 400, 400]);
  expect(await statusOf('2026-01-15T12:00:00.567713Z')).toEqual([200, 200, 200]);
  expect(await statusOf('2026-01-15T14:00:00.567713%2B02:00')).toEqual([200, 200, 200]);
  expect(await costOf(api, '?at=2026-01-15T12:00:01.5Z')).toMatchObject({
    at: '2026-01-15T12:00:01.500000Z',
  });
});

it('begin the history of a cluster of the future now', async () => {
  await keepPrices();
  await scene.sql`update clusters set created_at = '2099-01-01T00:00:00'`;
  await using api = await openCosts(scene);
  const { steps } = await api.json<CostHistoryDocument>(`${COST}/history`);
  expect(steps).toMatchObject([{ to: null, price_source: 'creation' }]);
});

const minutes = fc.integer({ min: 1, max: 99_999 }).map((units) => Number((units * 1e-6).toFixed(6)));

it('are those of one organization alone, whatever the other one has', async () => {
  const { a, b, small } = scene.sample;
  await keepPrices();
  await scene.sql`update clusters set machine_id = ${small}`;
  await scene.sql`insert into machine_prices (machine_id, valid_from, price, source_amount, source_per, source_currency)
    values (${small}, '2026-01-01T00:00:00Z', 0.0001, 1, 'hour', 'USD') on conflict do nothing`;
  await using api = await openCosts(scene);
  await fc.assert(
    fc.asyncProperty(
      fc.record({ a: minutes, b: minutes }),
      fc.array(
        fc.tuple(fc.constantFrom<'a' | 'b'>('a', 'b'), fc.constantFrom('', '?prices=own', '?prices=current')),
        {
          minLength: 6,
          maxLength: 6,
        },
      ),
      async (prices, requests) => {
        for (const [id, price] of [
          [a, prices.a],
          [b, prices.b],
        ] as const)
          await scene.sql`update clusters set creation_price = ${price} where organization_id = ${id}`;
        await scene.sql`update organizations set clusters_version = clusters_version + 1`;
        for (const [of, query] of requests) {
          const price = query === '?prices=current' ? 0.0001 : prices[of];
          const found = await costOf(api, query, of);
          expect([found.machine.price, found.creation.price]).toEqual([price, prices[of]]);
          const { clusters } = await api.json<CostsDocument>(`/v1/costs${query}`, of);
          expect(clusters.map(({ known_per_month }) => known_per_month)).toEqual([found.known_per_month]);
          const { steps } = await api.json<CostHistoryDocument>(`${COST}/history${query}`, of);
          expect(steps.at(-1)?.price).toBe(price);
          const { machine } = await api.json<AlternativesDocument>(
            `/v1/clusters/cluster-test/alternatives${query}`,
            of,
          );
          expect(machine.price).toBe(price);
        }
      },
    ),
    { numRuns: runs(15) },
  );
});

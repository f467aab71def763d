import Big from 'big.js';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { createToken } from '../../../src/db/tokens.ts';
import type {
  CostDocument,
  CostHistoryDocument,
  CostsDocument,
} from '../../../src/features/costs/schemas.ts';
import { addCluster, addMachine, reprice, verify } from '../../snapshot/rows.ts';
import { countingSql, sceneForEachTest, TestClock } from '../../snapshot/scene.ts';
import { runs } from '../../support/random.ts';
import { openCosts } from './scene.ts';

const scene = sceneForEachTest();

const addOf = (organizationId: number, slug: string, machineId: number, disks = 0) =>
  addCluster(scene.sql, organizationId, {
    slug,
    source: 'plane',
    regionId: scene.sample.region,
    machineId,
    disks,
  });

/** A price that was valid from one day of January 2026 to before another one. */
const addPrice = (machineId: number, price: string | null, from: number, to: number | null) => scene.sql`
  insert into machine_prices (machine_id, valid_from, valid_to, price, source_amount, source_per, source_currency)
  values (${machineId}, make_timestamptz(2026, 1, ${from}, 0, 0, 0, 'UTC'),
          ${to}::integer * interval '1 day' + timestamptz '2025-12-31T00:00:00Z', ${price}, 1, 'hour', 'USD')`;

const sumOf = (amounts: readonly (number | null)[]) =>
  amounts.reduce<Big>((sum, each) => sum.plus(each ?? 0), new Big(0)).toFixed();

describe('/v1/clusters/{slug}/cost', () => {
  it('names every price and quantity', async () => {
    await using api = await openCosts(scene);
    const { small } = scene.sample;
    const disk = { size: 150.5, unit: 'GB', price: 4.5e-10, price_unit: 'GB', count: 3, reason: null };
    const amount = { per_minute: 2.03175e-7, per_month: 0.00889906 };
    expect(await api.json('/v1/clusters/cluster-test/cost')).toEqual({
      cluster: {
        slug: 'cluster-test',
        name: 'Ä’s',
        status: 'Active',
        provider: { id: 1, name: 'Wölkchen 🚀' },
        region: { name: 'Zürich', code: 'zrh' },
      },
      term: 'on_demand',
      prices: 'own',
      at: null,
      shards: 3,
      replicas: 1,
      creation: {
        created_at: '2022-02-14T10:11:26.567713Z',
        price: null,
        monthly_cap: null,
        as_of: null,
        estimate: true,
        kept_since: null,
        reason: 'before_history',
      },
      machine: {
        id: small,
        name: 'klein-ß',
        cpu: 2,
        ram: 8,
        ram_unit: 'Binary',
        in_catalogue: true,
        price: 0.0001,
        list_price: 0.0001,
        price_source: 'current',
        entry: null,
        monthly_cap: null,
        count: 3,
        per_minute: 0.0003,
        per_month: 13.14,
        reason: null,
      },
      disks: [
        { type: 'cluster-test 0', ...disk, ...amount },
        { type: 'cluster-test 1', ...disk, ...amount },
      ],
      per_minute: 0.00030040635,
      per_month: 13.15779812,
      known_per_minute: 0.00030040635,
      known_per_month: 13.15779812,
      complete: true,
    });
  });

  it('has the headers of every answer, and the time of the oldest input', async () => {
    await using api = await openCosts(scene);
    const path = '/v1/clusters/cluster-test/cost';
    await api.get(path);
    const { headers } = await api.get(path);
    expect(headers).toMatchObject({
      'fleetbook-as-of': '2026-01-01T00:00:00.000Z',
      'fleetbook-currency': 'USD',
      'fleetbook-tier': 'postgres',
      'cache-control': 'private, no-cache',
      vary: 'Authorization, Accept-Encoding',
    });
    const again = await api.get(path, 'a', { 'if-none-match': String(headers.etag) });
    expect(again.statusCode).toBe(304);
  });

  it('states the time of the catalogue if that is older', async () => {
    await verify(scene.sql, 'cloud', '2025-06-01T00:00:00.000Z');
    await using api = await openCosts(scene);
    for (const path of ['/v1/costs', '/v1/clusters/cluster-test/cost?at=2026-01-01T00:00:00Z'])
      expect((await api.get(path)).headers['fleetbook-as-of']).toBe('2025-06-01T00:00:00.000Z');
  });

  it('uses the stored price of a machine that is not published', async () => {
    const { a, gpu, region } = scene.sample;
    const unlisted = await addMachine(scene.sql, region, { name: 'own', excluded: 'unlisted' });
    await scene.sql`update machines set price = null where id = ${unlisted}`;
    const unpriced = await addMachine(scene.sql, region, { name: 'yen', excluded: 'no_exchange_rate' });
    await scene.sql`update machines set price = null where id = ${unpriced}`;
    for (const [slug, id] of Object.entries({ excluded: gpu, unlisted, unpriced }))
      await addOf(a, slug, id, 1);
    await using api = await openCosts(scene);
    const cost = (slug: string) => api.json<CostDocument>(`/v1/clusters/${slug}/cost`);
    const excluded = await cost('excluded');
    expect(excluded).toMatchObject({
      machine: { name: 'gpu', in_catalogue: false, price: 0.001, per_month: 131.4, reason: null },
      complete: true,
    });
    expect(await cost('unlisted')).toMatchObject({
      machine: { in_catalogue: false, price: null, per_minute: null, per_month: null, reason: 'not_listed' },
      per_minute: null,
      per_month: null,
      known_per_month: 0.00889906,
      complete: false,
    });
    expect(await cost('unpriced')).toMatchObject({ machine: { price: null, reason: 'no_price' } });
    const { headers } = await api.get('/v1/clusters/excluded/cost');
    expect(headers['fleetbook-tier']).toBe('postgres');
    expect(await api.json('/v1/costs')).toMatchObject({
      total: { clusters: 4, per_minute: null, per_month: null, complete: false },
      clusters: [{ slug: 'excluded', per_month: excluded.per_month }, { slug: 'cluster-test' }, {}, {}],
    });
  });

  it('uses the price of a term and the monthly cap, or says that the machine lacks the term', async () => {
    const { a, gpu } = scene.sample;
    await addOf(a, 'capped', gpu);
    const source = { price: { amount: '1', per: 'month', currency: 'USD' } };
    const terms = {
      terms: { spot: { price: '0.0002', upfront: null, source } },
      monthly_cap: { price: '36', source: { amount: '36', currency: 'USD' } },
    };
    await scene.sql`update machines set terms = ${scene.sql.json(terms)} where id = ${gpu}`;
    await using api = await openCosts(scene);
    const cost = async (term: string) =>
      (await api.json<CostDocument>(`/v1/clusters/capped/cost?term=${term}`)).machine;
    expect(await cost('on_demand')).toMatchObject({ price: 0.001, monthly_cap: 36, per_month: 108 });
    expect(await cost('spot')).toMatchObject({ price: 0.0002, monthly_cap: null, per_month: 26.28 });
    expect(await cost('reserved_1y')).toMatchObject({ price: null, reason: 'term_not_sold' });
  });
});

describe('/v1/costs', () => {
  it('lists all clusters in pages, the most expensive first, with totals that add up', async () => {
    const { a, small, big } = scene.sample;
    for (let i = 0; i < 7; i++) await addOf(a, `of-a-${i}`, i % 2 ? small : big, i % 3);
    await using api = await openCosts(scene);
    const found: CostsDocument['clusters'][number][] = [];
    for (let next: string | null = ''; next !== null; ) {
      const page: CostsDocument = await api.json(`/v1/costs?limit=3${next && `&cursor=${next}`}`);
      expect(page.clusters.length).toBeLessThanOrEqual(3);
      found.push(...page.clusters);
      next = page.next;
    }
    const { total, providers, regions } = await api.json<CostsDocument>('/v1/costs');
    expect(found).toHaveLength(8);
    expect(found).toEqual(
      found.toSorted((x, y) => y.known_per_month - x.known_per_month || (x.slug < y.slug ? -1 : 1)),
    );
    for (const cost of found) {
      const { known_per_minute, known_per_month, machine, disks, complete } = await api.json<CostDocument>(
        `/v1/clusters/${cost.slug}/cost`,
      );
      expect(complete).toBe(true);
      expect([cost.per_minute, cost.per_month]).toEqual([known_per_minute, known_per_month]);
      const parts = [machine, ...disks];
      expect(sumOf(parts.map((part) => part.per_minute))).toBe(new Big(known_per_minute).toFixed());
      expect(sumOf(parts.map((part) => part.per_month))).toBe(new Big(known_per_month).toFixed());
    }
    expect(sumOf(found.map((cost) => cost.per_month))).toBe(new Big(total.known_per_month).toFixed());
    expect(sumOf(found.map((cost) => cost.per_minute))).toBe(new Big(total.known_per_minute).toFixed());
    expect(providers).toEqual([{ provider: { id: 1, name: 'Wölkchen 🚀' }, ...total }]);
    expect(regions).toMatchObject([{ region: { code: 'zrh' }, ...total }]);
  });

  it('is empty for an organization without clusters', async () => {
    await scene.sql`update clusters set retired_at = now() where id = ${scene.sample.clusterOfB}`;
    await scene.sql`update organizations set clusters_version = clusters_version + 1`;
    await using api = await openCosts(scene);
    expect(await api.json('/v1/costs', 'b')).toMatchObject({
      total: { clusters: 0, per_minute: 0, per_month: 0, complete: true },
      providers: [],
      clusters: [],
      next: null,
    });
  });

  it('has each change at once, and reads only what may have changed', async () => {
    await using counting = countingSql(scene.db.url);
    await using api = await openCosts(scene, { sql: counting.sql });
    const read = async () => {
      const from = counting.statements.length;
      const response = await api.get('/v1/costs');
      const statements = counting.statements.slice(from).join('\n');
      const tables = ['clusters c', 'machines m join', 'price_book_entries'];
      return {
        month: response.json<CostsDocument>().total.per_month,
        tier: response.headers['fleetbook-tier'],
        tables: tables.filter((table) => statements.includes(`from ${table}`)),
      };
    };
    const [clusters, machines, book] = ['clusters c', 'machines m join', 'price_book_entries'];
    expect(await read()).toEqual({
      month: 13.15779812,
      tier: 'postgres',
      tables: [clusters, machines, book],
    });
    expect(await read()).toEqual({ month: 13.15779812, tier: 'memory', tables: [] });
    await reprice(scene.sql, scene.sample.small, '0.0002');
    expect(await read()).toEqual({ month: 26.29779812, tier: 'postgres', tables: [machines] });
    await addOf(scene.sample.a, 'second', scene.sample.small);
    expect(await read()).toEqual({
      month: 52.57779812,
      tier: 'postgres',
      tables: [clusters, machines, book],
    });
    expect(await read()).toMatchObject({ tier: 'memory', tables: [] });
  });

  it('reads the price of a machine that no version covers again after some seconds', async () => {
    const { a, gpu } = scene.sample;
    await addOf(a, 'excluded', gpu);
    const clock = new TestClock();
    await using api = await openCosts(scene, { now: clock.now });
    const month = async () => (await api.json<CostsDocument>('/v1/costs')).clusters[0]?.per_month;
    expect(await month()).toBe(131.4);
    await scene.sql`update machines set price = '0.002' where id = ${gpu}`;
    expect(await month()).toBe(131.4);
    clock.forward(5000);
    expect(await month()).toBe(262.8);
  });

  it('has the own prices that begin or end by themselves', async () => {
    const clock = new TestClock();
    const from = new Date(clock.now() + 60_000).toISOString();
    await scene.sql`insert into price_book_entries (organization_id, discount, valid_from) values (${scene.sample.a}, 50, ${from})`;
    await using api = await openCosts(scene, { now: clock.now });
    const month = async () => (await api.json<CostsDocument>('/v1/costs')).total.per_month;
    expect(await month()).toBe(13.15779812);
    clock.forward(61_000);
    expect(await month()).toBe(6.58779812);
  });

  it('follows the clock of the system, also after the process was suspended and if the clock goes back', async () => {
    const from = new Date(Date.now() + 3_600_000).toISOString();
    await scene.sql`insert into price_book_entries (organization_id, discount, valid_from) values (${scene.sample.a}, 50, ${from})`;
    const wall = Date.now;
    let ahead = 0;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => wall() + ahead);
    try {
      await using api = await openCosts(scene);
      const months = async () => {
        const { total } = await api.json<CostsDocument>('/v1/costs');
        const { known_per_month } = await api.json<CostDocument>('/v1/clusters/cluster-test/cost');
        return [total.per_month, known_per_month];
      };
      expect(await months()).toEqual([13.15779812, 13.15779812]);
      ahead = 3_601_000;
      expect(await months()).toEqual([6.58779812, 6.58779812]);
      ahead = 0;
      expect(await months()).toEqual([13.15779812, 13.15779812]);
    } finally {
      clock.mockRestore();
    }
  });

  it('are read again from a database that was restored to equal versions', async () => {
    await using api = await openCosts(scene);
    const month = async () => (await api.json<CostsDocument>('/v1/costs')).total.per_month;
    expect(await month()).toBe(13.15779812);
    await scene.sql`update machines set price = '0.0002' where id = ${scene.sample.small}`;
    await scene.sql`update clusters set replicas = 2`;
    expect(await month()).toBe(13.15779812);
    await scene.sql`update lineage set id = gen_random_uuid()`;
    expect(await month()).toBeGreaterThan(50);
  });

  it('answers 503 with Retry-After while PostgreSQL is away', async () => {
    await using counting = countingSql(scene.db.url);
    await using api = await openCosts(scene, { sql: counting.sql });
    const paths = [
      '/v1/costs',
      ...['cost', 'cost/history', 'alternatives'].map((path) => `/v1/clusters/cluster-test/${path}`),
    ];
    for (const path of paths) expect((await api.get(path)).statusCode).toBe(200);
    await counting[Symbol.asyncDispose]();
    for (const path of paths) {
      const { statusCode, headers } = await api.get(path);
      expect([path, statusCode, headers['retry-after']]).toEqual([path, 503, '1']);
    }
    // Everything else is in memory.
    expect((await api.get('/v1/clusters')).statusCode).toBe(200);
  });

  it('names each invalid parameter', async () => {
    await using api = await openCosts(scene);
    const cost = '/v1/clusters/cluster-test/cost';
    for (const [path, parameter, value] of [
      ['/v1/costs', 'term', 'forever'],
      ['/v1/costs', 'prices', 'mine'],
      ['/v1/costs', 'at', 'yesterday'],
      ['/v1/costs', 'at', '2026-01-01'],
      ['/v1/costs', 'at', '2999-01-01T00:00:00Z'],
      ['/v1/costs', 'limit', '1001'],
      ['/v1/costs', 'cursor', 'eA'],
      ['/v1/costs', 'price', 'own'],
      [cost, 'term', 'spot,on_demand'],
      [cost, 'at', '2026-13-01T00:00:00Z'],
      [`${cost}/history`, 'from', 'x'],
      [`${cost}/history`, 'to', ''],
    ]) {
      const response = await api.get(`${path}?${parameter}=${value}`);
      expect([response.statusCode, response.json().parameter], `${path} ${value}`).toEqual([400, parameter]);
    }
  });

  it('rejects the cursor of another question', async () => {
    await addOf(scene.sample.a, 'second', scene.sample.big);
    await using api = await openCosts(scene);
    const { next } = await api.json<CostsDocument>('/v1/costs?limit=1');
    expect((await api.get(`/v1/costs?prices=list&cursor=${next}`)).statusCode).toBe(400);
    expect((await api.get(`/v1/costs?cursor=${next}`)).statusCode).toBe(200);
  });
});

const TIMES = [
  '0000-01-01T00:00:00Z',
  '0001-01-01T00:00:00%2B14:00',
  '1969-12-31T23:59:59Z',
  '2026-02-30T00:00:00Z',
  '2026-01-01T24:00:00Z',
  '2026-01-01',
  '9999-12-31T23:59:59-23:59',
];

it.each([
  ['/v1/costs', 'at'],
  ['/v1/clusters/cluster-test/cost', 'at'],
  ['/v1/clusters/cluster-test/cost/history', 'from'],
  ['/v1/clusters/cluster-test/cost/history', 'to'],
])('refuses times in %s?%s= that no calendar has, or that are before 1970', async (path, name) => {
  await scene.sql`update clusters set created_at = '1970-01-01T00:00:00'`;
  await using api = await openCosts(scene);
  for (const time of TIMES) {
    const response = await api.get(`${path}?${name}=${time}`);
    expect([time, response.statusCode, response.json().parameter]).toEqual([time, 400, name]);
    expect(response.json().detail).toContain('a time of RFC 3339 from 1970 to now');
  }
  expect((await api.get(`${path}?${name}=1970-01-01T00:00:00Z`)).statusCode).toBe(200);
});

describe('past prices', () => {
  it('give the clusters of today the cost at a time, and one cluster a history', async () => {
    const { small } = scene.sample;
    await addPrice(small, '0.0002', 3, 5);
    await addPrice(small, null, 5, 8);
    await addPrice(small, '0.0003', 8, 10);
    await addPrice(small, '0.0001', 12, null);
    const at = (day: number) => `2026-01-${String(day).padStart(2, '0')}T00:00:00`;
    await using api = await openCosts(scene);
    const machine = async (day: number) =>
      (await api.json<CostDocument>(`/v1/clusters/cluster-test/cost?at=${at(day)}Z`)).machine;
    expect(await machine(3)).toMatchObject({ price: 0.0002, per_month: 26.28, in_catalogue: true });
    expect(await machine(6)).toMatchObject({ price: null, reason: 'no_price' });
    expect(await machine(9)).toMatchObject({ price: 0.0003 });
    expect(await machine(11)).toMatchObject({ price: null, reason: 'no_price' });
    expect(await machine(12)).toMatchObject({ price: 0.0001 });
    const list = await api.json<CostsDocument>(`/v1/costs?at=${at(4)}Z`);
    expect(list).toMatchObject({ at: `${at(4)}.000000Z`, total: { per_month: 26.29779812, complete: true } });

    const history = (query = '') =>
      api.json<CostHistoryDocument>(`/v1/clusters/cluster-test/cost/history${query}`);
    const steps = ({ steps: found }: CostHistoryDocument) =>
      found.map(({ from, to, price, complete }) => [from, to, price, complete]);
    const time = (day: number) => `${at(day)}.000000Z`;
    expect(steps(await history())).toEqual([
      [time(3), time(5), 0.0002, true],
      [time(5), time(8), null, false],
      [time(8), time(10), 0.0003, true],
      [time(10), time(12), null, false],
      [time(12), null, 0.0001, true],
    ]);
    expect(steps(await history(`?from=${at(4)}Z&to=${at(9)}Z`))).toEqual([
      [time(4), time(5), 0.0002, true],
      [time(5), time(8), null, false],
      [time(8), time(9), 0.0003, true],
    ]);
    expect(steps(await history('?term=spot'))).toMatchObject([[time(3), null, null, false]]);
  });
});

describe('organizations', () => {
  it('get the very same 404 for a foreign and an unknown cluster', async () => {
    await addOf(scene.sample.b, 'of-b', scene.sample.big);
    await using api = await openCosts(scene);
    const problem = async (path: string) => {
      const response = await api.get(path);
      const { instance, ...rest } = response.json();
      return [response.statusCode, { ...rest, instance: typeof instance }];
    };
    const wanted = await problem('/v1/clusters/unknown');
    expect(wanted[0]).toBe(404);
    for (const path of ['cost', 'cost?at=2026-01-02T00:00:00Z', 'cost/history'])
      for (const slug of ['of-b', 'unknown', '%00', 'x'.repeat(1000)])
        expect(await problem(`/v1/clusters/${slug}/${path}`), slug).toEqual(wanted);
  });

  it('need the scope', async () => {
    await using api = await openCosts(scene);
    const { token } = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes: ['machines:read'],
    });
    const headers = { authorization: `Bearer ${token}` };
    for (const url of ['/v1/costs', '/v1/clusters/cluster-test/cost', '/v1/clusters/x/cost/history'])
      expect((await api.app.inject({ url, headers })).statusCode).toBe(403);
  });

  it('never see the costs of another one', async () => {
    const { a, b, small, big, gpu } = scene.sample;
    const ofB = await addMachine(scene.sql, scene.sample.region, { name: 'secret', excluded: 'unlisted' });
    await addOf(b, 'secret', ofB);
    const machines = [small, big, gpu];
    for (let i = 0; i < 6; i++) await addOf(i % 2 ? a : b, `c${i}`, machines[i % 3] as number, 1);
    await using api = await openCosts(scene);
    const own = { a: ['cluster-test', 'c1', 'c3', 'c5'], b: ['cluster-test', 'secret', 'c0', 'c2', 'c4'] };
    const question = fc.record({
      of: fc.constantFrom<'a' | 'b'>('a', 'b'),
      term: fc.constantFrom('on_demand', 'spot'),
      limit: fc.integer({ min: 1, max: 9 }),
      at: fc.constantFrom('', '&at=2026-01-05T00:00:00Z'),
      slug: fc.constantFrom('cluster-test', 'secret', 'c0', 'c1', 'c2', 'c3', 'c4', 'c5'),
    });
    await fc.assert(
      fc.asyncProperty(question, async ({ of, term, limit, at, slug }) => {
        const { total, clusters } = await api.json<CostsDocument>(
          `/v1/costs?term=${term}&limit=${limit}${at}`,
          of,
        );
        expect(total.clusters).toBe(own[of].length);
        expect(own[of]).toEqual(expect.arrayContaining(clusters.map((cluster) => cluster.slug)));
        const response = await api.get(`/v1/clusters/${slug}/cost?term=${term}${at}`, of);
        expect(response.statusCode).toBe(own[of].includes(slug) ? 200 : 404);
        if (of === 'a') expect(response.body).not.toContain('secret');
      }),
      { numRuns: runs(60) },
    );
  });
});

/** Plans of managed databases: from their rows to answers of the API and of the command. */
import Big from 'big.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConnectionDatabase } from '../../../src/db/connection/connect.ts';
import type {
  DatabaseDocument,
  DatabasesDocument,
  DatabaseWithHistory,
} from '../../../src/features/databases/schema.ts';
import { type WrittenPlan, writePlans } from '../../../src/sync/catalogue/database-plans.ts';
import { addPlan, addProvider, addRegion } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { faultProxy } from '../../support/fault-proxy.ts';
import { runs } from '../../support/random.ts';
import { runCommand } from '../../support/run-command.ts';
import { until } from '../../support/until.ts';
import { openCosts } from '../costs/scene.ts';

const scene = sceneForEachTest();

const NOW = '2026-01-02T00:00:00Z';
const PLAN: WrittenPlan = {
  id: null,
  regionCode: 'zrh',
  engine: 'postgresql',
  name: 'db-2',
  nodes: 3,
  cpu: 2,
  ram: 4,
  ramUnit: 'Binary',
  storage: 80.5,
  price: { amount: '60', per: 'month', currency: 'USD' },
  // 60 ÷ 43,800, to 18 places.
  perMinute: '0.00136986301369863',
  isRepriced: true,
};

async function write(changed: readonly WrittenPlan[], gone: readonly number[] = [], now = NOW) {
  const source = { id: 'cloud', provider: { id: scene.sample.provider, name: 'Cloud' } };
  await writePlans(scene.store.db as unknown as ConnectionDatabase, source, { changed, gone }, now);
}

describe('/v1/databases', () => {
  it('answers all that is known of a plan, and null for what is not', async () => {
    const { emptyRegion } = scene.sample;
    const [empty] = await scene.sql`select code from regions where id = ${emptyRegion}`;
    await write([
      PLAN,
      {
        ...PLAN,
        regionCode: empty?.code,
        name: 'bare',
        nodes: null,
        cpu: null,
        ram: null,
        ramUnit: null,
        storage: null,
        perMinute: '0.001',
      },
      // Without an exchange rate.
      { ...PLAN, name: 'unpriced', perMinute: null },
    ]);
    await using api = await openCosts(scene);
    const { databases, next } = await api.json<DatabasesDocument>('/v1/databases');
    expect(next).toBeNull();
    expect(databases).toMatchObject([{ name: 'bare', region: { id: emptyRegion } }, { name: 'db-2' }]);
    expect(databases[0]).toMatchObject({
      nodes: null,
      cpu: null,
      ram: null,
      ram_unit: null,
      storage: null,
      price: 0.001,
    });
    expect(databases[1]).toEqual({
      id: 1,
      engine: 'postgresql',
      name: 'db-2',
      nodes: 3,
      cpu: 2,
      ram: 4,
      ram_unit: 'Binary',
      storage: 80.5,
      price: 0.00136986301369863,
      price_per_month: 60,
      provider: { id: scene.sample.provider, name: expect.any(String) },
      region: { id: scene.sample.region, name: 'Zürich', code: 'zrh' },
    });
    const response = await api.get('/v1/databases');
    expect(response.headers).toMatchObject({
      'fleetbook-currency': 'USD',
      'fleetbook-as-of': expect.any(String),
    });
    const again = await api.get('/v1/databases', 'b', { 'if-none-match': String(response.headers.etag) });
    expect(again.statusCode).toBe(304);
  });

  it('follows a publication, with the history of the price, and 404 for a plan that is gone', async () => {
    await write([PLAN]);
    await using api = await openCosts(scene);
    expect(await api.json<DatabaseDocument>('/v1/databases/1')).not.toHaveProperty('history');
    await write([{ ...PLAN, id: 1, perMinute: '0.002' }], [], '2026-01-03T00:00:00Z');
    await scene.publisher.publishDirty();
    await until(async () => (await api.json<DatabaseDocument>('/v1/databases/1')).price === 0.002);
    const { history } = await api.json<DatabaseWithHistory>('/v1/databases/1?history=true');
    expect(history).toEqual([
      { price: 0.002, from: '2026-01-03T00:00:00.000000Z', to: null },
      { price: 0.00136986301369863, from: '2026-01-02T00:00:00.000000Z', to: '2026-01-03T00:00:00.000000Z' },
    ]);
    await write([], [1], '2026-01-04T00:00:00Z');
    await scene.publisher.publishDirty();
    await until(async () => (await api.get('/v1/databases/1')).statusCode === 404);
    expect(await api.json<DatabasesDocument>('/v1/databases')).toEqual({ databases: [], next: null });
  });

  it('has plans of a provider without machines, also from the cache alone', async () => {
    await addProvider(scene.sql, 13, 'Plans');
    await scene.sql`update providers set listed = false where id = 13`;
    await addPlan(scene.sql, await addRegion(scene.sql, 13, 'aws-eu-west-1'));
    await using proxy = await faultProxy(scene.db.url);
    await using api = await openCosts(scene, { databaseUrl: proxy.url });
    expect(await api.json('/v1/providers')).not.toContainEqual(expect.objectContaining({ id: 13 }));
    await proxy.refuse();
    const { databases } = await api.json<DatabasesDocument>('/v1/databases?provider=13');
    expect(databases).toMatchObject([{ name: 'db-1', region: { code: 'aws-eu-west-1' } }]);
    await proxy.heal();
    expect((await api.json<DatabasesDocument>('/v1/databases?provider=13')).databases).toEqual(databases);
  });

  it('names the parameter, the problem and the remedy', async () => {
    await write([PLAN, { ...PLAN, name: 'second' }]);
    await using api = await openCosts(scene);
    const { next } = await api.json<DatabasesDocument>('/v1/databases?limit=1');
    for (const [query, detail] of [
      [
        'engine=Post%20gres',
        '"engine" may be given, as up to 20 values with commas between them, each a name in lower case',
      ],
      ['min_cpu=0', '"min_cpu" may be given once, as a whole number from 1 to 100000, not "0"'],
      ['sort=name', '"sort" may be given once, as one of price, -price, not "name"'],
      ['cursor=abc', '"cursor" may be given once, as "next" of an answer to the same question, not "abc"'],
      [
        `cursor=${next}&engine=mysql`,
        '"cursor" may be given once, as "next" of an answer to the same question',
      ],
      ['min_disk=1', 'no query parameter "min_disk"'],
    ] as const) {
      const response = await api.get(`/v1/databases?${query}`);
      expect([response.statusCode, response.json().detail], query).toEqual([
        400,
        expect.stringContaining(detail),
      ]);
    }
    expect((await api.get('/v1/databases/0')).statusCode).toBe(400);
  });

  it('leaves the answers of the contract as they are', async () => {
    const { provider, region, small } = scene.sample;
    await using api = await openCosts(scene);
    const urls = [
      '/v1/providers',
      `/v1/machines?provider=${provider}&region=${region}`,
      `/v1/machines/${small}`,
      '/v1/clusters',
      '/v1/machines/search',
      '/v1/machines/recommend?cpu=1&ram=1',
    ];
    const bodies = async () => {
      const answers = await Promise.all(urls.map(async (url) => (await api.get(url)).body));
      return answers.map((body) => body.replace(/"version":"[^"]*"/, ''));
    };
    const before = await bodies();
    await write([PLAN]);
    await scene.publisher.publishDirty();
    await until(async () => (await api.json<DatabasesDocument>('/v1/databases')).databases.length === 1);
    expect(await bodies()).toEqual(before);
  });

  it('answers the stored rows, for any plans, filters, order and size of pages', async () => {
    await using api = await openCosts(scene);
    const plan = fc.record({
      engine: fc.constantFrom('postgresql', 'mysql', 'redis'),
      nodes: fc.option(fc.integer({ min: 1, max: 3 })),
      cpu: fc.option(fc.integer({ min: 1, max: 8 })),
      ram: fc.option(fc.integer({ min: 1, max: 16 })),
      cents: fc.integer({ min: 1, max: 20 }),
    });
    const question = fc.record({
      engines: fc.option(fc.subarray(['postgresql', 'mysql', 'redis'], { minLength: 1 })),
      minCpu: fc.option(fc.integer({ min: 1, max: 8 })),
      minRam: fc.option(fc.integer({ min: 1, max: 16 })),
      isDescending: fc.boolean(),
      limit: fc.integer({ min: 1, max: 7 }),
      of: fc.constantFrom('all', 'region', 'emptyRegion', 'provider'),
    });
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(plan, { maxLength: 12 }), question, async (plans, asked) => {
        round += 1;
        await scene.sql`update database_plans set retired_at = now()`;
        const changed = plans.map(({ cents, ram, ...each }, i) => ({
          ...PLAN,
          ...each,
          ram,
          ramUnit: ram === null ? null : ('Decimal' as const),
          name: `plan ${round} ${i}`,
          perMinute: new Big(cents).div(100).toFixed(),
        }));
        if (changed.length > 0) await write(changed);
        else await scene.sql`update regions set version = version + 1 where code = 'zrh'`;
        await scene.publisher.publishDirty();
        const { engines, minCpu, minRam, isDescending, limit, of } = asked;
        const stored = await scene.sql<
          { id: number; engine: string; cpu: number | null; ram: string | null }[]
        >`
          select id, engine, cpu, ram from database_plans where retired_at is null order by price, id`;
        const expected = stored
          .filter(({ engine }) => engines === null || engines.includes(engine))
          .filter(({ cpu }) => minCpu === null || (cpu !== null && cpu >= minCpu))
          .filter(({ ram }) => minRam === null || (ram !== null && Number(ram) >= minRam))
          .filter(() => of !== 'emptyRegion')
          .map(({ id }) => id);
        const all = stored.map(({ id }) => id);
        await until(async () => {
          const { databases } = await api.json<DatabasesDocument>('/v1/databases?limit=500');
          return JSON.stringify(databases.map(({ id }) => id)) === JSON.stringify(all);
        });
        const query = new URLSearchParams({ limit: String(limit), sort: isDescending ? '-price' : 'price' });
        if (engines) query.set('engine', engines.join(','));
        if (minCpu) query.set('min_cpu', String(minCpu));
        if (minRam) query.set('min_ram', String(minRam));
        if (of === 'provider') query.set('provider', String(scene.sample.provider));
        else if (of !== 'all') query.set('region', String(scene.sample[of]));
        const found: number[] = [];
        for (let next: string | null = ''; next !== null; ) {
          if (next !== '') query.set('cursor', next);
          const page: DatabasesDocument = await api.json(`/v1/databases?${query}`);
          expect(page.databases.length).toBeLessThanOrEqual(limit);
          found.push(...page.databases.map(({ id }) => id));
          ({ next } = page);
        }
        expect(found).toEqual(isDescending ? expected.toReversed() : expected);
      }),
      { numRuns: runs(20) },
    );
  });
});

it('fleetbook databases lists the plans, also those without a price in the published currency', async () => {
  await write([
    PLAN,
    {
      ...PLAN,
      name: 'bare',
      engine: 'mysql',
      nodes: null,
      cpu: null,
      ram: null,
      ramUnit: null,
      storage: null,
      perMinute: null,
    },
  ]);
  const env = { DATABASE_URL: scene.db.url };
  const { stdout } = await runCommand(['databases'], env);
  expect(stdout).toMatch(/^ID +ENGINE +PLAN +PROVIDER +NODES +CPU +MEMORY +STORAGE +USD PER HOUR\n/);
  expect(stdout).toMatch(/\n2 +postgresql +db-2@zrh +Wölkchen 🚀 +3 +2 +4 GiB +80\.5 GB +0\.082192\n/);
  expect(stdout).toMatch(/\n1 +mysql +bare@zrh +Wölkchen 🚀 +- +- +- +- +-\n/);
  const json = JSON.parse(
    (await runCommand(['databases', 'DB', '--engine', 'postgresql', '--json'], env)).stdout,
  );
  expect(json).toMatchObject({
    total: 1,
    rows: [{ id: 2, source: { amount: '60', per: 'month', currency: 'USD' } }],
  });
  expect((await runCommand(['databases', '--region', 'nowhere'], env)).stdout).toContain('remove an option');
});

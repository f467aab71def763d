import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/providers/aiven.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { readCatalogue } from './read-catalogue.ts';

const IRELAND = 'aws-eu-west-1';
const FRANKFURT = 'google-europe-west3';
const CLOUDS = [IRELAND, FRANKFURT].map((cloud_name) => ({ cloud_name, cloud_description: cloud_name }));
const THERE = { price_usd: '0.27', node_cpu_count: 2, node_memory_mb: 4096, disk_space_mb: 81_920 };
type Fields = Readonly<Record<string, unknown>>;

const plan = (regions: Fields, fields: Fields = {}) => ({
  service_plan: 'startup-4',
  node_count: 1,
  regions,
  ...fields,
});

/** Reads the plans of these service types. */
async function read(
  types: Readonly<Record<string, readonly unknown[]>>,
  clouds: readonly unknown[] = CLOUDS,
  more: Fields = {},
): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  const stated = Object.entries(types).map(([type, service_plans]) => [type, { ...more, service_plans }]);
  upstream.expect({ path: '/v1/clouds' }, { json: { clouds } });
  upstream.expect({ path: '/v1/service_types' }, { json: { service_types: Object.fromEntries(stated) } });
  return await readCatalogue(adapter, upstream.url);
}

const plansIn = (items: readonly CatalogueItem[]) =>
  items.flatMap((item) => (item.kind === 'database-plan' ? [{ region: item.regionCode, ...item.plan }] : []));
const reportsIn = (items: readonly CatalogueItem[]) =>
  items.flatMap((item): readonly string[] => {
    if (item.kind === 'unread-prices') return item.items;
    return item.kind === 'rejected' ? [item.reason] : [];
  });
const GOOD = plan({ [FRANKFURT]: { ...THERE, price_usd: '0.3' } }, { service_plan: 'good' });

describe('the price of a plan of Aiven', () => {
  it.each([
    ['a text', '0.27', '0.27'],
    ['a number', 0.27, '0.27'],
    ['a text with zeros', '0.270000', '0.27'],
  ])('is exact as %s', async (_, price_usd, amount) => {
    const items = await read({ pg: [plan({ [IRELAND]: { ...THERE, price_usd } })] });
    expect(plansIn(items)).toMatchObject([
      { region: IRELAND, price: { amount, per: 'hour', currency: 'USD' } },
    ]);
    expect(reportsIn(items)).toEqual([]);
  });

  it.each<[string, Fields, RegExp]>([
    ['is null', { ...THERE, price_usd: null }, /price_usd must be a decimal amount; it is null$/],
    ['is missing', { node_cpu_count: 2 }, /price_usd is missing; it must be a decimal amount$/],
    ['is negative', { ...THERE, price_usd: '-0.1' }, /price_usd must not be negative/],
    ['is zero', { ...THERE, price_usd: '0.00' }, /price must be a decimal above 0; it is 0 USD per hour$/],
  ])('leaves only its cloud out if it %s', async (_, there, reason) => {
    const items = await read({ pg: [plan({ [IRELAND]: there, [FRANKFURT]: THERE })] });
    expect(plansIn(items)).toMatchObject([{ region: FRANKFURT }]);
    expect(reportsIn(items)).toEqual([expect.stringMatching(reason)]);
  });

  it('is no price of a free plan, which is not reported either', async () => {
    const free = plan({ [IRELAND]: { ...THERE, price_usd: '0' } }, { service_plan: 'free-1-5gb' });
    const paid = plan({ [IRELAND]: THERE }, { service_plan: 'freedom-4' });
    const items = await read({ mysql: [free, paid] });
    expect([plansIn(items).map(({ name }) => name), reportsIn(items)]).toEqual([['freedom-4'], []]);
  });
});

describe('a plan of Aiven', () => {
  it('that is listed twice has its first price', async () => {
    const again = plan({ [IRELAND]: { ...THERE, price_usd: '9' } });
    const items = await read({ pg: [plan({ [IRELAND]: THERE }), again], mysql: [again] });
    expect(plansIn(items).map(({ engine, price }) => [engine, price.amount])).toEqual([
      ['postgresql', '0.27'],
      ['mysql', '9'],
    ]);
    expect(reportsIn(items)).toEqual([expect.stringMatching(/startup-4\/1: is listed twice, also at 9$/)]);
  });

  it('with other numbers of nodes is another plan', async () => {
    const items = await read({ pg: [1, 3].map((node_count) => plan({ [IRELAND]: THERE }, { node_count })) });
    expect(plansIn(items).map(({ nodes, storage }) => [nodes, storage])).toEqual([
      [1, 85.899],
      [3, 85.899],
    ]);
  });

  it.each([
    ['pg', 85.899],
    ['opensearch', 28.633],
    ['clickhouse', null],
  ])('of several nodes of %s has the storage of one, if that is known', async (type, storage) => {
    const items = await read({ [type]: [plan({ [IRELAND]: THERE }, { node_count: 3 })] });
    expect(plansIn(items)).toMatchObject([{ storage }]);
  });

  it('has unknown facts if they cannot be read', async () => {
    const bare = { price_usd: '1', node_cpu_count: 0, node_memory_mb: 'much', disk_space_mb: null };
    const [found] = plansIn(await read({ dragonfly: [plan({ [IRELAND]: bare })] }));
    expect(found).toMatchObject({ engine: 'dragonfly', cpu: null, ram: null, ramUnit: null, storage: null });
  });

  it('in a cloud that is not listed, such as a custom one, is left out', async () => {
    const items = await read({ pg: [GOOD, plan({ 'custom-acme': THERE, [FRANKFURT]: THERE })] });
    expect(plansIn(items).map(({ region }) => region)).toEqual([FRANKFURT, FRANKFURT]);
    expect(reportsIn(items)).toEqual([
      expect.stringMatching(/its cloud custom-acme is not in \/v1\/clouds$/),
    ]);
  });

  it('in an unusable cloud keeps what is stored', async () => {
    const clouds = [{ cloud_name: IRELAND, cloud_description: 'a\nb' }, ...CLOUDS.slice(1)];
    const items = await read({ pg: [GOOD, plan({ [IRELAND]: THERE })] }, clouds);
    expect(items).toContainEqual(expect.objectContaining({ kind: 'unread', regionCode: IRELAND }));
    expect(plansIn(items).map(({ region }) => region)).toEqual([FRANKFURT]);
  });

  it('is listed only if its service is a database', async () => {
    const types = ['kafka', 'pg', 'grafana', 'flink', 'redis', 'constructor'];
    const items = await read(Object.fromEntries(types.map((type) => [type, [GOOD]])));
    expect(plansIn(items).map(({ engine }) => engine)).toEqual(['postgresql', 'redis']);
    await expect(read({ kafka: [GOOD], pg: [] })).rejects.toThrow('/v1/service_types lists nothing');
  });
});

it('a list whose plans are all unusable changes no plan', async () => {
  const items = await read({ pg: [plan({ [IRELAND]: {} })] });
  expect(reportsIn(items)).toEqual(['database_plan', expect.stringContaining('price_usd is missing')]);
});

it('a service type may be larger than an entry of another list', async () => {
  const schema = Array.from({ length: 6 }, () => 'x'.repeat(1_000_000));
  const items = await read({ pg: [GOOD] }, CLOUDS, { user_config_schema: schema });
  expect(plansIn(items)).toHaveLength(1);
});

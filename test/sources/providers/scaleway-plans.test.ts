import { describe, expect, it } from 'vitest';
import type { OfferedPlan } from '../../../src/domain/database-plan.ts';
import { adapter } from '../../../src/sources/providers/scaleway.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { scaleway, scalewayNode } from '../../support/provider-answers.ts';
import { readCatalogue } from './read-catalogue.ts';

const ZONES = ['fr-par-1', 'nl-ams-1'];
const RELATIONAL = 'managed_relational_database';
const REDIS = 'managed_redis_database';
const MONGODB = 'managed_mongodb';

/** Reads a catalogue whose lists of databases are `rows`. A list that is not given has a node that is not sold any more. */
async function read(rows: Readonly<Record<string, readonly unknown[]>>): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  for (const [type, products] of Object.entries(rows))
    upstream.expect(
      {
        path: '/product-catalog/v2alpha1/public-catalog/products',
        query: { product_types: type, page: '1', page_size: '100' },
      },
      { json: { products, total_count: products.length } },
    );
  scaleway(upstream, {}, {}, ZONES);
  return await readCatalogue(adapter, upstream.url);
}

const plansIn = (items: readonly CatalogueItem[]): [region: string, plan: OfferedPlan][] =>
  items.flatMap((item) => (item.kind === 'database-plan' ? [[item.regionCode, item.plan]] : []));
const pricesIn = (items: readonly CatalogueItem[]) =>
  plansIn(items).map(([region, { engine, name, price }]) => [region, engine, name, price.amount, price.per]);
/** What the source reports about plans. */
const reportsIn = (items: readonly CatalogueItem[]) =>
  items.flatMap((item): unknown[] => {
    if (item.kind === 'unread-prices') return [item.items];
    return item.kind === 'rejected' && item.key === 'database plans' ? [item.reason] : [];
  });

/** The type and its memory: data-source-redis-node-types-basic.cassette.yaml@f0872a89 of scaleway/terraform-provider-scaleway. */
const additional = (zone: string) =>
  scalewayNode(REDIS, 'RED1-micro', { zone }, 27_000_000, {
    sku: `/storage/redis/additional-node/RED1-micro/${zone}`,
  });
const main = (zone: string) => scalewayNode(REDIS, 'RED1-micro', { zone }, 48_000_000);

describe('a plan of a managed database of Scaleway', () => {
  // The SKUs: internal/mapping/mapping_test.go@390304dd of alesr/impact.
  it.each([
    ['Redis', REDIS, '/storage/redis/main-node/RED1-micro', 'RED1-micro', 'redis'],
    ['PostgreSQL', RELATIONAL, '/storage/rdb/instance/db-dev-s', 'db-dev-s', 'postgresql'],
  ])('for %s has the name of its node type, which is in the SKU', async (_, type, sku, name, engine) => {
    const rows = ['fr-par-1', 'nl-ams-1'].map((zone) =>
      // The end of a SKU is no locality: those of fr-par-1 may end in par1.
      scalewayNode(type, 'Node', { zone }, 48_000_000, { sku: `${sku}/${zone.replace('fr-par-1', 'par1')}` }),
    );
    const named = pricesIn(await read({ [type]: rows })).filter(([, found]) => found === engine);
    expect(named).toEqual(ZONES.map((zone) => [zone, engine, name, '0.048', 'hour']));
  });

  it('has the name of its product if its SKU has another form, the same in each region', async () => {
    const rows = ['fr-par', 'nl-ams'].map((region) =>
      scalewayNode(MONGODB, 'MGDB-PLAY2-NANO', { region }, 40_000_000),
    );
    expect(pricesIn(await read({ [MONGODB]: rows }))).toEqual(
      ZONES.map((zone) => [zone, 'mongodb', 'MGDB-PLAY2-NANO', '0.04', 'hour']),
    );
  });

  it.each([
    ['first', [additional('nl-ams-1'), main('nl-ams-1')]],
    ['last', [main('nl-ams-1'), additional('nl-ams-1')]],
  ])('for Redis has the price of the main node if the additional one is %s', async (_, rows) => {
    const items = await read({ [REDIS]: rows });
    expect(pricesIn(items)).toEqual([['nl-ams-1', 'redis', 'RED1-micro', '0.048', 'hour']]);
    expect(reportsIn(items)).toEqual([]);
  });

  // The kinds: PublicCatalogProductPropertiesManagedRelationalDatabase of scaleway/scaleway-sdk-python.
  it.each(['management', 'storage', 'multi_az'])('is never a product of the kind %s', async (kind) => {
    const node = scalewayNode(RELATIONAL, 'db-pro2-xxs', { zone: 'nl-ams-1' }, 58_300_000);
    const properties = { ...node.properties, [RELATIONAL]: { [kind]: {} } };
    const other = {
      ...scalewayNode(RELATIONAL, 'db-pro2-xxs', { zone: 'nl-ams-1' }, 51_700_000),
      properties,
    };
    const items = await read({ [RELATIONAL]: [{ ...other, sku: '/other' }, node] });
    expect(pricesIn(items)).toEqual(
      ['postgresql', 'mysql'].map((engine) => ['nl-ams-1', engine, 'db-pro2-xxs', '0.0583', 'hour']),
    );
  });

  it.each([
    [2_000_000_000, 2, 'Decimal'],
    [64_000_000_000, 64, 'Decimal'],
    [2 * 2 ** 30, 2, 'Binary'],
    [1_500_000_000, 1_500_000_000 / 2 ** 30, 'Binary'],
  ])('with %d bytes has %d units of memory, %s', async (size, ram, ramUnit) => {
    const properties = { hardware: { cpu: { virtual: { count: 2 } }, ram: { size } } };
    const row = scalewayNode(REDIS, 'RED1-micro', { zone: 'nl-ams-1' }, 48_000_000, { properties });
    expect(plansIn(await read({ [REDIS]: [row] }))).toMatchObject([['nl-ams-1', { ram, ramUnit }]]);
  });

  it.each([
    ['minute', 1, '0.048', 'minute'],
    ['minute', 60, '0.0008', 'minute'],
    ['hour', 2, '0.024', 'hour'],
  ])('that is sold by the %s has its price for that time', async (unit, size, amount, per) => {
    const row = scalewayNode(REDIS, 'RED1-micro', { zone: 'nl-ams-1' }, 48_000_000, {
      unit_of_measure: { unit, size },
    });
    expect(pricesIn(await read({ [REDIS]: [row] }))).toEqual([
      ['nl-ams-1', 'redis', 'RED1-micro', amount, per],
    ]);
  });
});

// Programs that read the live catalogue of 2026 found retired products without a price.
it('leaves out nodes that are not sold any more, and reports none of them without a price', async () => {
  const { price: _, ...ended } = scalewayNode(REDIS, 'RED1-old', { zone: 'fr-par-1' }, 1, {
    status: 'retired',
  });
  const alone = await read({ [REDIS]: [ended] });
  expect([pricesIn(alone), reportsIn(alone)]).toEqual([[], []]);
  const items = await read({ [REDIS]: [ended, main('fr-par-1')] });
  expect(pricesIn(items)).toEqual([['fr-par-1', 'redis', 'RED1-micro', '0.048', 'hour']]);
  expect(reportsIn(items)).toEqual([]);
});

describe('a list of managed databases of Scaleway without a usable node', () => {
  const stored = scalewayNode(RELATIONAL, 'db-dev-s', { zone: 'fr-par-1' }, 18_700_000);
  const { hardware: _, ...bare } = main('fr-par-1').properties;

  it.each<[string, string, unknown[]]>([
    ['has additional nodes only', REDIS, [additional('fr-par-1')]],
    ['has SKUs of another form', REDIS, [{ ...main('fr-par-1'), sku: '/redis/RED1-micro' }]],
    ['states no hardware', REDIS, [{ ...main('fr-par-1'), properties: bare }]],
    ['has null for its properties', MONGODB, [{ sku: '/1', properties: null }]],
    ['has rows of other types', MONGODB, ['what', 1, null]],
    ['is sold by the month', REDIS, [{ ...main('fr-par-1'), unit_of_measure: { unit: 'month', size: 1 } }]],
  ])('keeps the stored plans and is reported if it %s, while other lists are read', async (_, type, rows) => {
    const items = await read({ [RELATIONAL]: [stored], [type]: rows });
    expect(reportsIn(items)).toEqual([['database_plan'], expect.stringContaining('left out')]);
    expect(pricesIn(items)).toEqual(
      ['postgresql', 'mysql'].map((engine) => ['fr-par-1', engine, 'db-dev-s', '0.0187', 'hour']),
    );
  });

  it('names the list', async () => {
    const [, reason] = reportsIn(await read({ [REDIS]: [additional('fr-par-1')] }));
    expect(reason).toContain('product_types=managed_redis_database: has no usable node among 1 products');
  });

  it('is good if its nodes are not sold any more', async () => {
    expect(reportsIn(await read({}))).toEqual([]);
  });
});

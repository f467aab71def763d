/** Plans of managed databases: they are checked, stored with a history, published, guarded, held and undone with their batch. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { heldItems, pendingBatches } from '../../../src/db/held-batches.ts';
import { acceptPrice } from '../../../src/db/prices/prices.ts';
import type { OfferedPlan } from '../../../src/domain/database-plan.ts';
import { readColumns } from '../../../src/snapshot/document/columns.ts';
import { loadContent, loadRegion, loadRegionVersions } from '../../../src/snapshot/document/load.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { saveCatalogue } from '../../../src/sync/catalogue/held-items.ts';
import { adoptCurrency } from '../../../src/sync/currency.ts';
import { retireSource } from '../../../src/sync/runs/retire-source.ts';
import { ACME, OPERATOR, offer, offers, openScene, region, type Scene } from '../scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const PLAN: OfferedPlan = {
  engine: 'postgresql',
  // A machine has this name too.
  name: 'x',
  nodes: 3,
  cpu: 2,
  ram: 4,
  ramUnit: 'Binary',
  storage: 80.5,
  price: { amount: '0.06', per: 'hour', currency: 'USD' },
};
const BARE: OfferedPlan = {
  ...PLAN,
  name: 'bare',
  nodes: null,
  cpu: null,
  ram: null,
  ramUnit: null,
  storage: null,
};
const priced = (amount: string, plan = PLAN): OfferedPlan => ({ ...plan, price: { ...plan.price, amount } });
const item = (plan: OfferedPlan, regionCode = 'a'): CatalogueItem => ({
  kind: 'database-plan',
  regionCode,
  plan,
});
const machines = [region('a'), region('b'), offer('a', 'x'), offer('b', 'x')];
const batch = (...plans: OfferedPlan[]) => [...machines, ...plans.map((plan) => item(plan))];
const many = (count: number, amount = '0.06') =>
  Array.from({ length: count }, (_, i) =>
    priced(amount, { ...PLAN, name: `p${String(i + 1).padStart(2, '0')}` }),
  );

const published = async (regionId = 1) => {
  const { columns } = (await loadRegion(scene.store.sql, regionId)) ?? expect.unreachable();
  return readColumns(columns.body)?.databases?.map(({ id, name, price }) => [id, name, price]);
};
const version = async () => (await scene.sql`select version::int from regions where code = 'a'`)[0]?.version;
const history = (id = 1) =>
  scene.sql`select source_amount as amount, trim_scale(price) as price, to_char(valid_from, 'HH24') as from,
    to_char(valid_to, 'HH24') as to from database_plan_prices where plan_id = ${id} order by valid_from`;
const quarantine = () =>
  scene.sql`select row_key as key, code, reason from quarantined_rows order by row_key collate "C"`;

describe('plans of databases', () => {
  it('are published per minute with what is known, and leave the documents of the contract as they are', async () => {
    await scene.catalogue(machines);
    const names = [{ kind: 'region', regionId: 1 }, { kind: 'providers' }] as const;
    const contract = () =>
      Promise.all(names.map(async (name) => (await loadContent(scene.store.sql, name))?.body.toString()));
    const before = await contract();
    expect(await scene.catalogue(batch(PLAN, BARE))).toMatchObject({
      outcome: 'changed',
      counts: { seen: 2, added: 0 },
    });
    expect(await contract()).toEqual(before);
    const { columns } = (await loadRegion(scene.store.sql, 1)) ?? expect.unreachable();
    const { price: _, ...facts } = PLAN;
    const { price: __, ...unknown } = BARE;
    expect(readColumns(columns.body)?.databases).toEqual([
      { id: 1, ...unknown, price: '0.001' },
      { id: 2, ...facts, price: '0.001' },
    ]);
    expect(await published(2)).toBeUndefined();
  });

  it('have a history, and raise the version of their region only if they change', async () => {
    await scene.catalogue(batch(PLAN));
    const first = await version();
    expect(await scene.catalogue(batch(PLAN))).toMatchObject({ outcome: 'unchanged' });
    expect(await version()).toBe(first);
    expect(await scene.catalogue(batch(priced('0.12')))).toMatchObject({ outcome: 'changed' });
    expect(await version()).toBe(first + 1);
    // Another fact is no other price.
    await scene.catalogue(batch({ ...priced('0.12'), storage: null }));
    expect(await history()).toEqual([
      { amount: '0.06', price: '0.001', from: '01', to: '03' },
      { amount: '0.12', price: '0.002', from: '03', to: null },
    ]);
  });

  it('that are gone are retired, and keep their id if they return', async () => {
    await scene.catalogue(batch(...many(10), PLAN));
    await scene.catalogue(batch(...many(10)));
    expect(await published()).toHaveLength(10);
    await scene.catalogue(batch(...many(10), PLAN));
    expect((await published())?.at(-1)).toEqual([11, 'x', '0.001']);
    expect(await history(11)).toMatchObject([
      { from: '01', to: '02' },
      { from: '03', to: null },
    ]);
    await retireSource(scene.store, 'acme', scene.now().toISOString(), OPERATOR);
    expect(await published()).toBeUndefined();
    expect((await history(11)).at(-1)).toMatchObject({ to: '03' });
  });

  it('stay if they could not be read, or their region could not', async () => {
    await scene.catalogue([...batch(PLAN), item(PLAN, 'b')]);
    const unread: CatalogueItem = { kind: 'unread-prices', items: ['database_plan'] };
    expect(await scene.catalogue([...machines, unread])).toMatchObject({ outcome: 'unchanged', broken: [] });
    const partly: CatalogueItem[] = [
      region('a'),
      offer('a', 'x'),
      item(PLAN),
      { kind: 'unread', regionCode: 'b', reason: 'r' },
    ];
    await scene.catalogue(partly);
    expect([await published(1), await published(2)]).toEqual([[[1, 'x', '0.001']], [[2, 'x', '0.001']]]);
  });

  it('belong to the source that states them: another one of the provider does not retire them', async () => {
    await scene.catalogue([...batch(...many(5)), offer('a', 'm')]);
    await scene.catalogue([region('a'), offer('a', 'n'), item(PLAN)], { source: 'other' });
    expect(await published()).toHaveLength(6);
  });

  it('follow an exchange rate, and a new published currency, without a row of history', async () => {
    const euro = { ...PLAN, price: { ...PLAN.price, currency: 'EUR' } };
    expect(await scene.catalogue(batch(euro))).toMatchObject({ outcome: 'changed' });
    expect(await published()).toBeUndefined();
    await scene.catalogue(batch(euro), { rates: { EUR: '1' } });
    await scene.catalogue(batch(euro), { rates: { EUR: '2' } });
    expect(await published()).toEqual([[1, 'x', '0.002']]);
    expect(await history()).toHaveLength(1);
    await scene.sql`update lineage set currency = 'USD'`;
    const settings = { CATALOGUE_CURRENCY: 'CHF', CATALOGUE_RATES: { USD: '1', EUR: '3' } };
    expect(await adoptCurrency(scene.store, settings, scene.now())).toMatchObject({ outcome: 'changed' });
    expect(await published()).toEqual([[1, 'x', '0.003']]);
  });
});

it.each<[string, Partial<OfferedPlan>, string]>([
  [
    'of an engine without a name',
    { engine: 'Post gres' },
    'engine must be a name in lower case; it is "Post gres"',
  ],
  ['of no nodes', { nodes: 0 }, 'nodes must be a whole number above 0; it is 0'],
  ['of half a cpu', { cpu: 0.5 }, 'cpu must be a whole number above 0; it is 0.5'],
  ['of no memory', { ram: 0 }, 'ram must be above 0; it is 0'],
  ['of memory without a unit', { ramUnit: null }, 'ram must be above 0; it is 4'],
  ['of negative storage', { storage: -1 }, 'storage must not be negative; it is -1'],
  ['for nothing', { price: priced('0').price }, 'price must be a decimal above 0; it is 0 USD per hour'],
  [
    'for less than nothing',
    { price: priced('-1').price },
    'price must be a decimal above 0; it is -1 USD per hour',
  ],
  [
    'that are too dear',
    { price: priced('1000.01').price },
    'price 1000.01 USD per hour is above the limit maxHourlyPrice; a unit may have changed',
  ],
])('plans %s are rejected, and the stored one stays', async (_, bad, reason) => {
  await scene.catalogue(batch(PLAN));
  const before = await published();
  const after = await scene.catalogue(batch({ ...PLAN, ...bad }, PLAN).slice(0, -1));
  expect(after).toMatchObject({ broken: [] });
  expect(await quarantine()).toMatchObject([{ code: 'invalid', reason }]);
  // Another engine or count of nodes is another plan.
  if (bad.engine === undefined && bad.nodes === undefined) expect(await published()).toEqual(before);
});

it('plans of an unknown region, and repeated ones, are rejected', async () => {
  await scene.catalogue([...batch(PLAN, PLAN), item(PLAN, 'z')]);
  expect(await quarantine()).toMatchObject([
    { key: 'a/database/postgresql/x/3', code: 'duplicate' },
    { key: 'z/database/postgresql/x/3', code: 'unknown_region' },
  ]);
  expect(await published()).toHaveLength(1);
});

describe('the guard of plans', () => {
  it('sets few jumps aside until an operator accepts them', async () => {
    await scene.catalogue(batch(PLAN, ...many(20)));
    const jump = batch(priced('0.6'), ...many(20));
    expect(await scene.catalogue(jump)).toMatchObject({ outcome: 'unchanged', broken: [] });
    const key = 'a/database/postgresql/x/3';
    expect(await quarantine()).toMatchObject([{ key, code: 'price_jump' }]);
    const accepted = await acceptPrice(scene.store.db, 'acme', key, '0.6', OPERATOR);
    expect(accepted).toMatchObject({ outcome: 'accepted' });
    expect(await scene.catalogue(jump)).toMatchObject({ outcome: 'changed', rejected: [] });
    expect(await published()).toContainEqual([21, 'x', '0.01']);
  });

  it('holds a batch with many jumps, and an approval stores it', async () => {
    await scene.catalogue(batch(...many(20)));
    const jumps = batch(...many(20, '0.6'));
    const held = await scene.catalogue(jumps);
    const detail =
      '20 of 20 rows would change the price of a database plan by more than a factor of 5, one by 10.0';
    expect(held).toMatchObject({ outcome: 'held', broken: [{ guard: 'price_ratio', detail }] });
    expect((await published())?.[0]).toEqual([1, 'p01', '0.001']);
    await scene.catalogue(jumps, { approved: true });
    expect((await published())?.[0]).toEqual([1, 'p01', '0.01']);
  });

  it('holds a batch that loses many plans, whatever the machines do', async () => {
    await scene.catalogue([...batch(...many(10)), ...offers('b', 100)]);
    const held = await scene.catalogue([...batch(...many(7)), ...offers('b', 100)]);
    const detail = '3 of 10 known database plans are not reported any more (30 %, limit 20 %)';
    expect(held).toMatchObject({ outcome: 'held', broken: [{ guard: 'removed', detail }] });
    expect(await published()).toHaveLength(10);
    // Without any plan, but read, the batch is held too.
    expect(await scene.catalogue([...machines, ...offers('b', 100)])).toMatchObject({ outcome: 'held' });
  });

  it('does not count plans as machines: many plans do not hide lost machines', async () => {
    await scene.catalogue([...batch(...many(200)), ...offers('b', 10)]);
    const held = await scene.catalogue(batch(...many(200)));
    expect(held).toMatchObject({ outcome: 'held', broken: [{ guard: 'removed' }] });
  });
});

describe('a source with plans and no machines', () => {
  const alone = (...plans: OfferedPlan[]) => [region('a'), ...plans.map((plan) => item(plan))];
  const listing = async () => {
    const content = (await loadContent(scene.store.sql, { kind: 'providers' })) ?? expect.unreachable();
    return [JSON.parse(content.body.toString()), [...content.index.keys()]];
  };
  const read = () =>
    scene.sql`select r.code, to_char(f.verified_at, 'HH24') as at from region_freshness f join regions r on r.id = f.region_id`;

  it('publishes and counts them, and the list of providers omits its provider', async () => {
    const counts = { seen: 1, added: 1, changed: 0, retired: 0 };
    expect(await scene.catalogue(alone(PLAN))).toMatchObject({ outcome: 'changed', broken: [], counts });
    expect(await published()).toEqual([[1, 'x', '0.001']]);
    // Readers find the document of the region by its key.
    expect(await listing()).toEqual([[], ['77/1']]);
    expect(await loadRegionVersions(scene.store.sql)).toEqual(new Map([[1, await version()]]));
    expect(await scene.catalogue(alone(PLAN))).toMatchObject({ outcome: 'unchanged' });
    expect(await scene.catalogue(alone(BARE))).toMatchObject({ counts: { ...counts, retired: 1 } });
    expect(await scene.catalogue(alone(BARE, PLAN))).toMatchObject({ counts: { added: 0, changed: 1 } });
  });

  it('is listed once it has a machine', async () => {
    await scene.catalogue(alone(PLAN));
    const before = (await loadContent(scene.store.sql, { kind: 'providers' }))?.version ?? 0;
    await scene.catalogue(batch(PLAN));
    expect(await listing()).toMatchObject([
      [{ id: 77, regions: [{ code: 'a' }, { code: 'b' }] }],
      ['77/1', '77/2'],
    ]);
    expect((await loadContent(scene.store.sql, { kind: 'providers' }))?.version).toBeGreaterThan(before);
  });

  it('is held without a usable plan', async () => {
    for (const empty of [[region('a')], alone(priced('0')), [item(PLAN, 'z')]])
      expect(await scene.catalogue(empty)).toMatchObject({ outcome: 'held', broken: [{ guard: 'empty' }] });
    await scene.catalogue(alone(PLAN));
    expect(await scene.catalogue([region('a')])).toMatchObject({ outcome: 'held' });
    expect(await published()).toHaveLength(1);
  });

  it('is held if it had a machine', async () => {
    await scene.catalogue([region('a'), offer('a', 'x'), item(PLAN)]);
    const held = await scene.catalogue(alone(PLAN));
    expect(held).toMatchObject({ outcome: 'held', broken: [{ guard: 'empty' }] });
    // An approval retires the machine, and the run counts it.
    const approved = await scene.catalogue(alone(PLAN), { approved: true });
    expect(approved).toMatchObject({ outcome: 'changed', counts: { seen: 0, retired: 1 } });
  });

  it('has read a region whose plan jumps', async () => {
    await scene.catalogue(alone(PLAN, ...many(20)));
    expect(await scene.catalogue(alone(priced('0.6'), ...many(20)))).toMatchObject({ outcome: 'unchanged' });
    expect(await quarantine()).toMatchObject([{ code: 'price_jump' }]);
    expect(await read()).toEqual([{ code: 'a', at: '02' }]);
  });
});

it('plans are part of a held batch, also that they could not be read, and of the state before an approval', async () => {
  await scene.catalogue([...batch(PLAN, BARE), ...offers('a', 20)]);
  const unread: CatalogueItem = { kind: 'unread-prices', items: ['ipv4'] };
  const next = [...batch(priced('0.07')), unread];
  expect(await scene.catalogue(next)).toMatchObject({ outcome: 'held' });
  const [held] = await pendingBatches(scene.store.db);
  const id = held?.id ?? 0;
  const itemsOf = async (...kinds: string[]) => {
    const items: CatalogueItem[] = [];
    for await (const each of heldItems(scene.store.db, id)) items.push(each as CatalogueItem);
    return items.filter(({ kind }) => kinds.includes(kind));
  };
  expect(await itemsOf('database-plan', 'unread-prices')).toEqual([item(priced('0.07')), unread]);
  await using connection = scene.store.connection();
  await saveCatalogue(
    connection.db,
    { batchId: id, kind: 'approve', decider: OPERATOR },
    { id: 'acme', provider: ACME },
  );
  const before = await itemsOf('database-plan');
  expect(before).toEqual(expect.arrayContaining([item(PLAN), item(BARE)]));
  expect(before).toHaveLength(2);
});

/** The price of a cluster's machine when the cluster was created, as syncs store it. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { changeCurrency } from '../../../src/db/prices/currency.ts';
import { seedProviders } from '../../../src/db/providers.ts';
import { ACME, offer, openScene, region, type Scene } from '../scene.ts';
import { cluster } from './rows.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await scene.reset();
  await scene.organization('org');
});

/** Stores the price of an hour of `small`, at the next full hour of the scene's clock. */
const price = (amount: string, cap?: string) =>
  scene.catalogue([
    region('a'),
    offer('a', 'small', { amount, ...(cap === undefined ? {} : { monthlyCap: cap }) }),
    offer('a', 'big', { cpu: 8, ram: 16, amount: '0.6' }),
  ]);
const created = (key: string, createdAt: string, name = 'small') =>
  cluster(key, { createdAt, machine: { name } });
const at = (hour: number, minutes = 0) =>
  new Date(Date.UTC(2026, 0, 1, hour, minutes)).toISOString().slice(0, -1);

interface Stored {
  readonly key: string;
  readonly price: number | null;
  readonly reason: string | null;
  readonly asOf: string;
}
const stored = async () => {
  const rows = await scene.sql<Stored[]>`
    select source_key as key, round(creation_price * 60, 6)::float as price, creation_reason as reason,
      to_char(creation_as_of at time zone 'UTC', 'HH24:MI') as "asOf" from clusters order by source_key`;
  return rows.map((row) => ({ ...row }));
};
const version = async () => {
  const [row] = await scene.sql<
    { version: number }[]
  >`select clusters_version::int as version from organizations`;
  return row?.version;
};
/** From this hour on, Acme leaves existing machines at their price. */
const keepsPrices = (hour: number | undefined) =>
  seedProviders(scene.store.db, [
    { ...ACME, ...(hour !== undefined && { keepsPricesSince: `${at(hour)}Z` }) },
  ]);

describe('the price of a cluster at its creation', () => {
  it('is the one in force then, from the history', async () => {
    for (const amount of ['0.06', '0.12', '0.18']) await price(amount);
    await scene.clusters([
      created('before', at(0, 30)),
      created('first', at(1, 30)),
      created('second', at(2)),
      created('third', at(3, 30)),
      created('tomorrow', at(30)),
    ]);
    expect(await stored()).toEqual([
      { key: 'before', price: null, reason: 'before_history', asOf: '00:30' },
      { key: 'first', price: 0.06, reason: null, asOf: '01:30' },
      { key: 'second', price: 0.12, reason: null, asOf: '02:00' },
      { key: 'third', price: 0.18, reason: null, asOf: '03:30' },
      // A creation in the future counts as one of the run.
      { key: 'tomorrow', price: 0.18, reason: null, asOf: '04:00' },
    ]);
  });

  it('stays when prices change, and when the cluster changes otherwise', async () => {
    await price('0.06');
    await scene.clusters([created('one', at(1, 30))]);
    await price('0.12');
    const before = await version();
    expect(await scene.clusters([created('one', at(1, 30))])).toMatchObject({ outcome: 'unchanged' });
    expect(await version()).toBe(before);
    await scene.clusters([cluster('one', { createdAt: at(1, 30), machine: { name: 'small' }, shards: 7 })]);
    expect(await stored()).toEqual([{ key: 'one', price: 0.06, reason: null, asOf: '01:30' }]);
  });

  it('is that of the change for another machine, and that of the creation for a cluster that was created again', async () => {
    await price('0.06');
    await scene.clusters([created('resized', at(1, 30)), created('again', at(1, 30))]);
    await price('0.12');
    await scene.clusters([created('resized', at(1, 30), 'big'), created('again', at(3, 15))]);
    expect(await stored()).toEqual([
      { key: 'again', price: 0.12, reason: null, asOf: '03:15' },
      { key: 'resized', price: 0.6, reason: null, asOf: '04:00' },
    ]);
  });

  it('follows a creation that the source corrects, unless the machine is another one since then', async () => {
    for (const amount of ['0.06', '0.12']) await price(amount);
    const first = [created('one', at(2, 30)), created('resized', at(2, 30)), created('future', at(30))];
    await scene.clusters(first);
    await scene.clusters([
      created('one', at(2, 30)),
      created('resized', at(2, 30), 'big'),
      created('future', at(30)),
    ]);
    await scene.clusters([
      created('one', at(1, 30)),
      created('resized', at(1, 30), 'big'),
      created('future', at(1, 30)),
    ]);
    expect(await stored()).toEqual([
      { key: 'future', price: 0.06, reason: null, asOf: '01:30' },
      { key: 'one', price: 0.06, reason: null, asOf: '01:30' },
      { key: 'resized', price: 0.6, reason: null, asOf: '04:00' },
    ]);
  });

  it('stays for a creation in the future when the cluster changes otherwise', async () => {
    await price('0.06');
    await scene.clusters([created('one', at(30))]);
    await price('0.12');
    await scene.clusters([cluster('one', { createdAt: at(30), machine: { name: 'small' }, shards: 7 })]);
    expect(await stored()).toEqual([{ key: 'one', price: 0.06, reason: null, asOf: '02:00' }]);
  });

  it('is unknown for a machine that no catalogue lists, until one does', async () => {
    await seedProviders(scene.store.db, [ACME]);
    await scene.clusters([
      cluster('one', { createdAt: at(0, 30), machine: { name: 'small', cpu: 2, ram: 4, ramUnit: 'Binary' } }),
    ]);
    expect(await stored()).toEqual([{ key: 'one', price: null, reason: 'not_listed', asOf: '00:30' }]);
    await price('0.06');
    await scene.clusters([
      cluster('one', { createdAt: at(0, 30), machine: { name: 'small', cpu: 2, ram: 4, ramUnit: 'Binary' } }),
    ]);
    expect(await stored()).toEqual([{ key: 'one', price: null, reason: 'before_history', asOf: '00:30' }]);
  });

  it('has another reason once a catalogue of its region lists the machine', async () => {
    const shape = { cpu: 3, ram: 6, ramUnit: 'Binary' } as const;
    const one = cluster('one', { createdAt: at(0, 30), machine: { name: 'legacy', ...shape } });
    await price('0.06');
    await scene.clusters([one]);
    expect(await stored()).toEqual([{ key: 'one', price: null, reason: 'not_listed', asOf: '00:30' }]);
    await scene.catalogue([region('a'), offer('a', 'small'), offer('a', 'big'), offer('a', 'legacy', shape)]);
    const before = await version();
    await scene.clusters([one]);
    expect(await stored()).toEqual([{ key: 'one', price: null, reason: 'before_history', asOf: '00:30' }]);
    expect(await version()).toBe((before ?? 0) + 1);
    await scene.clusters([one]);
    expect(await version()).toBe((before ?? 0) + 1);
  });

  it('is unknown while the machine had no price', async () => {
    await price('0.06');
    await price('0');
    await price('0.06');
    await scene.clusters([created('one', at(2, 30))]);
    expect(await stored()).toEqual([{ key: 'one', price: null, reason: 'no_price', asOf: '02:30' }]);
  });

  it('has the monthly cap of the same time', async () => {
    await price('0.06', '30');
    await price('0.12', '60');
    await scene.clusters([created('one', at(1, 30)), created('two', at(2, 30))]);
    expect(
      await scene.sql`select source_key as key, creation_cap::float as cap from clusters order by source_key`,
    ).toMatchObject([
      { key: 'one', cap: 30 },
      { key: 'two', cap: 60 },
    ]);
  });
});

describe('a provider that leaves existing machines at their price', () => {
  it('has changed the prices of all before: an older cluster has the last price before', async () => {
    for (const amount of ['0.06', '0.12', '0.18']) await price(amount);
    // The price of 03:00 is the first that existing machines do not get.
    await keepsPrices(3);
    await scene.clusters([created('old', at(1, 30)), created('new', at(3))]);
    expect(await stored()).toEqual([
      { key: 'new', price: 0.18, reason: null, asOf: '03:00' },
      { key: 'old', price: 0.12, reason: null, asOf: '03:00' },
    ]);
  });

  it('gets its rule later: the next run stores the prices, and organizations get a new version', async () => {
    for (const amount of ['0.06', '0.12', '0.18']) await price(amount);
    await scene.clusters([created('old', at(1, 30))]);
    expect(await stored()).toMatchObject([{ price: 0.06 }]);
    const [first] = [await version()];
    await keepsPrices(3);
    const second = await version();
    expect(second).toBe((first ?? 0) + 1);
    await keepsPrices(3);
    expect(await version()).toBe(second);
    await scene.clusters([created('old', at(1, 30))]);
    expect(await stored()).toMatchObject([{ price: 0.12, asOf: '03:00' }]);
    const third = await version();
    expect(third).toBeGreaterThan(second ?? 0);
    await keepsPrices(undefined);
    await scene.clusters([created('old', at(1, 30))]);
    expect(await stored()).toMatchObject([{ price: 0.06, asOf: '01:30' }]);
  });

  it('has announced its rule: it counts from then on', async () => {
    await price('0.06');
    await keepsPrices(20);
    await scene.clusters([created('old', at(1, 30))]);
    expect(await stored()).toMatchObject([{ price: 0.06, asOf: '01:30' }]);
  });
});

it('is converted with the history if the published currency changes', async () => {
  await price('0.06');
  await scene.clusters([created('one', at(1, 30))]);
  await using connection = scene.store.connection();
  const perMinute = { hour: 60, minute: 1, month: 43_800 };
  await changeCurrency(
    connection.db,
    'EUR',
    ({ amount, per }) => String((Number(amount) / perMinute[per]) * 0.5),
    { terms: (stored) => stored, regionPrices: (stored) => stored },
  );
  expect(await stored()).toEqual([{ key: 'one', price: 0.03, reason: null, asOf: '01:30' }]);
});

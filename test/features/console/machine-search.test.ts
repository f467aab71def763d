/** The search of machines for operators, compared with the whole table. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore, type Store } from '../../../src/db/connection/connect.ts';
import {
  type FoundMachine,
  MACHINE_SORTS,
  type MachineSearch,
  type MachineSort,
  machinePoints,
  searchMachines,
} from '../../../src/features/console/queries/machines.ts';
import { createDatabase } from '../../support/postgres.ts';

/** Region → country. The other regions have none. */
const COUNTRIES: Readonly<Record<string, string>> = { north: 'DE', south: 'FR' };

const opened = new AsyncDisposableStack();
let store: Store;
let providers: readonly number[];

beforeAll(async () => {
  const database = opened.use(await createDatabase());
  store = opened.use(openStore({ url: database.url, role: 'worker', connections: 2 }));
  const made = await store.sql<{ id: number }[]>`
    insert into providers (name, listed) values ('One', true), ('Two', true) returning id`;
  providers = made.map(({ id }) => id);
  // One organization has its own region.
  await store.sql`
    with own as (insert into organizations (slug, name) values ('own', 'Own') returning id)
    insert into regions (provider_id, code, name, organization_id)
    select id, code, code, null::int from providers, unnest(array['north', 'south', 'west']) code
    where name in ('One', 'Two')
    union all select ${providers[0] ?? 0}, 'private', 'private', own.id from own`;
  for (const [code, country] of Object.entries(COUNTRIES))
    await store.sql`update regions set country = ${country} where code = ${code}`;
  await store.sql`
    insert into machines (region_id, name, cpu, ram, ram_unit, price, excluded_reason, retired_at)
    select r.id, (array['General', 'compute', 'ÜBER'])[1 + n % 3] || '-' || n, (array[1, 2, 4])[1 + n % 3],
      (array[2, 4, 8, 16])[1 + n % 4], (array['Binary', 'Decimal'])[1 + n % 2],
      case when n % 10 = 0 then null else (1 + (n * 7919 + r.id) % 101) / 6000.0 end,
      case when n % 5 = 0 then 'discontinued' end, case when n % 13 = 0 then now() end
    from regions r, generate_series(1, 70) n`;
});
afterAll(() => opened.disposeAsync());

const WIDE: MachineSearch = { published: 'all', sort: 'price', descending: false, limit: 40, offset: 0 };

const searches = (): [what: string, search: Partial<MachineSearch>][] => {
  const providerId = providers[0] ?? 0;
  return [
    ['all of them', {}],
    ['the published', { published: 'yes' }],
    ['the excluded', { published: 'no' }],
    ['a provider', { providerId }],
    ['a region', { region: 'south' }],
    ['the region of one organization', { region: 'private' }],
    ['countries', { countries: ['FR', 'US'] }],
    ['a part of a name', { text: 'GENERAL-1' }],
    ['a part of a name, in a place', { text: 'compute', providerId, region: 'north', published: 'yes' }],
    ['a part of a name that is not of English letters', { text: 'über' }],
    ['a part of no name', { text: 'nothing' }],
    ['sizes', { minCpu: 2, maxCpu: 2, minRam: 4, maxRam: 8 }],
    ['sizes, and a part of a name', { minRam: 8, text: 'e', published: 'no' }],
    ['a later page', { offset: 37 }],
  ];
};

interface Stored extends FoundMachine {
  /** In the order of provider, region, name and id. */
  readonly place: number;
}

/** The expected result: the whole table, filtered and sorted here. */
async function expected(search: MachineSearch): Promise<Stored[]> {
  const stored = await store.sql<Stored[]>`
    select m.id, m.name, p.name as provider, p.id as "providerId", r.code as region, m.cpu, m.ram::float as ram,
      m.ram_unit as "ramUnit", m.price::float as price, m.excluded_reason as "excludedReason",
      row_number() over (order by p.name, r.code, m.name, m.id)::int as place
    from machines m join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
    where m.retired_at is null`;
  const countries = new Set(search.countries);
  const { text, providerId, region, published, minCpu = 0, maxCpu = 99, minRam = 0, maxRam = 99 } = search;
  const keys = (machine: Stored) => keysOf(machine, search.sort);
  return stored
    .filter(
      ({ name, excludedReason, cpu, ram, ...rest }) =>
        (text === undefined || name.toLowerCase().includes(text.toLowerCase())) &&
        (providerId === undefined || rest.providerId === providerId) &&
        (region === undefined || rest.region === region) &&
        (search.countries === undefined || countries.has(COUNTRIES[rest.region] ?? '')) &&
        (published === 'all' || (published === 'yes') === (excludedReason === null)) &&
        cpu >= minCpu &&
        cpu <= maxCpu &&
        ram >= minRam &&
        ram <= maxRam,
    )
    .sort((a, b) => compare(keys(a), keys(b), search.descending));
}

function keysOf({ id, price, cpu, ram, ramUnit, place }: Stored, sort: MachineSort): (number | null)[] {
  const gigabytes = ram * (ramUnit === 'Binary' ? 1.073741824 : 1);
  switch (sort) {
    case 'price':
      return [price, id];
    case 'price_per_cpu':
      return [price && price / cpu, id];
    case 'price_per_gb':
      return [price && price / gigabytes, id];
    case 'cpu':
      return [cpu, price, id];
    case 'ram':
      return [gigabytes, price, id];
    case 'region':
      return [place];
  }
}

/** Nulls come last in both directions. */
function compare(a: (number | null)[], b: (number | null)[], descending: boolean): number {
  for (const [i, one] of a.entries()) {
    const other = b[i] ?? null;
    if (one === other) continue;
    if (one === null || other === null) return one === null ? 1 : -1;
    return descending ? other - one : one - other;
  }
  return 0;
}

describe('machines are found', () => {
  for (const sort of MACHINE_SORTS)
    for (const descending of [false, true])
      it(`in the order of ${sort}, ${descending ? 'descending' : 'ascending'}`, async () => {
        for (const [what, more] of searches()) {
          const search: MachineSearch = { ...WIDE, sort, descending, ...more };
          const wanted = await expected(search);
          const found = await searchMachines(store.db, search);
          const ids = wanted.map(({ id }) => id).slice(search.offset, search.offset + search.limit);
          expect(
            found.rows.map(({ id }) => id),
            what,
          ).toEqual(ids);
          expect([found.total, found.isMore], what).toEqual([wanted.length, false]);
          if (what !== 'a part of no name') expect(found.total, what).toBeGreaterThan(0);
        }
      });

  it('as in the whole table', async () => {
    const found = await searchMachines(store.db, { ...WIDE, limit: 1000, text: 'über', published: 'yes' });
    const fitting = await store.sql<{ id: number }[]>`
      select id from machines where retired_at is null and excluded_reason is null and name like 'ÜBER%'
      order by price, id`;
    expect(found.rows.map(({ id }) => id)).toEqual(fitting.map(({ id }) => id));
    expect(found.total).toBe(fitting.length);
  });

  it('by names of new machines, whichever statement adds them', async () => {
    const [region] = await store.sql<{ id: number }[]>`select id from regions order by id limit 1`;
    for (const name of ['Quite-New', 'Quite-New', 'quite-other'])
      await store.sql`
        insert into machines (region_id, name, cpu, ram, ram_unit, excluded_reason)
        values (${region?.id ?? 0}, ${name} || (select count(*) from machines), 1, 2, 'Binary', 'discontinued')`;
    const { rows } = await searchMachines(store.db, { ...WIDE, text: 'quite-' });
    expect(rows.map(({ name }) => name.replace(/\d+$/, ''))).toEqual([
      'Quite-New',
      'Quite-New',
      'quite-other',
    ]);
  });
});

describe('points of price against size', () => {
  const ids = (found: { points: readonly { id: number }[] }) => found.points.map(({ id }) => id);

  it('are all machines with a price, if they are few', async () => {
    const found = await machinePoints(store.db, WIDE);
    const priced = await store.sql<{ id: number }[]>`
      select id from machines where retired_at is null and price is not null order by id`;
    expect(ids(found)).toEqual(priced.map(({ id }) => id));
    expect(found.isSample).toBe(false);
  });

  it('are limited, and the same each time', async () => {
    for (const [what, more] of searches()) {
      const search: MachineSearch = { ...WIDE, limit: 1000, ...more, offset: 0 };
      const all = (await searchMachines(store.db, search)).rows.filter(({ price }) => price !== null);
      const found = await machinePoints(store.db, search, 48);
      expect(found.points.length, what).toBeLessThanOrEqual(48);
      expect(ids(await machinePoints(store.db, search, 48)), what).toEqual(ids(found));
      const known = new Set(all.map(({ id }) => id));
      for (const { id } of found.points) expect(known.has(id), what).toBe(true);
      if (!found.isSample) continue;
      // The cheapest and the dearest of each size.
      const sizes = Map.groupBy(all, ({ cpu, ram, ramUnit }) => `${cpu} ${ram} ${ramUnit}`);
      const shown = Map.groupBy(found.points, ({ cpu, ram, ramUnit }) => `${cpu} ${ram} ${ramUnit}`);
      for (const [size, machines] of sizes) {
        const prices = (of: readonly { price: number | null }[] = []) => of.map(({ price }) => price ?? 0);
        const [here, there] = [prices(shown.get(size)), prices(machines)];
        expect(Math.min(...here), `${what}, ${size}`).toBe(Math.min(...there));
        if (48 / sizes.size >= 4) expect(Math.max(...here), `${what}, ${size}`).toBe(Math.max(...there));
      }
    }
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type {
  FoundMachine,
  MachineAnswer,
  MachinesAnswer,
  PlacesAnswer,
  PointsAnswer,
} from '../../../src/features/console/routes/answers.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

let scene: ConsoleScene;
beforeAll(async () => {
  scene = await openConsoleScene();
  await scene.sync(1);
  // Two providers with machines of few sizes and many prices. Some have no price, some are excluded, some retired.
  await scene.worker.store.sql`
    with more as (
      insert into providers (name, listed) values ('Another', true), ('Bigger', true) returning id, name
    ), places as (
      insert into regions (provider_id, code, name) select id, code, code from more, unnest(array['north', 'south']) code
      returning id
    )
    insert into machines (region_id, name, cpu, ram, ram_unit, price, excluded_reason, retired_at)
    select id, 'Type-' || n, (array[1, 2, 4])[1 + n % 3], (array[2, 4, 8, 16])[1 + n % 4],
      (array['Binary', 'Decimal'])[1 + n % 2], case when n % 10 = 0 then null else (1 + (n * 7919) % 101) / 6000.0 end,
      case when n % 5 = 0 then 'discontinued' end, case when n % 13 = 0 then now() end
    from places, generate_series(1, 60) n`;
});
afterAll(() => scene[Symbol.asyncDispose]());

const search = async (query = '') => (await scene.get(`/api/machines?limit=1000${query}`)) as MachinesAnswer;
const bytes = ({ ram, ramUnit }: FoundMachine) => ram * (ramUnit === 'Binary' ? 1.073741824 : 1);

/** The value of each sort key; null comes last. */
const KEYS: Readonly<Record<string, (machine: FoundMachine) => number | string | null>> = {
  price: ({ price }) => price,
  price_per_cpu: ({ pricePerCpu }) => pricePerCpu,
  price_per_gb: ({ pricePerGb }) => pricePerGb,
  cpu: ({ cpu }) => cpu,
  ram: bytes,
  region: ({ provider, region }) => `${provider} ${region}`,
};

const SORTS = Object.keys(KEYS).flatMap((sort) => [
  [sort, 'asc'],
  [sort, 'desc'],
]);

describe('the catalogue in the console', () => {
  it('shows the published machines, the cheapest first', async () => {
    const { rows, total, isMore, currency } = await search();
    expect([total, isMore, currency]).toEqual([rows.length, false, 'EUR']);
    expect(rows.filter(({ excludedReason }) => excludedReason !== null)).toEqual([]);
    const hetzner = rows.find(({ name, region }) => name === 'cx11' && region === 'fsn1');
    expect(hetzner).toMatchObject({ provider: 'Hetzner', cpu: 2, ram: 4 });
    expect((hetzner?.price ?? 0) * 60).toBeCloseTo(0.01);
    expect(hetzner?.pricePerCpu).toBeCloseTo((hetzner?.price ?? 0) / 2);
  });

  it.each(SORTS)('is sorted by %s, %s, also of one provider', async (sort, order) => {
    const key = KEYS[sort ?? ''] ?? expect.unreachable('a key');
    const wide = await search(`&published=all&sort=${sort}&order=${order}`);
    const { providers } = (await scene.get('/api/places')) as PlacesAnswer;
    const known = await scene.worker.store.sql`select from machines where retired_at is null`;
    expect(wide.rows).toHaveLength(known.length);
    const keys = wide.rows.map(key);
    const priced = keys.filter((each) => each !== null);
    expect(keys.slice(0, priced.length)).toEqual(priced);
    const sorted = priced.toSorted((one, other) => (one < other ? -1 : one > other ? 1 : 0));
    expect(priced).toEqual(order === 'asc' ? sorted : sorted.reverse());
    for (const { id } of providers) {
      const narrow = await search(`&published=all&sort=${sort}&order=${order}&provider=${id}`);
      expect(narrow.rows).toEqual(wide.rows.filter(({ providerId }) => providerId === id));
    }
  });

  it.each(['price', 'region'])('has pages sorted by %s, without a gap', async (sort) => {
    const all = await search(`&sort=${sort}`);
    const paged: FoundMachine[] = [];
    for (let offset = 0; offset < all.total; offset += 37) {
      const page = (await scene.get(
        `/api/machines?sort=${sort}&limit=37&offset=${offset}`,
      )) as MachinesAnswer;
      expect(page.total).toBe(all.total);
      paged.push(...page.rows);
    }
    expect(paged).toEqual(all.rows);
  });

  it.each<[query: string, fits: (machine: FoundMachine) => boolean]>([
    ['&q=TYPE-1', ({ name }) => name.startsWith('Type-1')],
    ['&min_cpu=2&max_cpu=2', ({ cpu }) => cpu === 2],
    ['&min_ram=4&max_ram=8', ({ ram }) => ram >= 4 && ram <= 8],
    ['&region=north&max_ram=4', ({ region, ram }) => region === 'north' && ram <= 4],
    ['&published=no', ({ excludedReason }) => excludedReason !== null],
    ['&published=yes', ({ excludedReason }) => excludedReason === null],
    ['&q=no-such-machine', () => false],
  ])('is searched by %s', async (query, fits) => {
    for (const sort of ['price', 'region']) {
      const published = query.includes('published') ? '' : '&published=all';
      const { rows, total } = await search(`${query}${published}&sort=${sort}`);
      const all = await search(`&published=all&sort=${sort}`);
      expect(rows).toEqual(all.rows.filter(fits));
      expect(total).toBe(rows.length);
    }
  });

  it.each([
    ['sort', 'sort=cheap', /^sort must be one of price, .*; it is "cheap"$/],
    ['min_cpu', 'min_cpu=many', /^min_cpu must be a number from 0/],
    ['provider', 'provider=0', /^provider must be a number from 1/],
    ['offset', 'offset=10001', /^offset must be a number from 0 to 10000/],
  ])('rejects a bad %s', async (field, query, error) => {
    expect(await scene.get(`/api/machines?${query}`)).toMatchObject({
      field,
      error: expect.stringMatching(error),
    });
  });

  it('has price against size for any search', async () => {
    const { rows } = await search('&published=all&min_cpu=2');
    const answer = (await scene.get('/api/machines/points?published=all&min_cpu=2')) as PointsAnswer;
    const priced = rows.filter(({ price }) => price !== null);
    expect(answer).toMatchObject({ total: rows.length, isMore: false, isSample: false, currency: 'EUR' });
    expect(answer.points.map(({ id }) => id)).toEqual(priced.map(({ id }) => id).sort((a, b) => a - b));
    expect(await scene.get('/api/machines/points?min_cpu=many')).toMatchObject({ field: 'min_cpu' });
  });

  it('names the providers and their regions', async () => {
    const { providers } = (await scene.get('/api/places')) as PlacesAnswer;
    expect(providers.map(({ name, regions }) => [name, regions])).toEqual([
      ['Another', ['north', 'south']],
      ['Bigger', ['north', 'south']],
      ['Hetzner', ['fsn1', 'nbg1']],
    ]);
  });

  it('has the prices of a machine, also after it was withdrawn', async () => {
    const [cx21] = (await search('&q=cx21')).rows;
    const history = (await scene.get(`/api/machines/${cx21?.id}`)) as MachineAnswer;
    expect(history).toMatchObject({ id: cx21?.id, name: 'cx21', provider: 'Hetzner', currency: 'EUR' });
    expect(history.prices).toMatchObject([{ sourceAmount: '0.02', sourceCurrency: 'EUR', to: null }]);
    expect(history).toMatchObject({
      provider: 'Hetzner',
      region: 'fsn1',
      source: 'hetzner',
      cpu: 3,
      ram: 8,
      ramUnit: expect.stringMatching(/^(Binary|Decimal)$/),
      facts: { architecture: null },
      addedBy: expect.any(Number),
      retiredAt: null,
      missedRuns: 0,
    });
    expect(history.changes.every(({ machineId }) => machineId === history.id)).toBe(true);
    expect(await scene.get('/api/machines/999999')).toEqual({ error: 'there is no machine 999999' });
  });

  it('shows the stock of a machine over time, and its share of the last 30 days', async () => {
    const { rows } = await search('&q=cx11');
    const { id } = rows[0] ?? expect.unreachable();
    const { sql } = scene.worker.store;
    const machine = async () => (await scene.get(`/api/machines/${id}`)) as MachineAnswer;
    const steady = await machine();
    expect([steady.availableShare, steady.stock.map(({ stock, to }) => [stock, to])]).toEqual([
      1,
      [['available', null]],
    ]);
    const [begin, end] = ['2020-01-01T00:00:00.000000Z', new Date(Date.now() - 3 * 86_400_000).toISOString()];
    await sql`update machines set created_at = ${begin}, excluded_reason = 'sold_out',
      stock = array[0, floor(extract(epoch from ${end}::timestamptz))::bigint] where id = ${id}`;
    await sql`insert into machine_availability (machine_id, changed_at, before, after)
      values (${id}, ${end}, 'available', 'sold_out')`;
    const soldOut = await machine();
    const at = end.replace('Z', '000Z');
    expect([soldOut.availableShare, soldOut.stock]).toEqual([
      0.9,
      [
        { stock: 'sold_out', from: at, to: null },
        { stock: 'available', from: begin, to: at },
      ],
    ]);
    await sql`update machines set retired_at = now() where id = ${id}`;
    expect((await machine()).availableShare).toBeNull();
  });
});

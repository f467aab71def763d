/** What clusters and machines cost, by the routes of the console. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StoredTerms } from '../../../src/domain/prices/term.ts';
import type {
  ClusterAnswer,
  CostsAnswer,
  MachineAnswer,
} from '../../../src/features/console/routes/answers.ts';
import type { EntryPreview } from '../../../src/features/price-book/answers.ts';
import { addOrganizations, atHetzner, statesClusters } from './clusters-scene.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

const closing = new AsyncDisposableStack();
let scene: ConsoleScene;
let machine: number;

beforeAll(async () => {
  scene = closing.use(await openConsoleScene());
  await scene.sync(1);
  await addOrganizations(scene, { acme: 'Acme Ltd', empty: 'Empty', zeta: 'Zeta' });
  const plain = { disks: [], shards: 1, replicas: 2 };
  await statesClusters(scene, [
    atHetzner('acme', 'orders', plain),
    atHetzner('acme', 'events', { ...plain, machine: { name: 'cx31' }, replicas: 1 }),
    atHetzner('zeta', 'other', { ...plain, region: { code: 'nbg1', name: 'nbg1' } }),
  ]);
  const { sql } = scene.worker.store;
  const price = { amount: '0.004', per: 'hour', currency: 'EUR' } as const;
  const terms: StoredTerms = {
    terms: {
      spot: { price: '0.0000666666666667', upfront: null, source: { price } },
      reserved_1y: {
        price: '0.0001',
        upfront: '43.8',
        source: { price: { ...price, amount: '0.001' }, upfront: '43.8' },
      },
    },
    monthly_cap: { price: '6.5', source: { amount: '6.5', currency: 'EUR' } },
  };
  const [row] = await sql<{ id: number }[]>`
    update machines set terms = ${sql.json(terms as never)} where name = 'cx11' and region_id = (
      select id from regions where code = 'fsn1') returning id`;
  machine = row?.id ?? expect.unreachable('the machine is stored');
  await sql`delete from machine_terms`;
  await sql`insert into machine_terms (machine_id, valid_from, terms)
    values (${machine}, now() - interval '2 hours', ${sql.json(terms as never)})`;
  // The own price of cx21 is lower than the list price of cx11, only for acme.
  await sql`insert into price_book_entries (organization_id, machine_id, discount, valid_from)
    select o.id, m.id, 80, now() - interval '1 day' from organizations o, machines m join regions r on r.id = m.region_id
    where o.slug = 'acme' and m.name = 'cx21' and r.code = 'fsn1'`;
});
afterAll(() => closing.disposeAsync());

const costs = async (slug: string) =>
  (await scene.get(`/api/organizations/${slug}/costs?limit=50`)) as CostsAnswer;

describe('the routes of costs', () => {
  it('add up machines and nodes with the monthly cap, and find the alternative by own prices', async () => {
    const answer = await costs('acme');
    expect(answer).toMatchObject({ currency: 'EUR', clusters: 2, incomplete: 0 });
    // cx11 is capped at 6.5 a month, cx31 costs 0.03 an hour.
    expect(answer.perMonth).toBeCloseTo(2 * 6.5 + 0.03 * 730, 9);
    expect(answer.rows).toMatchObject([
      { slug: 'events', nodes: 1, priceSource: 'current', disksPerMonth: 0, best: null },
      { slug: 'orders', nodes: 2, machine: { id: machine, name: 'cx11' }, best: { name: 'cx21' } },
    ]);
    // cx21 costs 0.02 an hour without the discount of 80 %.
    expect(answer.rows[1]?.best?.savingPerMonth).toBeCloseTo(2 * (6.5 - 0.004 * 730), 9);
    expect(answer.savingPerMonth).toBe(answer.rows[1]?.best?.savingPerMonth);
    for (const shares of [answer.providers, answer.regions])
      expect(shares.reduce((total, { perMonth }) => total + (perMonth ?? 0), 0)).toBeCloseTo(
        answer.knownPerMonth,
        9,
      );
    const { times, lines } = answer.history;
    expect(lines.map(({ name }) => name)).toEqual(['Hetzner']);
    expect(lines[0]?.values).toHaveLength(times.length);
    expect(lines[0]?.values.at(-1)).toBeCloseTo(answer.knownPerMonth, 9);
    // No price was known then.
    expect(lines[0]?.values[0]).toBeNull();
  });

  it('show the cost of one cluster as in the list of its organization, and none of a retired one', async () => {
    const { rows } = await costs('acme');
    for (const row of rows) {
      const { cost } = (await scene.get(`/api/clusters/${row.id}`)) as ClusterAnswer;
      expect(cost).toEqual({ ...row, currency: 'EUR' });
    }
    const { sql } = scene.worker.store;
    const id = rows[0]?.id ?? expect.unreachable();
    await sql`update clusters set retired_at = now() where id = ${id}`;
    expect(await scene.get(`/api/clusters/${id}`)).toMatchObject({ cost: null });
    await sql`update clusters set retired_at = null where id = ${id}`;
  });

  it('show nothing of another organization', async () => {
    const [acme, zeta] = [await costs('acme'), await costs('zeta')];
    expect(JSON.stringify(acme)).not.toContain('other');
    expect(zeta).toMatchObject({
      clusters: 1,
      rows: [{ slug: 'other', priceSource: 'current', best: null }],
    });
    expect(await costs('empty')).toMatchObject({
      clusters: 0,
      perMonth: 0,
      rows: [],
      history: { lines: [] },
    });
  });

  it('preview an entry of a price book: costs, clusters and machines, and nothing is stored', async () => {
    const preview = (slug: string, query: string) =>
      scene.get(`/api/organizations/${slug}/price-book/preview?${query}`) as Promise<EntryPreview>;
    const list = 0.01 * 730 * 2;
    const half = await preview('zeta', 'provider=hetzner&discount=50');
    expect(half).toMatchObject({
      currency: 'EUR',
      isLater: false,
      clusters: 1,
      affected: 1,
      before: { perMonth: list, knownPerMonth: list },
      after: { perMonth: list / 2, knownPerMonth: list / 2 },
    });
    const { sql } = scene.worker.store;
    const [all] = await sql<{ machines: number }[]>`
      select count(*)::int as machines from machines where excluded_reason is null and retired_at is null`;
    expect(half.machines).toBe(all?.machines);
    // Both clusters of acme have list prices. The entry of cx21 wins, but no cluster has that machine.
    expect(await preview('acme', 'machine=cx31@fsn1&price=0')).toMatchObject({
      machines: 1,
      clusters: 2,
      affected: 1,
      after: { perMonth: 2 * 6.5 },
    });
    expect(await preview('zeta', 'family=cx3&discount=50')).toMatchObject({
      machines: 2,
      affected: 0,
      after: { perMonth: list },
    });
    // Costs are on demand.
    expect(await preview('zeta', 'term=spot&discount=50')).toMatchObject({ affected: 0 });
    expect(await preview('zeta', 'from=2099-01-01&discount=50')).toMatchObject({
      at: '2099-01-01T00:00:00.000Z',
      isLater: true,
      affected: 1,
    });
    expect(await preview('empty', 'discount=50')).toMatchObject({ clusters: 0, before: { perMonth: 0 } });
    for (const slug of ['acme', 'zeta'])
      expect(await scene.get(`/api/organizations/${slug}/price-book`)).toMatchObject({
        entries: slug === 'acme' ? [{ machine: 'cx21@fsn1' }] : [],
      });
  });

  it('refuse a preview as they refuse the entry', async () => {
    const refused = (query: string, slug = 'acme') =>
      scene.get(`/api/organizations/${slug}/price-book/preview?${query}`);
    expect(await refused('discount=101')).toMatchObject({
      error: expect.stringMatching(/^discount "101" is too large.*; give a percentage/),
    });
    expect(await refused('discount=1&discount=2')).toMatchObject({
      error: expect.stringMatching(/^discount/),
    });
    expect(await refused('discount=5&region=mars')).toMatchObject({
      error: expect.stringMatching(/^region/),
    });
    expect(await refused('discount=5&until=2099-01-01')).toMatchObject({
      error: expect.stringMatching(/until/),
    });
    expect(await refused('discount=5&machine=cx21@fsn1')).toMatchObject({
      error: expect.stringMatching(/overlaps entry \d+/),
    });
    expect(await refused('discount=5', 'nowhere')).toMatchObject({
      error: expect.stringMatching(/"nowhere"/),
    });
  });

  it('show the terms of a machine, their history and the other prices of its region', async () => {
    const answer = (await scene.get(`/api/machines/${machine}`)) as MachineAnswer;
    expect(answer.terms.map(({ term, perMonth, upfront }) => [term, perMonth, upfront])).toEqual([
      ['on_demand', 6.5, null],
      ['spot', 2.92, null],
      ['reserved_1y', 4.38, '43.8'],
    ]);
    expect(answer.monthlyCap).toBe(6.5);
    expect(answer.termHistory).toMatchObject([
      { term: 'spot', to: null },
      { term: 'reserved_1y', price: 0.0001, to: null },
    ]);
  });
});

import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/providers/upcloud.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { UPCLOUD_DATABASES, upcloudDatabases } from '../../support/provider-answers.ts';
import { fates, readCatalogue } from './read-catalogue.ts';

const helsinki = { id: 'fi-hel1', description: 'Helsinki #1', public: 'yes' };
const small = { name: '1xCPU-1GB', core_number: 1, memory_amount: 1024 };

interface Answers {
  zones?: object[];
  plan?: object;
  /** The price of the plan in Helsinki; undefined omits the plan there. */
  price?: object | null | undefined;
  prices?: object;
  zonePrices?: object[];
  /** By type; unless given, a plan that no zone sells. */
  databases?: object;
}

async function itemsOf(answers: Answers): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  const plan = { ...small, ...answers.plan };
  const price = 'price' in answers ? answers.price : { amount: 1, price: 1.488 };
  const zonePrices = answers.zonePrices ?? [{ name: 'fi-hel1', [`server_plan_${plan.name}`]: price }];
  upstream.expect({ path: '/1.3/zone' }, { json: { zones: { zone: answers.zones ?? [helsinki] } } });
  upstream.expect({ path: '/1.3/plan' }, { json: { plans: { plan: [plan] } } });
  upcloudDatabases(upstream, answers.databases);
  upstream.expect({ path: '/1.3/price' }, { json: { prices: { zone: zonePrices, ...answers.prices } } });
  return await readCatalogue(adapter, upstream.url);
}

/** Sold in Helsinki. @param storage_size MiB @param price cents an hour; undefined for none */
function databasesOf(type: string, plan: string, storage_size: number, price: object | undefined) {
  const nodes = { node_count: Number(plan.split('x')[0]), core_number: 2, memory_amount: 4096 };
  const row = { plan, ...nodes, storage_size, zones: { zone: [{ name: 'fi-hel1' }] } };
  const machine = { 'server_plan_1xCPU-1GB': { amount: 1, price: 1 } };
  const database = price && { [`managed_database_${plan}`]: price };
  return itemsOf({
    databases: { [type]: { name: type, service_plans: [row] } },
    zonePrices: [{ name: 'fi-hel1', ...machine, ...database }],
  });
}

const GPU = { name: 'GPU-8xCPU-64GB-1xL40S', core_number: 8, memory_amount: 65536 };

describe('a plan of UpCloud', () => {
  it.each<[string, Answers, string[]]>([
    ['is offered at its price', {}, ['offered']],
    ['is accelerated by its number of GPUs', { plan: { gpu_amount: 1 } }, ['accelerated']],
    ['is accelerated by their model', { plan: { gpu_model: 'NVIDIA L40S' } }, ['accelerated']],
    ['is accelerated by its name, as in older answers', { plan: GPU }, ['accelerated']],
    [
      'is discontinued once it is no longer a current offering',
      { plan: { current_offering: 'no' } },
      ['discontinued'],
    ],
    ['is offered while it is a current offering', { plan: { current_offering: 'yes' } }, ['offered']],
    ['is unavailable if its machines are preemptible', { plan: { name: 'SPOT-1xCPU-1GB' } }, ['unavailable']],
    ['is not published at zero', { price: { amount: 1, price: 0 } }, ['zero_price']],
    ['is not sold without a price', { price: undefined }, []],
    ['is rejected at a price that is null', { price: null }, ['rejected']],
    ['is not sold with a GPU and no price', { plan: GPU, price: undefined }, []],
    ['is rejected at an unusable price, GPU or not', { plan: GPU, price: { amount: 1 } }, ['rejected']],
    ['is rejected if the price is for more than one', { price: { amount: 2, price: 3 } }, ['rejected']],
    ['is offered at a price that arrived as text', { price: { amount: '1', price: '1.488' } }, ['offered']],
  ])('%s', async (_, answers, expected) => {
    expect(fates(await itemsOf(answers))).toEqual(expected);
  });

  // Published: 3 euros a month (UpCloud's page of prices, 2026), and 744 hours would be 3.32.
  it('costs at most 28 days a month', async () => {
    const price = { amount: 1, price: 0.4464 };
    const items = await itemsOf({ plan: { name: 'DEV-1xCPU-1GB-10GB' }, price });
    expect(items.find(({ kind }) => kind === 'offer')).toMatchObject({
      offer: { price: { amount: '0.004464', per: 'hour' }, monthlyCap: '2.999808' },
    });
  });

  // Three of twelve zones may sell a starter plan.
  it('is sold in the zones whose prices name it, whatever they say about its family', async () => {
    const codes = Array.from({ length: 12 }, (_, n) => `zone${n}`);
    const starter = { ...small, name: 'DEV-1xCPU-1GB-10GB' };
    const larger = { ...small, name: 'DEV-1xCPU-2GB', memory_amount: 2048 };
    const unsold = { ...small, name: 'DEV-1xCPU-4GB', memory_amount: 4096 };
    const price = { amount: 1, price: 0.4464 };
    await using upstream = await fakeUpstream();
    const zones = codes.map((id) => ({ ...helsinki, id }));
    upstream.expect({ path: '/1.3/zone' }, { json: { zones: { zone: zones } } });
    const plans = [small, starter, larger, unsold];
    upstream.expect({ path: '/1.3/plan' }, { json: { plans: { plan: plans } } });
    const zonePrices = codes.map((name, n) => ({
      name,
      'server_plan_1xCPU-1GB': price,
      'server_plan_DEV-1xCPU-2GB': price,
      ...(n < 3 && { 'server_plan_DEV-1xCPU-1GB-10GB': price }),
    }));
    upcloudDatabases(upstream);
    upstream.expect({ path: '/1.3/price' }, { json: { prices: { zone: zonePrices } } });
    const items = await readCatalogue(adapter, upstream.url);
    const sold = items.flatMap((item) => (item.kind === 'offer' ? [item.offer] : []));
    const zonesOf = (plan: string) =>
      sold.filter(({ name }) => name === plan).map(({ regionCode }) => regionCode);
    expect(plans.map(({ name }) => zonesOf(name))).toEqual([codes, codes.slice(0, 3), codes, []]);
    expect(items.filter(({ kind }) => kind === 'rejected')).toEqual([]);
  });

  it.each([
    [1.0416, '0.010416', '6.999552'],
    [0.000274, '0.00000274', '0.00184128'],
    [150, '1.5', '1008'],
  ])('costs a hundredth of the stated cents, exactly: %d', async (price, amount, monthlyCap) => {
    expect(await itemsOf({ price: { amount: 1, price } })).toContainEqual({
      kind: 'offer',
      offer: {
        regionCode: 'fi-hel1',
        name: '1xCPU-1GB',
        cpu: 1,
        ram: 1,
        ramUnit: 'Binary',
        price: { amount, per: 'hour', currency: 'EUR' },
        monthlyCap,
        facts: { includedIpv4: 1 },
      },
    });
  });

  it('is priced in the account’s currency if it is stated', async () => {
    expect(await itemsOf({ prices: { currency: 'SGD' } })).toContainEqual(
      expect.objectContaining({
        offer: expect.objectContaining({ price: { amount: '0.01488', per: 'hour', currency: 'SGD' } }),
      }),
    );
    await expect(itemsOf({ prices: { currency: 'credits' } })).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('prices.currency must be a currency code'),
    });
  });
});

describe('UpCloud', () => {
  it.each([
    ['a name and a password', 'fleet:s3cret', `Basic ${btoa('fleet:s3cret')}`],
    ['an API token', 'ucat_01DQE3AJDEBFEKECFM558TGH2F', 'Bearer ucat_01DQE3AJDEBFEKECFM558TGH2F'],
  ])('accepts %s', async (_, token, authorization) => {
    await using upstream = await fakeUpstream();
    const headers = { authorization };
    const zonePrices = { name: 'fi-hel1', 'server_plan_1xCPU-1GB': { amount: 1, price: 1.488 } };
    upstream.expect({ path: '/1.3/zone', headers }, { json: { zones: { zone: [helsinki] } } });
    upstream.expect({ path: '/1.3/plan', headers }, { json: { plans: { plan: [small] } } });
    upstream.expect({ path: '/1.3/database/service-types', headers }, { json: UPCLOUD_DATABASES });
    upstream.expect({ path: '/1.3/price', headers }, { json: { prices: { zone: [zonePrices] } } });
    expect(fates(await readCatalogue(adapter, upstream.url, token))).toEqual(['offered']);
  });
});

describe('a zone of UpCloud', () => {
  const price = { amount: 1, price: 1.488 };

  it('that belongs to a customer is not a region', async () => {
    const zones = [helsinki, { id: 'fi-acme1', description: 'Acme', public: 'no' }];
    const zonePrices = ['fi-hel1', 'fi-acme1'].map((name) => ({ name, 'server_plan_1xCPU-1GB': price }));
    expect(await itemsOf({ zones, zonePrices })).toMatchObject([
      { kind: 'region', code: 'fi-hel1' },
      { kind: 'offer', offer: { regionCode: 'fi-hel1' } },
    ]);
  });

  it('without any price is unread as a whole', async () => {
    const zones = [helsinki, { id: 'de-fra1', description: 'Frankfurt #1', public: 'yes' }];
    const unread = (await itemsOf({ zones })).filter((item) => item.kind === 'unread');
    expect(unread).toEqual([
      {
        kind: 'unread',
        regionCode: 'de-fra1',
        reason: '/1.3/price has no prices for a zone that /1.3/zone lists',
      },
    ]);
  });

  it('with repeated prices yields its machines twice, and the sync rejects them', async () => {
    const zonePrices = [1, 2].map(() => ({ name: 'fi-hel1', 'server_plan_1xCPU-1GB': price }));
    expect(fates(await itemsOf({ zonePrices }))).toEqual(['offered', 'offered']);
  });
});

describe('a plan of a managed database of UpCloud', () => {
  // Rows that UpCloudLtd/upcloud-go-api recorded in February 2024 (getmanageddatabaseservicetypes.yaml at 6d756b8f).
  it.each([
    ['pg', '3x2xCPU-4GB-100GB', 102_400, 107.374],
    ['mysql', '2x2xCPU-4GB-50GB', 51_200, 53.687],
    ['opensearch', '3x2xCPU-4GB-120GB-3D', 122_880, 42.95],
    ['redis', '3x2xCPU-4GB', 0, null],
  ])('of the type %s, %s, has the storage of one node', async (type, name, size, storage) => {
    const items = await databasesOf(type, name, size, { amount: 1, price: 16.6667 });
    const plans = items.flatMap((item) => (item.kind === 'database-plan' ? [item.plan] : []));
    expect(plans).toMatchObject([{ name, storage, price: { amount: '0.166667', per: 'hour' } }]);
  });

  it('is reported if no plan has a price, and the stored plans stay', async () => {
    const items = await databasesOf('pg', '1x1xCPU-2GB-25GB', 25_600, undefined);
    expect(items).toContainEqual({ kind: 'unread-prices', items: ['database_plan'] });
    expect(items).toContainEqual(
      expect.objectContaining({ kind: 'rejected', reason: expect.stringContaining('has a price of a plan') }),
    );
  });
});

/** Reservations and prices of regions in AWS's offer files, with an own reading of the same payloads. */
import { describe, expect, it } from 'vitest';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import {
  dimension,
  hourly,
  itemsOf,
  lease,
  leases,
  machine,
  onDemand,
  REGION,
  read,
  type Way,
} from './aws-payloads.ts';
import { atoms, seeded } from './seeded.ts';

describe('a reservation of AWS', () => {
  // The leases of c5.xlarge in us-east-1 in the price list of 2020-06-18, version 20200618221809. The fees are whole dollars.
  const C5_XLARGE = leases(
    ['1yr', 'No Upfront', '0.1070000000'],
    ['1yr', 'Partial Upfront', '0.0510000000', '447'],
    ['1yr', 'All Upfront', '0.0000000000', '876'],
    ['3yr', 'No Upfront', '0.0710000000'],
    ['3yr', 'Partial Upfront', '0.0330000000', '867'],
    ['3yr', 'All Upfront', '0.0000000000', '1629'],
    ['1yr', 'No Upfront', '0.1230000000', undefined, 'convertible'],
    ['1yr', 'All Upfront', '0.0000000000', '1007', 'convertible'],
    ['3yr', 'All Upfront', '0.0000000000', '1957', 'convertible'],
  );

  it('of c5.xlarge costs 0.10 dollars an hour for a year, and 0.062 for three', async () => {
    const { offer, problems } = await read(C5_XLARGE);
    expect([offer?.price.amount, problems]).toEqual(['0.096', []]);
    expect(offer?.terms).toEqual({ reserved_1y: hourly('0', '876'), reserved_3y: hourly('0', '1629') });
    expect(876 / 8760).toBeCloseTo(0.1, 10);
    expect(1629 / (3 * 8760)).toBeCloseTo(0.062, 3);
  });

  it.each([
    ['without a payment upfront', leases(['1yr', 'No Upfront', '0.06']), { reserved_1y: hourly('0.06') }],
    [
      'with only a fee',
      leases(['3yr', 'All Upfront', undefined, '900']),
      { reserved_3y: hourly('0', '900') },
    ],
    [
      'paid in part, if that is cheapest',
      leases(['1yr', 'No Upfront', '0.06'], ['1yr', 'Partial Upfront', '0.02', '200']),
      { reserved_1y: hourly('0.02', '200') },
    ],
    [
      'not paid upfront, if that costs the same',
      leases(['1yr', 'All Upfront', '0', '438'], ['1yr', 'No Upfront', '0.05']),
      { reserved_1y: hourly('0.05') },
    ],
    ['that may be exchanged', leases(['1yr', 'No Upfront', '0.01', undefined, 'convertible']), undefined],
    ['of another length', leases(['5yr', 'No Upfront', '0.01']), undefined],
    [
      'in its newest version',
      {
        old: lease(['1yr', 'No Upfront', '0.01'], '2020-01-01T00:00:00Z'),
        new: lease(['1yr', 'No Upfront', '0.07']),
      },
      { reserved_1y: hourly('0.07') },
    ],
  ])('is read: one %s', async (_, reserved, terms) => {
    const { offer, problems, hasValidator } = await read(reserved);
    expect([offer?.terms, problems, hasValidator]).toEqual([terms, [], true]);
  });

  it('that begins later is not read, and the file is read again', async () => {
    const { offer, hasValidator } = await read({
      next: lease(['1yr', 'No Upfront', '0.01'], '2026-04-01T00:00:00Z'),
    });
    expect([offer?.terms, hasValidator]).toEqual([undefined, false]);
  });

  it.each([
    ['costs nothing', leases(['1yr', 'All Upfront', '0', '0']), '1yr All Upfront costs nothing'],
    [
      'has another unit',
      { x: { ...lease(['1yr', 'No Upfront']), priceDimensions: { y: dimension('Mo', '70') } } },
      'unit must be Hrs or Quantity; it is Mo',
    ],
    [
      'is there twice',
      leases(['1yr', 'No Upfront', '0.06'], ['1yr', 'No Upfront', '0.05']),
      'is there twice',
    ],
    [
      'has a way to pay in another currency',
      {
        ...leases(['1yr', 'No Upfront', '0.06']),
        x: {
          ...lease(['1yr', 'All Upfront']),
          priceDimensions: { y: { unit: 'Quantity', pricePerUnit: { CNY: '1' } } },
        },
      },
      'pricePerUnit.USD is missing',
    ],
  ])('that %s is left out with a reason, and its machine is offered', async (_, reserved, reason) => {
    const { offer, problems } = await read(reserved);
    expect(offer).toMatchObject({ name: 'm5.large', price: { amount: '0.096' } });
    expect(offer).not.toHaveProperty('terms');
    expect(problems).toEqual([expect.stringContaining(reason)]);
  });

  it('of Windows or of a dedicated machine is not read', async () => {
    const cheap = leases(['1yr', 'No Upfront', '0.001']);
    const products = {
      W: machine('m5.large', { operatingSystem: 'Windows' }),
      D: machine('m5.large', { tenancy: 'Dedicated' }),
      H: machine('m5.large', { tenancy: 'Host' }),
    };
    const { offer } = await read(leases(['1yr', 'No Upfront', '0.06']), {
      products,
      Reserved: { W: cheap, D: cheap, H: cheap },
    });
    expect(offer?.terms).toEqual({ reserved_1y: hourly('0.06') });
  });

  it('is reported once for all machines of a region', async () => {
    const products = Object.fromEntries(
      Array.from({ length: 300 }, (_, n) => [`P${n}`, machine(`m${n}.large`)]),
    );
    const Reserved = Object.fromEntries(
      Object.keys(products).map((sku) => [sku, leases(['1yr', 'All Upfront', '0', '0'])]),
    );
    const { problems } = await read({}, { products, Reserved });
    expect(
      problems.filter((reason) => reason.startsWith('300 prices are left out; the first is m0.large')),
    ).toHaveLength(1);
    expect(problems.filter((reason) => reason.includes('left out'))).toHaveLength(1);
  });

  it('costs what an own calculation finds, for 100 machines', async () => {
    const random = seeded(27);
    const skus = Array.from({ length: 100 }, (_, number) => `S${number}`);
    const ways = ['1yr', '3yr'].flatMap((length) =>
      ['standard', 'convertible'].flatMap((kind) =>
        ['No Upfront', 'Partial Upfront', 'All Upfront'].map((option) => [length, option, kind] as const),
      ),
    );
    const Reserved = Object.fromEntries(
      skus.map((sku) => [
        sku,
        leases(
          ...ways.map(([length, option, kind]): Way => {
            const upfront = option === 'No Upfront' ? undefined : String(random(5_000) + 1);
            const amount =
              option === 'All Upfront'
                ? '0.0000000000'
                : `0.${String(random(10_000) + 1).padStart(4, '0')}000000`;
            return [length, option, amount, upfront, kind];
          }),
        ),
      ]),
    );
    const products = Object.fromEntries(skus.map((sku) => [sku, machine(`${sku.toLowerCase()}.large`)]));
    const items = await itemsOf([
      {
        products,
        terms: { OnDemand: Object.fromEntries(skus.map((sku) => [sku, onDemand('2')])), Reserved },
      },
    ]);
    let compared = 0;
    for (const [sku, all] of Object.entries(Reserved)) {
      const item = items.find(
        (each) => each.kind === 'offer' && each.offer.name === `${sku.toLowerCase()}.large`,
      );
      for (const [length, hours, term] of [
        ['1yr', 8760n, 'reserved_1y'],
        ['3yr', 26280n, 'reserved_3y'],
      ] as const) {
        const totals = Object.values(all).flatMap(
          ({ termAttributes, priceDimensions: { hours: rate, fee } }) => {
            const { LeaseContractLength, OfferingClass } = termAttributes;
            if (LeaseContractLength !== length || OfferingClass !== 'standard') return [];
            const recurring = atoms(rate?.pricePerUnit.USD ?? '0') * hours;
            return [recurring + atoms(fee?.pricePerUnit.USD ?? '0')];
          },
        );
        const stated = item?.kind === 'offer' ? item.offer.terms?.[term] : undefined;
        const total = atoms(stated?.price.amount ?? '') * hours + atoms(stated?.upfront ?? '0');
        expect([sku, term, total]).toEqual([sku, term, totals.toSorted((a, b) => (a < b ? -1 : 1))[0]]);
        compared += 1;
      }
    }
    expect(compared).toBe(200);
  });
});

describe('a price of a region of AWS', () => {
  const volume = (volumeApiName: string, changes: object = {}) => ({
    productFamily: 'Storage',
    attributes: {
      volumeApiName,
      usagetype: `EBS:VolumeUsage.${volumeApiName}`,
      regionCode: REGION,
      ...changes,
    },
  });
  const withVolumes = (products: object, OnDemand: object) => ({
    products: { A: machine('m5.large'), ...products },
    terms: { OnDemand: { A: onDemand('0.096'), ...OnDemand } },
  });
  const pricesIn = (items: readonly CatalogueItem[]) =>
    items.flatMap((item) =>
      item.kind === 'region-price'
        ? [[item.price.name, item.price.isDefault, item.price.tiers[0]?.amount]]
        : [],
    );
  const problemsIn = (items: readonly CatalogueItem[]) =>
    items.flatMap((item) => (item.kind === 'rejected' ? [item.reason] : []));
  const unreadIn = (items: readonly CatalogueItem[]) =>
    items.flatMap((item) => (item.kind === 'unread-prices' ? [item.items] : []));

  it('is that of volumes by size: gp3 first, else gp2', async () => {
    const V = volume('gp2');
    const gb = (USD: string) => onDemand(USD, 'GB-Mo');
    const both = await itemsOf([withVolumes({ V, W: volume('gp3') }, { V: gb('0.1'), W: gb('0.08') })]);
    expect(pricesIn(both)).toEqual([
      ['gp2', false, '0.1'],
      ['gp3', true, '0.08'],
    ]);
    expect(pricesIn(await itemsOf([withVolumes({ V }, { V: gb('0.1') })]))).toEqual([['gp2', true, '0.1']]);
  });

  it.each([
    ['has two prices', { V: onDemand('0.1', 'GB-Mo'), W: onDemand('0.2', 'GB-Mo') }, 'has several prices'],
    ['is for an hour', { V: onDemand('0.0001', 'GB-Hrs') }, 'unit must be GB-Mo or GB-month; it is GB-Hrs'],
    ['is zero', { V: onDemand('0.0000000000', 'GB-Mo') }, 'has no price above 0'],
    [
      'has a step without a beginning',
      { V: { term: { priceDimensions: { x: dimension('GB-Mo', '0.1', '50') } } } },
      'has no price from 0 on',
    ],
  ])('is left out if it %s', async (_, terms, reason) => {
    const items = await itemsOf([withVolumes({ V: volume('gp3'), W: volume('gp3') }, terms)]);
    expect([pricesIn(items), items.filter(({ kind }) => kind === 'offer').length]).toEqual([[], 1]);
    expect(problemsIn(items)).toEqual([expect.stringContaining(reason)]);
    // Regions keep their last prices of an item that has none in any file.
    expect(unreadIn(items)).toEqual([['block_storage']]);
    // Only the file of this region is read again.
    expect(items).toContainEqual(expect.objectContaining({ kind: 'rejected', regionCode: REGION }));
  });

  it('is not kept from an earlier run if another price of its item can be used', async () => {
    const items = await itemsOf([
      withVolumes(
        { V: volume('gp2'), W: volume('gp3') },
        { V: onDemand('0.1', 'GB-Mo'), W: onDemand('0', 'GB-Mo') },
      ),
    ]);
    expect([pricesIn(items), unreadIn(items)]).toEqual([[['gp2', true, '0.1']], []]);
    expect(problemsIn(items)).toEqual([expect.stringContaining('has no price above 0')]);
  });

  it('without a product of traffic or addresses is unknown, and no problem', async () => {
    const empty = {
      products: { X: { attributes: { usagetype: 'VpcEndpoint-Hours' } } },
      terms: { OnDemand: {} },
    };
    const items = await itemsOf([withVolumes({}, {}), empty, empty]);
    expect([pricesIn(items), problemsIn(items)]).toEqual([[], []]);
  });
});

describe('a plan of RDS', () => {
  const instance = (changes: object = {}, productFamily: string | undefined = 'Database Instance') => ({
    productFamily,
    attributes: {
      ...{ databaseEngine: 'PostgreSQL', instanceType: 'db.m5.large', deploymentOption: 'Single-AZ' },
      ...{ vcpu: '2', memory: '8 GiB', storage: 'EBS Only', usagetype: 'InstanceUsage:db.m5.large' },
      ...changes,
    },
  });
  const machines = { products: { A: machine('m5.large') }, terms: { OnDemand: { A: onDemand('0.096') } } };

  /** Reads these instances next to an ordinary one, which is `db.t3.micro`. */
  async function plansOf(products: object, OnDemand: object) {
    const usual = instance({ instanceType: 'db.t3.micro' });
    const items = await itemsOf([
      machines,
      undefined,
      undefined,
      { products: { Z: usual, ...products }, terms: { OnDemand: { Z: onDemand('0.02'), ...OnDemand } } },
    ]);
    return {
      plans: items.flatMap((item) => (item.kind === 'database-plan' ? [item.plan] : [])).slice(1),
      problems: items.flatMap((item) => (item.kind === 'rejected' ? [item.reason] : [])),
      isUnread: items.some(({ kind }) => kind === 'unread-prices'),
      validators: items.flatMap((item) => (item.kind === 'validator' ? [item.of ?? 'machines'] : [])).sort(),
      machines: items.filter(({ kind }) => kind === 'offer').length,
    };
  }

  it.each([
    ['is listed twice at one price', instance(), onDemand('0.171'), ['0.171']],
    ['is listed once more at zero dollars', instance(), onDemand('0'), ['0.171']],
    [
      'has another row for a rack at the customer’s site',
      instance({ locationType: 'AWS Outposts' }),
      onDemand('9'),
      ['0.171'],
    ],
    [
      'has another row for a local zone',
      instance({ locationType: 'AWS Local Zone', regionCode: 'us-east-1-bos-1' }),
      onDemand('9'),
      ['0.171'],
    ],
    ['has another row with a licence', instance({ databaseEngine: 'SQL Server' }), onDemand('9'), ['0.171']],
    [
      'has a row of Extended Support, which has no family and no type',
      { attributes: { databaseEngine: 'PostgreSQL', usagetype: 'ExtendedSupport:Yr1-Yr2:PostgreSQL12' } },
      onDemand('0.1', 'vCPU-hour'),
      ['0.171'],
    ],
  ])('has one price if it %s', async (_, other, term, amounts) => {
    const found = await plansOf({ A: instance(), B: other }, { A: onDemand('0.171'), B: term });
    expect(found.plans.map(({ price }) => price.amount)).toEqual(amounts);
    expect([found.problems, found.isUnread]).toEqual([[], false]);
    expect(found.validators).toEqual(['database_plan', 'machines']);
  });

  it.each([
    ['has two prices', { B: instance() }, { B: onDemand('0.2') }, 'has several prices: 0.171 (A), 0.2 (B)'],
    [
      'has two shapes',
      { B: instance({ memory: '16 GiB' }) },
      { B: onDemand('0.171') },
      'has several shapes: 2 vCPU and 8 GiB, 2 vCPU and 16 GiB',
    ],
    [
      'has no price',
      { A: instance({ instanceType: 'db.x' }) },
      { A: {} },
      'terms.OnDemand has nothing for A',
    ],
    [
      'has no memory',
      { A: instance({ memory: 'NA' }) },
      {},
      'must be a count of GiB such as "8 GiB"; it is "NA"',
    ],
    ['has no CPU', { A: instance({ vcpu: undefined }) }, {}, 'A: attributes.vcpu is missing'],
    [
      'has an unknown deployment',
      { A: instance({ deploymentOption: 'Multi-AZ (five standbys)' }) },
      {},
      'A: deploymentOption is unknown: Multi-AZ (five standbys)',
    ],
    [
      'is of Aurora with a standby',
      { A: instance({ databaseEngine: 'Aurora MySQL', deploymentOption: 'Multi-AZ' }) },
      {},
      'A: Aurora has no deploymentOption Multi-AZ',
    ],
    [
      'is of another region',
      { A: instance({ regionCode: 'eu-west-1' }) },
      {},
      'must be us-east-1, whose file this is',
    ],
    ['costs nothing', {}, { A: onDemand('0') }, 'price must be a decimal above 0'],
  ])('is left out with a reason if it %s, and others stay', async (_, products, terms, reason) => {
    const found = await plansOf({ A: instance(), ...products }, { A: onDemand('0.171'), ...terms });
    expect(found.plans).toEqual([]);
    expect(found.problems).toEqual([expect.stringContaining(reason)]);
    expect([found.isUnread, found.machines]).toEqual([false, 1]);
  });

  it('that changes later is read again, without the machines of its region', async () => {
    const later = { next: { ...onDemand('0.3').term, effectiveDate: '2026-04-01T00:00:00Z' } };
    const { plans, validators } = await plansOf({ A: instance() }, { A: { ...onDemand('0.171'), ...later } });
    expect([plans.map(({ price }) => price.amount), validators]).toEqual([['0.171'], ['machines']]);
  });

  it('is unknown if no instance of a file can be used: the stored plans stay', async () => {
    const items = await itemsOf([
      machines,
      undefined,
      undefined,
      { products: { A: instance({ memory: 'NA' }) }, terms: { OnDemand: { A: onDemand('1') } } },
    ]);
    expect(items).toContainEqual({ kind: 'unread-prices', items: ['database_plan'] });
    expect(items).toContainEqual(expect.objectContaining({ kind: 'rejected', regionCode: REGION }));
    expect(items.filter(({ kind }) => kind === 'offer')).toHaveLength(1);
  });
});

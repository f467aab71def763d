import { describe, expect, it } from 'vitest';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter } from '../../../src/sources/providers/gcp.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { gcpDatabases } from '../../support/provider-answers.ts';

const PROJECT = '/compute/v1/projects/fleet';
const SKUS = '/v1/services/6F81-5844-456A/skus';
const IOWA = 'us-central1';

const e2 = { name: 'e2-standard-2', guestCpus: 2, memoryMb: 8192, isSharedCpu: false };
const sku = (description: string, nanos: number, changes: object = {}) => ({
  skuId: description.slice(0, 12),
  description,
  category: { resourceFamily: 'Compute', usageType: 'OnDemand' },
  serviceRegions: [IOWA],
  pricingInfo: [
    {
      pricingExpression: {
        usageUnit: / Ram/i.test(description) ? 'GiBy.h' : 'h',
        tieredRates: [{ unitPrice: { currencyCode: 'USD', units: '0', nanos } }],
      },
    },
  ],
  ...changes,
});
const core = sku('E2 Instance Core running in Americas', 20_000_000);
const ram = sku('E2 Instance Ram running in Americas', 3_000_000);

/** One page of types by zone and one of SKUs. */
async function itemsOf(
  zones: Readonly<Record<string, readonly object[]>>,
  skus: readonly object[] = [core, ram],
  more: object = {},
): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  const items = Object.fromEntries(
    Object.entries(zones).map(([zone, machineTypes]) => [`zones/${zone}`, { machineTypes }]),
  );
  upstream.expect(
    {
      path: `${PROJECT}/aggregated/machineTypes`,
      query: { maxResults: '500', returnPartialSuccess: 'true' },
    },
    { json: { items, ...more } },
  );
  upstream.expect(
    { path: SKUS, query: { currencyCode: 'USD', pageSize: '5000' } },
    { json: { skus, nextPageToken: '' } },
  );
  gcpDatabases(upstream);
  return await read(`${upstream.url}${PROJECT}`);
}

async function read(baseUrl: string): Promise<CatalogueItem[]> {
  const limits = { deadlineMs: 5_000, maxBytes: 10_000_000 };
  const http = openSourceHttp({ baseUrl, credentials: 'bearer', token: 'token', ...limits });
  const found: CatalogueItem[] = [];
  for await (const item of adapter.catalogue({ http, now: () => new Date('2026-03-01T00:00:00Z') }))
    found.push(item);
  return found;
}

const rowsOf = async (type: object, skus?: readonly object[]) =>
  (await itemsOf({ 'us-central1-a': [{ ...e2, ...type }] }, skus)).filter(({ kind }) => kind !== 'region');

describe('a type of GCP', () => {
  it.each([
    ['costs its cores and its memory', {}, '0.064'],
    ['costs a fraction of its memory exactly', { guestCpus: 1, memoryMb: 3687 }, '0.0308017578125'],
    [
      'costs a quarter of a core as e2-micro',
      { name: 'e2-micro', memoryMb: 1024, isSharedCpu: true },
      '0.008',
    ],
    ['costs half a core as e2-small', { name: 'e2-small', memoryMb: 2048, isSharedCpu: true }, '0.016'],
    ['costs one core as e2-medium', { name: 'e2-medium', memoryMb: 4096, isSharedCpu: true }, '0.032'],
  ])('%s', async (_, type, amount) => {
    expect(await rowsOf(type)).toEqual([
      expect.objectContaining({
        offer: expect.objectContaining({ price: { amount, per: 'hour', currency: 'USD' } }),
      }),
    ]);
  });

  it.each([
    ['is offered', {}, undefined],
    ['is offered if it is stated as active', { deprecated: { state: 'ACTIVE' } }, undefined],
    ['is deprecated, and still sold', { deprecated: { state: 'DEPRECATED' } }, undefined],
    ['is obsolete', { deprecated: { state: 'OBSOLETE' } }, 'discontinued'],
    ['is deleted', { deprecated: { state: 'DELETED' } }, 'discontinued'],
    [
      'has a GPU',
      { accelerators: [{ guestAcceleratorType: 'nvidia-l4', guestAcceleratorCount: 1 }] },
      'accelerated',
    ],
    [
      'has a GPU and disks',
      { name: 'e2-standard-2-lssd', accelerators: [{}], bundledLocalSsds: { partitionCount: 2 } },
      'accelerated',
    ],
  ])('%s', async (_, type, excluded) => {
    const [item] = await rowsOf(type);
    expect(item?.kind === 'offer' ? item.offer.excluded : 'rejected').toBe(excluded);
  });

  it.each([
    ['has local disks', { bundledLocalSsds: { partitionCount: 2 } }, 'e2-standard-2'],
    ['has local disks by a range in its name', { name: 'e2-standard-2-lssd' }, 'e2-standard-2-lssd'],
    [
      'has local disks by its name alone',
      { name: 'z3-highmem-14-standardlssd' },
      'z3-highmem-14-standardlssd',
    ],
  ])('is rejected once, not once per region, if it %s', async (_, type, name) => {
    const types = [{ ...e2, ...type }];
    const items = await itemsOf({ 'us-central1-a': types, 'us-east1-b': types });
    expect(items.filter(({ kind }) => kind !== 'region')).toEqual([
      { kind: 'rejected', key: name, name, reason: expect.stringContaining('has local disks in its price') },
    ]);
  });

  it('without local disks is offered although its family has some', async () => {
    const [item] = await rowsOf({ name: 'e2-standard-2-nolssd' });
    expect(item).toMatchObject({ kind: 'offer' });
  });

  it('is offered once in a region that has it in two zones, and discontinued only if both zones state it', async () => {
    const old = { ...e2, deprecated: { state: 'OBSOLETE' } };
    const offersOf = async (...zones: object[]) => {
      const [a, b] = zones;
      const items = await itemsOf({ 'us-central1-a': [a ?? e2], 'us-central1-ai1a': [b ?? e2] });
      return items.flatMap((item) => (item.kind === 'offer' ? [item.offer.excluded] : []));
    };
    expect(await offersOf(e2, e2)).toEqual([undefined]);
    expect(await offersOf(old, e2)).toEqual([undefined]);
    expect(await offersOf(e2, old)).toEqual([undefined]);
    expect(await offersOf(old, old)).toEqual(['discontinued']);
  });

  it('is sold until the last of the zones that sell it ends its sale', async () => {
    const until = (obsolete?: string, deleted?: string) => {
      return {
        ...e2,
        deprecated: { state: 'DEPRECATED', deprecated: '2025-01-01T00:00:00Z', obsolete, deleted },
      };
    };
    const endOf = async (a: object, b: object) => {
      const items = await itemsOf({ 'us-central1-a': [a], 'us-central1-b': [b] });
      return items.flatMap((item) => (item.kind === 'offer' ? [item.offer.facts?.orderableUntil] : []));
    };
    const [march, may] = ['2027-03-01T00:00:00Z', '2027-05-01T00:00:00.000-07:00'];
    expect(await endOf(until(march), until(may))).toEqual(['2027-05-01T07:00:00Z']);
    expect(await endOf(until(may, march), until(march, may))).toEqual([march]);
    expect(await endOf(until(march), until())).toEqual([undefined]);
    expect(await endOf(until(march), e2)).toEqual([undefined]);
    expect(await endOf(until(march), { ...e2, deprecated: { state: 'DELETED' } })).toEqual([march]);
  });

  it('that is obsolete in each answering zone is held while another zone does not answer', async () => {
    const old = { ...e2, deprecated: { state: 'OBSOLETE' } };
    const items = await itemsOf({ 'us-central1-a': [old] }, undefined, {
      unreachables: ['zones/us-central1-b'],
    });
    expect(items.filter(({ kind }) => kind !== 'region')).toEqual([
      {
        kind: 'unread',
        regionCode: IOWA,
        reason: expect.stringContaining('could not be reached'),
      },
    ]);
  });

  it('that differs between the zones of a region is rejected there', async () => {
    const items = await itemsOf({ 'us-central1-a': [e2], 'us-central1-b': [{ ...e2, guestCpus: 4 }] });
    expect(items).toContainEqual({
      kind: 'rejected',
      key: `e2-standard-2@${IOWA}`,
      name: 'e2-standard-2',
      regionCode: IOWA,
      reason: 'guestCpus or memoryMb differ between the zones of the region',
    });
  });
});

describe('a price of GCP', () => {
  it.each([
    ['custom machines', sku('E2 Custom Instance Core running in Americas', 99)],
    ['spot machines', sku('Spot Preemptible E2 Instance Core running in Americas', 99)],
    [
      'spot machines, only by the usage',
      sku('E2 Instance Core running in Americas', 99, { category: { usageType: 'Preemptible' } }),
    ],
    [
      'commitments',
      sku('Commitment v1: E2 Cpu in Americas for 1 Year', 99, { category: { usageType: 'Commit1Yr' } }),
    ],
    ['sole tenancy', sku('Sole Tenancy Instance E2 Core running in Americas', 99)],
    ['sole tenancy in another spelling', sku('E2 Sole Tenancy Instance Core running in Americas', 99)],
    ['reservations', sku('Reserved E2 Instance Core in Americas', 99)],
    ['a premium', sku('E2 Upgrade Premium for E2 Instance Core running in Americas', 99)],
    ['another region', sku('E2 Instance Core running in Tokyo', 99, { serviceRegions: ['asia-northeast1'] })],
  ])('is distinct from the price of %s', async (_, other) => {
    for (const skus of [
      [core, ram, other],
      [other, core, ram],
    ]) {
      const rows = await rowsOf({}, skus);
      // Half of a commitment is left out, and reported.
      const others = rows.filter((row) => row.kind !== 'rejected' || row.name !== 'commitment prices');
      expect(others).toMatchObject([{ offer: { price: { amount: '0.064' } } }]);
    }
  });

  it.each([
    ['N1 Predefined Instance Core running in Americas', 'n1-standard-2'],
    ['N2D AMD Instance Core running in Americas', 'n2d-standard-2'],
    ['T2A Arm Instance Core running in Americas', 't2a-standard-2'],
    ['M3 Memory-optimized Instance Core running in Americas', 'm3-ultramem-2'],
    ['Compute optimized Core running in Americas', 'c2-standard-2'],
    ['Compute optimized Instance Core running in Dammam', 'c2-standard-2'],
    ['Memory-optimized Instance Core running in Americas', 'm1-ultramem-2'],
    ['C4 Instance Core in Virginia', 'c4-standard-2'],
  ])('of "%s" is one of %s', async (description, name) => {
    const skus = [sku(description, 20_000_000), sku(description.replace('Core', 'Ram'), 3_000_000)];
    expect(await rowsOf({ name }, skus)).toMatchObject([{ offer: { name, price: { amount: '0.064' } } }]);
  });

  it.each([
    ['Micro Instance with burstable CPU running in Americas', 'f1-micro'],
    ['Small Instance with 1 VCPU running in Americas', 'g1-small'],
  ])('of "%s" is the price of a whole %s', async (description, name) => {
    const rows = await rowsOf({ name, isSharedCpu: true }, [sku(description, 7_600_000)]);
    expect(rows).toMatchObject([{ offer: { price: { amount: '0.0076' } } }]);
  });

  it('has whole units and a fraction', async () => {
    const tieredRates = [{ unitPrice: { currencyCode: 'USD', units: '2', nanos: 933_908_000 } }];
    const dear = { pricingInfo: [{ pricingExpression: { usageUnit: 'h', tieredRates } }] };
    expect(await rowsOf({ guestCpus: 1, memoryMb: 1024 }, [{ ...core, ...dear }, ram])).toMatchObject([
      { offer: { price: { amount: '2.936908' } } },
    ]);
  });

  // Read on 1 March 2026. Core: dollars an hour, by the time from which it is in force.
  const timeline = (...prices: readonly (readonly [nanos: number, effectiveTime?: string])[]) => ({
    ...core,
    pricingInfo: prices.flatMap(([nanos, effectiveTime]) =>
      sku('E2 Instance Core running in Americas', nanos).pricingInfo.map((price) => ({
        ...price,
        ...(effectiveTime !== undefined && { effectiveTime }),
      })),
    ),
  });
  const [old, newest, future] = ['2025-03-24T10:52:50.681Z', '2026-02-28T23:00:00Z', '2026-03-01T00:00:01Z'];

  it.each([
    ['alone', [[20_000_000]]],
    ['alone, since now', [[20_000_000, '2026-03-01T00:00:00Z']]],
    [
      'the last',
      [
        [90_000_000, old],
        [20_000_000, newest],
      ],
    ],
    [
      'the first',
      [
        [20_000_000, newest],
        [90_000_000, old],
      ],
    ],
    [
      'before a future one',
      [
        [90_000_000, old],
        [20_000_000, newest],
        [90_000_000, future],
      ],
    ],
    [
      'later, in another form of its time',
      [
        [90_000_000, newest],
        [20_000_000, '2026-03-01T00:30:00+01:00'],
      ],
    ],
    [
      'stated twice',
      [
        [20_000_000, newest],
        [20_000_000, newest],
      ],
    ],
  ] as const)('is the newest one in force: %s', async (_, prices) => {
    expect(await rowsOf({}, [timeline(...prices), ram])).toMatchObject([
      { offer: { price: { amount: '0.064' } } },
    ]);
  });

  it.each([
    ['is not in force yet', [[20_000_000, future]], 'no price of pricingInfo is in force yet'],
    [
      'is contradicted',
      [
        [20_000_000, newest],
        [30_000_000, newest],
      ],
      'several prices are in force: ',
    ],
    [
      'has no time beside another',
      [[20_000_000, newest], [20_000_000]],
      'pricingInfo[1].effectiveTime must be a time',
    ],
    [
      'has a broken time beside another',
      [
        [20_000_000, 'now'],
        [2, newest],
      ],
      'pricingInfo[0].effectiveTime must be',
    ],
  ] as const)('that %s rejects its machines', async (_, prices, reason) => {
    expect(await rowsOf({}, [timeline(...prices), ram])).toMatchObject([
      { kind: 'rejected', name: 'e2-standard-2', reason: expect.stringContaining(reason) },
    ]);
  });

  it('of an old form does not matter once another one is in force', async () => {
    const stated = timeline([20_000_000, newest]);
    const pricingInfo = [
      { effectiveTime: old, pricingExpression: { usageUnit: 'mo' } },
      ...stated.pricingInfo,
    ];
    expect(await rowsOf({}, [{ ...stated, pricingInfo }, ram])).toMatchObject([{ kind: 'offer' }]);
  });

  it.each([
    ['a free allowance', [0, 20_000_000], 'offer'],
    ['two prices', [20_000_000, 10_000_000], 'rejected'],
  ])('with %s by quantity has the one that is paid, or none', async (_, steps, kind) => {
    const tieredRates = steps.map((nanos, n) => ({
      startUsageAmount: n * 744,
      unitPrice: { currencyCode: 'USD', units: '0', nanos },
    }));
    const stepped = { ...core, pricingInfo: [{ pricingExpression: { usageUnit: 'h', tieredRates } }] };
    expect(await rowsOf({}, [stepped, ram])).toMatchObject([{ kind }]);
  });

  it.each([
    [
      'is missing in the region',
      [{ ...core, serviceRegions: ['us-east1'] }, ram],
      'no SKU prices the core of e2-standard-2 in us-central1',
    ],
    ['is missing for memory', [core], 'no SKU prices the ram of e2-standard-2 in us-central1'],
    [
      'is ambiguous',
      [core, sku('E2 Instance Core running in Iowa', 21_000_000), ram],
      'SKUs disagree about its price: 0.02 and 0.021',
    ],
    [
      'is negative',
      [core, sku('E2 Instance Ram running in Americas', -3_000_000)],
      'SKU E2 Instance : pricingInfo[0].pricingExpression.tieredRates[0].unitPrice.nanos must be a whole number, 0 or above; it is -3000000',
    ],
  ])('that %s rejects the machine by name', async (_, skus, reason) => {
    expect(await rowsOf({}, skus)).toEqual([
      { kind: 'rejected', key: `e2-standard-2@${IOWA}`, name: 'e2-standard-2', regionCode: IOWA, reason },
    ]);
  });

  it('that is the same in two SKUs is not ambiguous', async () => {
    expect(await rowsOf({}, [core, ram, { ...core, skuId: 'other' }])).toMatchObject([{ kind: 'offer' }]);
  });

  it('of zero for one part is not half a price', async () => {
    expect(await rowsOf({}, [core, sku('E2 Instance Ram running in Americas', 0)])).toMatchObject([
      { offer: { price: { amount: '0' }, excluded: 'zero_price' } },
    ]);
  });
});

describe('local disks of GCP', () => {
  const month = (description: string, nanos: number) =>
    sku(description, nanos, {
      pricingInfo: [
        {
          pricingExpression: {
            usageUnit: 'GiBy.mo',
            tieredRates: [{ unitPrice: { currencyCode: 'USD', units: '0', nanos } }],
          },
        },
      ],
    });
  const of = (family: string) => [
    sku(`${family} Instance Core running in Americas`, 30_000_000),
    sku(`${family} Instance Ram running in Americas`, 4_000_000),
  ];
  const own = (family: string, nanos = 160_000_000) =>
    month(`${family} Instance Local SSD running in Iowa`, nanos);
  const any = month('SSD backed Local Storage', 80_000_000);
  const disks = (partitionCount: number) => ({ bundledLocalSsds: { partitionCount } });
  /** Two cores and 8 GiB cost 0.092 dollars; without a rest in the cents of a month. */
  const withDisks = (gib: number, dollars: number) => ((gib * dollars) / 730 + 0.092).toFixed(9);

  it.each([
    [
      'of their series',
      { name: 'c4-standard-2-lssd', ...disks(2) },
      [...of('C4'), own('C4'), any],
      750,
      0.16,
    ],
    ['of all series', { name: 'c3-standard-2-lssd', ...disks(2) }, [...of('C3'), own('C4'), any], 750, 0.08],
    [
      'if only the description has their number',
      { name: 'c4a-highmem-2-lssd', description: '2 vCPUs, 8 GB RAM, 4 local SSDs' },
      [...of('C4A Arm'), any],
      1500,
      0.08,
    ],
    ['without a sign in the name', { name: 'z3-highmem-88', ...disks(12) }, [...of('Z3'), any], 36_000, 0.08],
    [
      'at two equal prices',
      { name: 'z3-highmem-88', ...disks(1) },
      [...of('Z3'), any, own('Z3', 80_000_000)],
      3000,
      0.08,
    ],
    [
      'of a series with prices by shape',
      { name: 'z4d-highmem-8-highlssd', ...disks(1) },
      [
        ...of('Z4D-HIGHMEM-HIGHLSSD'),
        own('Z4D-HIGHMEM-HIGHLSSD', 163_200_000),
        own('Z4D-HIGHMEM-STANDARDLSSD'),
      ],
      3500,
      0.1632,
    ],
    [
      'of bare metal, which has larger ones',
      { name: 'c4-standard-288-lssd-metal', ...disks(6) },
      [...of('C4'), own('C4')],
      18_000,
      0.16,
    ],
  ])('are part of the price of a type: %s', async (_, type, skus, gib, dollars) => {
    const [item, ...more] = await rowsOf(type, skus);
    expect(more).toEqual([]);
    const offer = item?.kind === 'offer' ? item.offer : undefined;
    expect(Number(offer?.price.amount).toFixed(9)).toBe(withDisks(gib, dollars));
    expect(offer?.facts?.localDisk).toBeCloseTo(gib * 1.073741824, 2);
    expect(offer?.excluded).toBeUndefined();
  });

  it.each([
    [
      'their price is missing',
      { name: 'c4-standard-2-lssd', ...disks(2) },
      of('C4'),
      'no SKU prices the local disks of c4-standard-2-lssd in us-central1',
    ],
    [
      'two prices are possible',
      { name: 'z3-highmem-88', ...disks(1) },
      [...of('Z3'), any, own('Z3')],
      'SKUs disagree about its price: 0.16 and 0.08',
    ],
    [
      'their number is missing',
      { name: 'c4-standard-2-lssd' },
      [...of('C4'), any],
      'their size is not known',
    ],
    [
      'their size is unknown',
      { name: 'z4m-highmem-2', ...disks(2) },
      [...of('Z4M'), any],
      'their size is not known',
    ],
    [
      'their form is unknown',
      { name: 'c4-standard-2', bundledLocalSsds: { disks: 2 } },
      [...of('C4'), any],
      'their size is not known',
    ],
    [
      'the metal has another number',
      { name: 'c4-standard-2-lssd-metal', ...disks(6) },
      [...of('C4'), any],
      'their size is not known',
    ],
  ])('reject a type if %s', async (_, type, skus, reason) => {
    expect(await rowsOf(type, skus)).toMatchObject([
      { kind: 'rejected', name: type.name, reason: expect.stringContaining(reason) },
    ]);
  });

  it('reject a type whose zones state different numbers', async () => {
    const [one, two] = [1, 2].map((number) => ({ ...e2, name: 'c4-standard-2-lssd', ...disks(number) }));
    const items = await itemsOf({ 'us-central1-a': [one ?? {}], 'us-central1-b': [two ?? {}] }, [
      ...of('C4'),
      any,
    ]);
    expect(items).toMatchObject([
      { kind: 'region' },
      { kind: 'rejected', reason: expect.stringContaining('not known') },
    ]);
  });

  it('are none for a type that states none, and cost nothing', async () => {
    const [item] = await rowsOf({ name: 'c4-standard-2', ...disks(0) }, [...of('C4'), any]);
    expect(item).toMatchObject({ offer: { price: { amount: '0.092' } } });
  });

  it('must have a price of a term, or the machine has none', async () => {
    const preemptible = { category: { usageType: 'Preemptible' } };
    const spot = of('C4').map((each) => ({
      ...each,
      ...preemptible,
      description: `Spot Preemptible ${each.description}`,
    }));
    const type = { name: 'c4-standard-2-lssd', ...disks(2) };
    const [without] = await rowsOf(type, [...of('C4'), own('C4'), ...spot]);
    expect(without?.kind === 'offer' && without.offer.terms).toBeUndefined();
    const cheap = {
      ...own('C4', 73_000_000),
      ...preemptible,
      description: 'Spot Preemptible C4 Instance Local SSD running in Iowa',
    };
    const [item] = await rowsOf(type, [...of('C4'), own('C4'), ...spot, cheap]);
    // 0.073 × 750 / 730 = 0.075 dollars an hour.
    expect(item).toMatchObject({ offer: { terms: { spot: { price: { amount: '0.167', per: 'hour' } } } } });
  });
});

describe('the URL of GCP', () => {
  it('must name the project', async () => {
    const http = { kind: 'misconfigured', message: expect.stringContaining('/compute/v1/projects/PROJECT') };
    await expect(read('https://compute.googleapis.com')).rejects.toMatchObject(http);
    await expect(read('http://127.0.0.1:1/compute/v1/projects/')).rejects.toMatchObject(http);
  });

  it('of a gateway has the prices below the part before the project', async () => {
    await using upstream = await fakeUpstream();
    const query = { maxResults: '500', returnPartialSuccess: 'true' };
    const headers = { authorization: 'Bearer token' };
    upstream.expect(
      { path: `/google${PROJECT}/aggregated/machineTypes`, query, headers },
      { json: { items: { 'zones/us-central1-a': { machineTypes: [e2] } } } },
    );
    upstream.expect(
      { path: `/google${SKUS}`, query: { currencyCode: 'USD', pageSize: '5000' }, headers },
      { json: { skus: [core, ram], nextPageToken: '' } },
    );
    gcpDatabases(upstream, undefined, { below: '/google', headers });
    expect(await read(`${upstream.url}/google${PROJECT}`)).toHaveLength(2);
  });
});

it('the pages of GCP are rejected if one is repeated', async () => {
  await using upstream = await fakeUpstream();
  const query = { maxResults: '500', returnPartialSuccess: 'true' };
  const path = `${PROJECT}/aggregated/machineTypes`;
  const json = { items: { 'zones/us-central1-a': { machineTypes: [e2] } }, nextPageToken: 'again' };
  upstream.expect({ path, query }, { json });
  upstream.expect({ path, query: { ...query, pageToken: 'again' } }, { json });
  await expect(read(`${upstream.url}${PROJECT}`)).rejects.toMatchObject({
    kind: 'invalid',
    message: expect.stringContaining('repeats a page'),
  });
});

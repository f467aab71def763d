import { describe, expect, it } from 'vitest';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter } from '../../../src/sources/providers/azure.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { type FakeAnswer, fakeUpstream } from '../../support/fake-upstream.ts';

const SUBSCRIPTION = '/subscriptions/s1';
const PRICES = '/api/retail/prices';
const listOf = (what: string, priceType = 'Consumption') => ({
  'api-version': '2023-01-01-preview',
  $filter: `${what} and priceType eq '${priceType}'`,
});
const MACHINES = "serviceName eq 'Virtual Machines'";
const machinesIn = (region: string, priceType?: string) =>
  listOf(`${MACHINES} and armRegionName eq '${region}'`, priceType);
const FILTER = machinesIn('eastus');
const LOCATIONS = { path: `${SUBSCRIPTION}/locations`, query: { 'api-version': '2022-12-01' } };
const ADDRESSES = listOf("serviceName eq 'Virtual Network' and productName eq 'IP Addresses'");
/** The other lists, which are empty here, unless a test gives addresses. */
const OTHERS = [
  listOf("serviceName eq 'Storage' and productName eq 'Azure Premium SSD v2'"),
  listOf("serviceName eq 'Bandwidth' and meterName eq 'Standard Data Transfer Out'"),
  ADDRESSES,
  listOf("serviceName eq 'Azure Database for PostgreSQL'"),
  listOf("serviceName eq 'Azure Database for MySQL'"),
];
const EMPTY = { json: { Items: [], NextPageLink: null, Count: 0 } };
/** Reports of the lists that are empty here. */
const isOfMachines = (item: CatalogueItem) =>
  item.kind !== 'unread-prices' && (item.kind !== 'rejected' || !/ (prices|plans)$/.test(item.key));
const D2 = 'Standard_D2s_v5';

const price = (changes: object = {}) => ({
  currencyCode: 'USD',
  retailPrice: 0.096,
  armRegionName: 'eastus',
  location: 'US East',
  effectiveStartDate: '2023-04-01T00:00:00Z',
  meterName: 'D2s v5',
  productName: 'Virtual Machines Dsv5 Series',
  skuName: 'D2s v5',
  unitOfMeasure: '1 Hour',
  type: 'Consumption',
  isPrimaryMeterRegion: true,
  armSkuName: D2,
  ...changes,
});
const sku = ({
  capabilities = {},
  ...changes
}: {
  capabilities?: object;
  [field: string]: unknown;
} = {}) => ({
  resourceType: 'virtualMachines',
  name: D2,
  capabilities: Object.entries({ vCPUs: '2', MemoryGB: '8', ...capabilities }).map(([name, value]) => ({
    name,
    value,
  })),
  restrictions: [],
  ...changes,
});
const windows = { productName: 'Virtual Machines Dsv5 Series Windows' };

/** One page of prices for each region, and its SKUs. */
async function itemsOf(
  prices: readonly { readonly armRegionName: string }[],
  skus: Readonly<Record<string, FakeAnswer | readonly object[]>> = { eastus: [sku()] },
  addresses: readonly object[] = [],
  locations: readonly object[] = Object.keys(skus).map((name) => ({ name })),
): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  upstream.expect(LOCATIONS, { json: { value: locations } });
  const listed = { json: { Items: addresses, NextPageLink: null, Count: addresses.length } };
  for (const query of OTHERS)
    upstream.expect({ path: PRICES, query, times: 'any' }, query === ADDRESSES ? listed : EMPTY);
  for (const [region, answer] of Object.entries(skus)) {
    const Items = prices.filter(({ armRegionName }) => armRegionName === region);
    const json = { Items, NextPageLink: null, Count: Items.length };
    upstream.expect({ path: PRICES, query: machinesIn(region), times: 'any' }, { json });
    upstream.expect({ path: PRICES, query: machinesIn(region, 'Reservation'), times: 'any' }, EMPTY);
    const query = { 'api-version': '2021-07-01', $filter: `location eq '${region}'` };
    const given: FakeAnswer = 'length' in answer ? { json: { value: answer } } : answer;
    upstream.expect({ path: `${SUBSCRIPTION}/providers/Microsoft.Compute/skus`, query, times: 'any' }, given);
  }
  return await read(upstream.url + SUBSCRIPTION);
}

async function read(baseUrl: string): Promise<CatalogueItem[]> {
  const limits = { deadlineMs: 5_000, maxBytes: 1_000_000 };
  const http = openSourceHttp({ baseUrl, credentials: 'bearer', token: 'token', ...limits });
  const found: CatalogueItem[] = [];
  for await (const item of adapter.catalogue({ http, now: () => new Date('2026-03-01T00:00:00Z') }))
    found.push(item);
  return found.filter((item) => item.kind !== 'region' && item.kind !== 'total' && isOfMachines(item));
}

const amounts = (items: readonly CatalogueItem[]) =>
  items.map((item) => (item.kind === 'offer' ? item.offer.price.amount : item));

describe('a size of Azure', () => {
  it.each([
    ['is offered', {}, undefined],
    ['with a GPU is accelerated', { capabilities: { GPUs: '1' } }, 'accelerated'],
    ['without a GPU is not accelerated', { capabilities: { GPUs: '0' } }, undefined],
    ['with a retirement date is offered', { capabilities: { RetirementDateUtc: '05/01/2028' } }, undefined],
    [
      'that the subscription may not deploy is unavailable',
      { restrictions: [{ type: 'Location' }] },
      'unavailable',
    ],
    ['that one zone lacks is offered', { restrictions: [{ type: 'Zone' }] }, undefined],
  ])('%s', async (_, changes, excluded) => {
    const [item, ...more] = await itemsOf([price()], { eastus: [sku(changes)] });
    expect(more).toEqual([]);
    expect(item).toMatchObject({ kind: 'offer', offer: { name: D2, cpu: 2, ram: 8, ramUnit: 'Binary' } });
    expect(item?.kind === 'offer' ? item.offer.excluded : 'rejected').toBe(excluded);
  });

  it('of the N series is accelerated, also with chips other than GPUs', async () => {
    const name = 'Standard_NP10s';
    const [item] = await itemsOf([price({ armSkuName: name })], { eastus: [sku({ name })] });
    expect(item).toMatchObject({ kind: 'offer', offer: { excluded: 'accelerated' } });
  });

  it('that is constrained has its available vCPUs', async () => {
    const capabilities = { vCPUs: '4', vCPUsAvailable: '2', MemoryGB: '32' };
    const [item] = await itemsOf([price()], { eastus: [sku({ capabilities })] });
    expect(item).toMatchObject({ offer: { cpu: 2, ram: 32 } });
  });

  // A walk may have lost its ordinary row: the machine keeps its state until several runs miss it.
  it.each([
    ['Windows', windows],
    ['Windows, by the name of its meter', { meterName: 'D2s v5 Windows' }],
    ['Windows, by the name of its SKU', { skuName: 'D2s v5 - Windows' }],
    ['Windows, shortened', { productName: 'Virtual Machines NCCadsv5 Srs Win' }],
    ['Windows, without a blank', { productName: 'Virtual Machines Dsv5 SeriesWindows' }],
    ['Red Hat', { productName: 'Virtual Machines Dsv5 Series RHEL' }],
  ])('that has only a price with %s counts as missing, and is not licensed', async (_, licence) => {
    const other = price({ armSkuName: 'Standard_B2s' });
    const skus = { eastus: [sku(), sku({ name: 'Standard_B2s' })] };
    expect(await itemsOf([price({ ...licence, retailPrice: 0.188 }), other], skus)).toMatchObject([
      { kind: 'offer', offer: { name: 'Standard_B2s' } },
    ]);
  });

  const forms = ['Series Window', 'Series Wi', 'Series W', 'Serie', 'Series Li', 'Series 2'].map(
    (end) => `Virtual Machines Dsv5 ${end}`,
  );
  it.each(forms)('is rejected if its price is that of "%s"', async (productName) => {
    const reason = `productName must end with Series, Linux or a licence; it is "${productName}"`;
    expect(await itemsOf([price({ productName })])).toEqual([
      { kind: 'rejected', key: `${D2}@eastus`, name: D2, regionCode: 'eastus', reason },
    ]);
  });

  it('keeps its ordinary price beside prices of unknown forms, which one row reports', async () => {
    const cut = forms.map((productName) => price({ productName, retailPrice: 0.188 }));
    const items = await itemsOf([...cut, price()]);
    expect(amounts(items.filter(({ kind }) => kind === 'offer'))).toEqual(['0.096']);
    expect(items.filter(({ kind }) => kind === 'rejected')).toMatchObject([
      {
        key: 'product names',
        reason: expect.stringContaining(`6 prices are left out; the first is ${D2}@eastus`),
      },
    ]);
  });

  it.each([
    ...['Virtual Machines Dsv5 Series', 'DCsv3 Series Linux', 'Virtual Machines Dsv7-series', 'Linux'],
    'Virtual Machines NCCadsv5 Srs',
  ])('has the price of "%s"', async (productName) => {
    expect(amounts(await itemsOf([price({ productName })]))).toEqual(['0.096']);
  });

  // New accounts have some hours of B1s and others free.
  it.each([
    ['by its name', { meterName: 'D2s v5 - Free' }],
    ['by its id', { meterId: 'free' }],
    ['by its SKU', { skuName: 'D2s v5 Free' }],
  ])('is not free for a newer meter of free hours, which differs %s', async (_, meter) => {
    const free = price({ retailPrice: 0, effectiveStartDate: '2025-06-01T00:00:00Z', ...meter });
    expect(amounts(await itemsOf([price(), free]))).toEqual(['0.096']);
    expect(amounts(await itemsOf([free, price()]))).toEqual(['0.096']);
  });

  it('is free if the newest price of its only meter is zero', async () => {
    const free = price({ retailPrice: 0, effectiveStartDate: '2025-06-01T00:00:00Z' });
    expect(await itemsOf([price(), free])).toMatchObject([{ offer: { excluded: 'zero_price' } }]);
  });

  it.each([
    ['Spot prices', { skuName: 'D2s v5 Spot', meterName: 'D2s v5 Spot' }],
    ['Low Priority prices', { skuName: 'D2s v5 Low Priority', meterName: 'D2s v5 Low Priority' }],
    ['expired prices', { meterName: 'D2s v5 Expired' }],
    ['reservations', { type: 'Reservation' }],
    ['prices for development and test', { type: 'DevTestConsumption' }],
    ['prices of a dedicated host', { productName: 'Dsv5 Series Dedicated Host' }],
    ['prices of a dedicated host, in one word', { productName: 'Dsv5 Series DedicatedHost' }],
    ['prices of cloud services', { productName: 'Dv5 Series Cloud Services' }],
    ['prices of cloud services, in one word', { productName: 'Dv5 Series CloudServices' }],
    ['prices of other things than sizes', { armSkuName: '' }],
    ['prices above a quantity', { tierMinimumUnits: 1000 }],
    ['a future price', { effectiveStartDate: '2026-03-02T00:00:00Z' }],
    ['a past price', { effectiveEndDate: '2026-02-01T00:00:00Z' }],
    ['a price with Windows', windows],
    ['an older price', { effectiveStartDate: '2021-01-01T00:00:00Z' }],
    ['a price of another meter', { isPrimaryMeterRegion: false }],
  ])('also has %s, which do not price it', async (_, changes) => {
    const other = price({ retailPrice: 9, ...changes });
    expect(amounts(await itemsOf([price(), other]))).toEqual(['0.096']);
    expect(amounts(await itemsOf([other, price()]))).toEqual(['0.096']);
  });

  it('that has only Spot prices is not sold', async () => {
    const spot = price({ armSkuName: 'Standard_Spare', skuName: 'Spare Spot' });
    expect(
      amounts(await itemsOf([price(), spot], { eastus: [sku(), sku({ name: 'Standard_Spare' })] })),
    ).toEqual(['0.096']);
  });

  it('with only prices of secondary meters has those', async () => {
    expect(amounts(await itemsOf([price({ isPrimaryMeterRegion: false })]))).toEqual(['0.096']);
  });

  it('keeps a price unchanged, with any number of places', async () => {
    expect(amounts(await itemsOf([price({ retailPrice: 0.00743999984 })]))).toEqual(['0.00743999984']);
  });

  it.each([
    [
      'two prices are in force',
      [price(), price({ retailPrice: 0.1 })],
      [sku()],
      'several prices are in force: 0.096, 0.1',
    ],
    [
      'its price is in euro',
      [price({ currencyCode: 'EUR' }), price({ armSkuName: 'x' })],
      [sku()],
      'currencyCode must be USD, as requested; it is "EUR"',
    ],
    [
      'its price is for 100 hours',
      [price({ unitOfMeasure: '100 Hours' }), price({ armSkuName: 'x' })],
      [sku()],
      'unitOfMeasure must be 1 Hour; it is "100 Hours"',
    ],
    [
      'its memory is missing',
      [price()],
      [sku({ capabilities: { MemoryGB: undefined } })],
      'capabilities[1].value',
    ],
    [
      'its memory is not a number',
      [price()],
      [sku({ capabilities: { MemoryGB: '8 GB' } })],
      'capabilities.MemoryGB must be a number above 0',
    ],
    [
      'its vCPUs are missing',
      [price()],
      [sku({ capabilities: { vCPUs: '' } })],
      'capabilities.vCPUs must be a whole number above 0',
    ],
  ])('is rejected by name if %s', async (_, prices, skus, reason) => {
    const rows = await itemsOf(prices, { eastus: skus });
    expect(rows.filter((row) => row.kind === 'rejected' && row.name === D2)).toEqual([
      {
        kind: 'rejected',
        key: `${D2}@eastus`,
        name: D2,
        regionCode: 'eastus',
        reason: expect.stringContaining(reason),
      },
    ]);
    expect(rows.filter((row) => row.kind === 'offer')).toEqual([]);
  });

  it('that its region does not list is unavailable there, if another region describes it', async () => {
    const west = { armRegionName: 'westeurope', location: 'EU West' };
    const skus = { eastus: [sku()], westeurope: [sku({ name: 'Standard_B2s' })] };
    expect(await itemsOf([price(), price(west)], skus)).toMatchObject([
      { offer: { regionCode: 'eastus' } },
      { offer: { regionCode: 'westeurope', excluded: 'unavailable' } },
    ]);
  });

  it('that no region lists is one of the sizes that are not offered to the subscription', async () => {
    const hidden = Array.from({ length: 394 }, (_, n) => `Standard_H${n}`);
    const west = { armRegionName: 'westeurope', location: 'EU West' };
    const prices = hidden.flatMap((armSkuName) => [price({ armSkuName }), price({ armSkuName, ...west })]);
    const rows = await itemsOf(prices, { eastus: [sku()], westeurope: [sku()] });
    expect(rows).toEqual([
      {
        kind: 'rejected',
        key: 'sizes',
        name: 'sizes',
        reason: expect.stringMatching(
          /^394 sizes are not offered to this subscription: Standard_H0, .* and 374 more\. /,
        ),
        waits: true,
      },
    ]);
  });

  it('is not considered unlisted while a SKU of its region has no name', async () => {
    const rows = await itemsOf([price()], { eastus: [sku({ name: 7 }), sku({ name: 'Standard_B2s' })] });
    expect(rows).toEqual([
      expect.objectContaining({ kind: 'rejected', key: 'SKU 1@eastus', regionCode: 'eastus' }),
    ]);
  });
});

describe('a region of Azure', () => {
  const west = { armRegionName: 'westeurope', location: 'EU West' };
  it.each([
    ['fails', { status: 503 }, 'answers 503'],
    ['refuses', { status: 403 }, 'answers 403'],
    ['lists nothing', { json: { value: [] } }, 'lists nothing'],
    ['breaks off', { json: { value: [sku()] }, cutAfter: 20 }, 'gave no whole answer'],
  ])('that %s is held, while the others are reported', async (_, answer, reason) => {
    const rows = await itemsOf([price(), price(west)], { eastus: answer, westeurope: [sku()] });
    expect(rows).toEqual([
      { kind: 'unread', regionCode: 'eastus', reason: expect.stringContaining(reason) },
      expect.objectContaining({ offer: expect.objectContaining({ regionCode: 'westeurope' }) }),
    ]);
  });

  // The recorded price list has the price of Standard_B1s in usgovvirginia: rshade/finfocus, 2025.
  it('of Azure Government, another cloud, is not read: the subscription does not list it', async () => {
    const government = { armRegionName: 'usgovvirginia', location: 'US Gov Virginia' };
    const address = (changes: object = {}) =>
      price({ meterName: 'Standard IPv4 Static Public IP', retailPrice: 0.005, ...changes });
    const rows = await itemsOf([price(), price(government)], { eastus: [sku()] }, [
      address(),
      address(government),
    ]);
    expect(rows).toEqual([
      expect.objectContaining({ offer: expect.objectContaining({ regionCode: 'eastus' }) }),
      expect.objectContaining({ kind: 'region-price', regionCode: 'eastus' }),
    ]);
  });

  it.each([
    ['is a group of regions', { name: 'europe', metadata: { regionType: 'Logical' } }],
    ['tests Azure itself', { name: 'eastus2euap', metadata: { regionType: 'Physical' } }],
  ])('that %s is not read', async (_, location) => {
    const east = { name: 'eastus', metadata: { regionType: 'Physical' } };
    expect(amounts(await itemsOf([price()], undefined, [], [east, location]))).toEqual(['0.096']);
  });

  it('is held if its name cannot be read, while the others are reported', async () => {
    const locations = [{ name: 'eastus' }, { name: "west'us" }, {}];
    expect(await itemsOf([price()], undefined, [], locations)).toMatchObject([
      {
        kind: 'unread',
        regionCode: "west'us",
        reason: expect.stringContaining('must be a name such as eastus'),
      },
      { kind: 'rejected', key: 'location 3' },
      { kind: 'offer' },
    ]);
  });

  it('is held if its prices are gone, while the others are reported', async () => {
    const skus = { eastus: [sku()], westeurope: [sku()] };
    expect(await itemsOf([price(west)], skus)).toMatchObject([
      { kind: 'unread', regionCode: 'eastus', reason: expect.stringContaining('lists nothing') },
      { kind: 'offer', offer: { regionCode: 'westeurope' } },
    ]);
  });

  it('is held if its list ignores the requested region', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect(LOCATIONS, { json: { value: [{ name: 'eastus' }, { name: 'westeurope' }] } });
    for (const region of ['eastus', 'westeurope']) {
      const json = { Items: [price(west)], NextPageLink: null, Count: 1 };
      upstream.expect({ path: PRICES, query: machinesIn(region) }, { json });
      const query = { 'api-version': '2021-07-01', $filter: `location eq '${region}'` };
      upstream.expect(
        { path: `${SUBSCRIPTION}/providers/Microsoft.Compute/skus`, query },
        { json: { value: [sku()] } },
      );
    }
    upstream.expect({ path: PRICES, query: machinesIn('westeurope', 'Reservation') }, EMPTY);
    for (const query of OTHERS) upstream.expect({ path: PRICES, query }, EMPTY);
    expect(await read(upstream.url + SUBSCRIPTION)).toMatchObject([
      { kind: 'unread', reason: expect.stringContaining('requested armRegionName eastus, got westeurope') },
      { kind: 'offer', offer: { regionCode: 'westeurope' } },
    ]);
  });

  it('fails the run at once if it requires a pause', async () => {
    const limited = { status: 429, headers: { 'retry-after': '17' } };
    await expect(
      itemsOf([price(), price(west)], { eastus: limited, westeurope: [sku()] }),
    ).rejects.toMatchObject({
      kind: 'retry',
      retryAfterMs: 17_000,
    });
  });
});

describe('the URL of Azure', () => {
  it('must name the subscription', async () => {
    await expect(read('https://management.azure.com')).rejects.toMatchObject({
      kind: 'misconfigured',
      message: expect.stringContaining('https://management.azure.com/subscriptions/SUBSCRIPTION'),
    });
  });

  it('of a gateway has the prices below the part before the subscription, and links are followed there', async () => {
    await using upstream = await fakeUpstream();
    const headers = { authorization: 'Bearer token' };
    const NextPageLink = `https://prices.azure.com:443${PRICES}?$filter=x&$skip=1`;
    upstream.expect(
      { path: `/azure${PRICES}`, query: FILTER, headers },
      { json: { Items: [price()], NextPageLink, Count: 1 } },
    );
    upstream.expect(
      { path: `/azure${PRICES}`, query: { $filter: 'x', $skip: '1' }, headers },
      { json: { Items: [], NextPageLink: '', Count: 0 } },
    );
    upstream.expect(
      { ...LOCATIONS, path: `/azure${LOCATIONS.path}`, headers },
      { json: { value: [{ name: 'eastus' }] } },
    );
    for (const other of [machinesIn('eastus', 'Reservation'), ...OTHERS])
      upstream.expect({ path: `/azure${PRICES}`, query: other, headers }, EMPTY);
    const query = { 'api-version': '2021-07-01', $filter: "location eq 'eastus'" };
    upstream.expect(
      { path: `/azure${SUBSCRIPTION}/providers/Microsoft.Compute/skus`, query, headers },
      { json: { value: [sku()] } },
    );
    expect(amounts(await read(`${upstream.url}/azure${SUBSCRIPTION}`))).toEqual(['0.096']);
  });
});

it.each([
  ['is repeated', `https://prices.azure.com${PRICES}?${new URLSearchParams(FILTER)}`, 'repeats a page'],
  ['is not a URL', 'page 2', 'is no URL'],
])('the pages of Azure are rejected if the next one %s', async (_, NextPageLink, problem) => {
  await using upstream = await fakeUpstream();
  const json = { Items: [price()], NextPageLink, Count: 1 };
  upstream.expect(LOCATIONS, { json: { value: [{ name: 'eastus' }] } });
  const query = { 'api-version': '2021-07-01', $filter: "location eq 'eastus'" };
  upstream.expect(
    { path: `${SUBSCRIPTION}/providers/Microsoft.Compute/skus`, query },
    { json: { value: [sku()] } },
  );
  upstream.expect({ path: PRICES, query: FILTER }, { json });
  await expect(read(upstream.url + SUBSCRIPTION)).rejects.toMatchObject({
    kind: 'invalid',
    message: expect.stringContaining(problem),
  });
});

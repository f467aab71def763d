import { type CatalogueCase, fixture, offersIn } from './catalogue-case.ts';

const PRICES = '/api/retail/prices';
const SKUS = '/subscriptions/{subscription}/providers/Microsoft.Compute/skus';
const SUBSCRIPTION = '/subscriptions/00000000-0000-0000-0000-000000000001';
const VIRGINIA = 'eastus';
const NETHERLANDS = 'westeurope';
const IRELAND = 'northeurope';

const offer = offersIn('USD');

const prices = { path: PRICES, list: 'Items' };
const filter = { $filter: "serviceName eq 'Virtual Machines' and priceType eq 'Consumption'" };
const skus = {
  path: `${SUBSCRIPTION}/providers/Microsoft.Compute/skus`,
  endpoint: SKUS,
  list: 'value',
  prices: [],
};
const skusIn = (region: string) => ({ 'api-version': '2021-07-01', $filter: `location eq '${region}'` });

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  basePath: SUBSCRIPTION,
  pages: [
    {
      ...prices,
      query: filter,
      json: fixture('azure/prices-1.json'),
      required: [
        '/Items',
        '/Count',
        '/NextPageLink',
        ...[
          'armRegionName',
          'armSkuName',
          'productName',
          'skuName',
          'meterName',
          'type',
          'effectiveStartDate',
          'location',
          'currencyCode',
          'unitOfMeasure',
          'retailPrice',
        ].map((name) => `/Items/12/${name}`),
      ],
      prices: ['/Items/0/retailPrice', '/Items/12/retailPrice'],
    },
    {
      ...prices,
      query: { ...filter, $skip: '17' },
      json: fixture('azure/prices-2.json'),
      required: ['/Items', '/NextPageLink', '/Items/0/retailPrice'],
      prices: ['/Items/0/retailPrice'],
    },
    {
      ...skus,
      region: VIRGINIA,
      query: skusIn(VIRGINIA),
      json: fixture('azure/skus-eastus.json'),
      required: [
        '/value',
        '/value/1/resourceType',
        '/value/1/name',
        '/value/1/capabilities',
        '/value/1/capabilities/2/name',
        '/value/1/capabilities/2/value',
        '/value/1/restrictions',
        '/value/6/restrictions/0/type',
      ],
    },
    {
      ...skus,
      region: NETHERLANDS,
      query: skusIn(NETHERLANDS),
      json: fixture('azure/skus-westeurope-1.json'),
      required: ['/value', '/value/0/capabilities/4/value'],
    },
    {
      ...skus,
      region: NETHERLANDS,
      query: { ...skusIn(NETHERLANDS), $skiptoken: '2' },
      json: fixture('azure/skus-westeurope-2.json'),
      required: ['/value'],
    },
    {
      ...skus,
      region: IRELAND,
      query: skusIn(IRELAND),
      json: fixture('azure/skus-northeurope.json'),
      required: ['/value/0/name'],
    },
  ],
  empty: {
    [PRICES]: { BillingCurrency: 'USD', Items: [], NextPageLink: null, Count: 0 },
    [SKUS]: { value: [] },
  },
  uncounted: [SKUS],
  omitsNext: [SKUS],
  regions: { [VIRGINIA]: 'US East', [NETHERLANDS]: 'EU West', [IRELAND]: 'EU North' },
  offers: [
    // Windows, Spot, Low Priority, DevTest, reservations, and past or future prices are not read.
    offer('Standard_D2s_v5', VIRGINIA, 2, 8, '0.096'),
    // Billed as four, two of them available.
    offer('Standard_E4-2as_v5', VIRGINIA, 2, 32, '0.226'),
    offer('Standard_NC4as_T4_v3', VIRGINIA, 4, 28, '0.526', 'accelerated'),
    offer('Standard_NP10s', VIRGINIA, 10, 168, '1.65', 'accelerated'),
    offer('Standard_D1', VIRGINIA, 1, 3.5, '0.077', 'deprecated'),
    // One zone of three lacks it.
    offer('Standard_B2s', VIRGINIA, 2, 4, '0.0416'),
    offer('Standard_B1ls', VIRGINIA, 1, 0.5, '0', 'zero_price'),
    offer('Standard_D2s_v5', NETHERLANDS, 2, 8, '0.115'),
    // Without Windows it has no price there.
    offer('Standard_B2s', NETHERLANDS, 2, 4, '0.0528', 'licensed'),
    // Priced there, but not in the region's list.
    offer('Standard_E4-2as_v5', NETHERLANDS, 2, 32, '0.27', 'unavailable'),
    offer('Standard_E4-2as_v5', IRELAND, 2, 32, '0.25'),
    offer('Standard_F2s_v2', NETHERLANDS, 2, 4, '0.097', 'unavailable'),
  ],
  facts: {
    Standard_D2s_v5: { architecture: 'x86_64', generation: 'v5', localDisk: 0 },
    'Standard_E4-2as_v5': { generation: 'v5', localDisk: 0 },
    Standard_NC4as_T4_v3: { generation: 'v3', localDisk: 0 },
    Standard_NP10s: { localDisk: 0 },
    Standard_D1: { localDisk: 0 },
    Standard_B2s: { architecture: 'arm64', localDisk: 8.59 },
    Standard_B1ls: { localDisk: 0 },
    Standard_F2s_v2: { generation: 'v2', localDisk: 0 },
  },
  rejected: [
    { key: `Standard_D2as_v5@${NETHERLANDS}`, reason: /^several prices are in force: 0\.104, 0\.105/ },
    { key: 'Standard_Secret1', reason: /^has a price, but no region lists it among its SKUs/ },
    { key: `Standard_D4s_v5@${NETHERLANDS}`, reason: /^unitOfMeasure must be 1 Hour; it is "100 Hours"/ },
    { key: `Standard_E2s_v5@${NETHERLANDS}`, reason: /^capabilities\.MemoryGB is missing/ },
  ],
};

import type { OfferedPlan } from '../../src/domain/database-plan.ts';
import type { OfferedRegionPrice } from '../../src/domain/prices/region-price.ts';
import { type CatalogueCase, fixture, offersIn } from './catalogue-case.ts';

const PRICES = '/api/retail/prices';
const LOCATIONS = '/subscriptions/{subscription}/locations';
const SKUS = '/subscriptions/{subscription}/providers/Microsoft.Compute/skus';
const SUBSCRIPTION = '/subscriptions/00000000-0000-0000-0000-000000000001';
const VIRGINIA = 'eastus';
const NETHERLANDS = 'westeurope';
const IRELAND = 'northeurope';

const offer = offersIn('USD');

const prices = { path: PRICES, list: 'Items' };
const listOf = (what: string, priceType = 'Consumption') => ({
  'api-version': '2023-01-01-preview',
  $filter: `${what} and priceType eq '${priceType}'`,
});
const machinesIn = (region: string, priceType?: string) =>
  listOf(`serviceName eq 'Virtual Machines' and armRegionName eq '${region}'`, priceType);
const offered = (term: { readonly amount?: string; readonly upfront?: string }) => ({
  price: { amount: term.amount ?? '0', per: 'hour' as const, currency: 'USD' },
  ...(term.upfront !== undefined && { upfront: term.upfront }),
});
const regionPrice = (
  form: Pick<OfferedRegionPrice, 'item' | 'unit' | 'per'>,
  name: string,
  steps: readonly (readonly [string, string])[],
  isDefault = true,
): OfferedRegionPrice => ({
  ...form,
  name,
  isDefault,
  currency: 'USD',
  tiers: steps.map(([from, amount]) => ({ from, amount })),
});
const disk = (amount: string) =>
  regionPrice({ item: 'block_storage', unit: 'GiB', per: 'hour' }, 'Premium SSD v2 LRS', [['0', amount]]);
const TRAFFIC = { item: 'traffic_out', unit: 'GB', per: undefined } as const;
const MICROSOFT = regionPrice(TRAFFIC, 'Routing Preference: Microsoft network', [
  ['0', '0'],
  ['100', '0.087'],
  ['10335', '0.083'],
  ['51295', '0.07'],
  ['153695', '0.05'],
]);
const ADDRESS = regionPrice({ item: 'ipv4', unit: 'address', per: 'hour' }, 'Standard IPv4', [
  ['0', '0.005'],
]);
const plan = (engine: string, name: string, cpu: number, ram: number, amount: string): OfferedPlan => ({
  ...{ engine, name, nodes: 1, cpu, ram, ramUnit: 'Binary', storage: 0 },
  price: { amount, per: 'hour', currency: 'USD' },
});
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
      path: `${SUBSCRIPTION}/locations`,
      endpoint: LOCATIONS,
      query: { 'api-version': '2022-12-01' },
      json: fixture('azure/locations.json'),
      list: 'value',
      required: ['/value', '/value/0/name'],
      prices: [],
    },
    {
      ...prices,
      region: VIRGINIA,
      query: machinesIn(VIRGINIA),
      json: fixture('azure/prices-eastus-1.json'),
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
      otherRequired: [
        '/Items/2/retailPrice',
        '/Items/0/savingsPlan/1/retailPrice',
        '/Items/0/savingsPlan/0/term',
      ],
      otherPrices: ['/Items/2/retailPrice', '/Items/0/savingsPlan/0/retailPrice'],
      prices: ['/Items/0/retailPrice', '/Items/12/retailPrice'],
    },
    {
      ...prices,
      region: VIRGINIA,
      query: { ...machinesIn(VIRGINIA), $skip: '17' },
      json: fixture('azure/prices-eastus-2.json'),
      required: ['/Items', '/NextPageLink'],
      prices: [],
    },
    {
      ...prices,
      region: NETHERLANDS,
      query: machinesIn(NETHERLANDS),
      json: fixture('azure/prices-westeurope.json'),
      required: ['/Items', '/NextPageLink', '/Items/0/retailPrice'],
      prices: ['/Items/0/retailPrice'],
    },
    {
      ...prices,
      region: IRELAND,
      query: machinesIn(IRELAND),
      json: fixture('azure/prices-northeurope.json'),
      required: ['/Items', '/Count'],
      prices: ['/Items/0/retailPrice'],
    },
    {
      ...prices,
      region: VIRGINIA,
      query: machinesIn(VIRGINIA, 'Reservation'),
      json: fixture('azure/reservations-eastus.json'),
      required: ['/Items', '/NextPageLink', '/Count'],
      otherRequired: [
        '/Items/0/productName',
        '/Items/0/retailPrice',
        '/Items/1/reservationTerm',
        '/Items/1/currencyCode',
        '/Items/1/effectiveStartDate',
      ],
      otherPrices: ['/Items/0/retailPrice', '/Items/1/retailPrice'],
      prices: [],
    },
    ...[NETHERLANDS, IRELAND].map((region) => ({
      ...prices,
      region,
      query: machinesIn(region, 'Reservation'),
      json: fixture(`azure/reservations-${region}.json`),
      required: ['/Items'],
      prices: [],
    })),
    {
      ...prices,
      query: listOf("serviceName eq 'Storage' and productName eq 'Azure Premium SSD v2'"),
      json: fixture('azure/disks.json'),
      required: [],
      otherRequired: ['/Items', '/Items/0/unitOfMeasure', '/Items/0/meterName', '/Items/0/currencyCode'],
      otherPrices: ['/Items/0/retailPrice', '/Items/4/retailPrice'],
      prices: [],
    },
    {
      ...prices,
      query: listOf("serviceName eq 'Bandwidth' and meterName eq 'Standard Data Transfer Out'"),
      json: fixture('azure/traffic.json'),
      required: [],
      otherRequired: [
        '/NextPageLink',
        '/Items/0/productName',
        '/Items/1/unitOfMeasure',
        '/Items/2/retailPrice',
      ],
      // Without one step, the price below it would seem to continue.
      otherPrices: ['/Items/1/retailPrice', '/Items/9/retailPrice', '/Items/11/retailPrice'],
      prices: [],
    },
    {
      ...prices,
      query: listOf("serviceName eq 'Virtual Network' and productName eq 'IP Addresses'"),
      json: fixture('azure/addresses.json'),
      required: [],
      otherRequired: ['/Count', '/Items/0/meterName', '/Items/2/retailPrice'],
      otherPrices: ['/Items/0/retailPrice'],
      prices: [],
    },
    {
      ...prices,
      query: listOf("serviceName eq 'Azure Database for PostgreSQL'"),
      json: fixture('azure/servers-postgresql.json'),
      required: [],
      otherRequired: [
        ...['/Items', '/NextPageLink', '/Count', '/Items/0/armRegionName', '/Items/0/meterName'],
        ...['productName', 'type', 'effectiveStartDate', 'unitOfMeasure', 'currencyCode', 'retailPrice'].map(
          (name) => `/Items/0/${name}`,
        ),
      ],
      otherPrices: ['/Items/0/retailPrice', '/Items/1/retailPrice'],
      prices: [],
      additional: true,
    },
    {
      ...prices,
      query: listOf("serviceName eq 'Azure Database for MySQL'"),
      json: fixture('azure/servers-mysql.json'),
      required: [],
      otherRequired: ['/Items', '/Items/0/skuName'],
      otherPrices: ['/Items/0/retailPrice'],
      prices: [],
      additional: true,
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
    [LOCATIONS]: { value: [] },
  },
  uncounted: [LOCATIONS, SKUS],
  omitsNext: [SKUS],
  regions: { [VIRGINIA]: 'US East', [NETHERLANDS]: 'EU West', [IRELAND]: 'EU North' },
  offers: [
    // Windows, Spot, Low Priority, DevTest, reservations, and past or future prices are not read.
    offer('Standard_D2s_v5', VIRGINIA, 2, 8, '0.096'),
    // Billed as four, two of them available.
    offer('Standard_E4-2as_v5', VIRGINIA, 2, 32, '0.226'),
    offer('Standard_NC4as_T4_v3', VIRGINIA, 4, 28, '0.526', 'accelerated'),
    offer('Standard_NP10s', VIRGINIA, 10, 168, '1.65', 'accelerated'),
    offer('Standard_D1', VIRGINIA, 1, 3.5, '0.077'),
    // One zone of three lacks it.
    offer('Standard_B2s', VIRGINIA, 2, 4, '0.0416'),
    offer('Standard_B1ls', VIRGINIA, 1, 0.5, '0', 'zero_price'),
    offer('Standard_D2s_v5', NETHERLANDS, 2, 8, '0.115'),
    // Priced there, but not in the region's list.
    offer('Standard_E4-2as_v5', NETHERLANDS, 2, 32, '0.27', 'unavailable'),
    offer('Standard_E4-2as_v5', IRELAND, 2, 32, '0.25'),
    offer('Standard_D2s_v5', IRELAND, 2, 8, '0.107', 'unavailable'),
    offer('Standard_F2s_v2', NETHERLANDS, 2, 4, '0.097', 'unavailable'),
  ],
  facts: {
    Standard_D2s_v5: { architecture: 'x86_64', generation: 'v5', localDisk: 0 },
    'Standard_E4-2as_v5': { generation: 'v5', localDisk: 0 },
    Standard_NC4as_T4_v3: { generation: 'v3', localDisk: 0 },
    Standard_NP10s: { localDisk: 0 },
    Standard_D1: { localDisk: 0, retiresAt: '2028-05-01T00:00:00Z' },
    Standard_B2s: { architecture: 'arm64', localDisk: 8.59 },
    Standard_B1ls: { localDisk: 0 },
    Standard_F2s_v2: { generation: 'v2', localDisk: 0 },
  },
  terms: {
    [`Standard_D2s_v5@${VIRGINIA}`]: {
      terms: {
        spot: offered({ amount: '0.0192' }),
        savings_plan_1y: offered({ amount: '0.0664' }),
        savings_plan_3y: offered({ amount: '0.0365' }),
        // Totals, although their unit says an hour.
        reserved_1y: offered({ upfront: '496' }),
        reserved_3y: offered({ upfront: '960' }),
      },
    },
    [`Standard_E4-2as_v5@${IRELAND}`]: {
      terms: { savings_plan_1y: offered({ amount: '0.171' }), reserved_3y: offered({ upfront: '2500' }) },
    },
  },
  regionPrices: {
    [VIRGINIA]: [
      disk('0.00011'),
      MICROSOFT,
      regionPrice(
        TRAFFIC,
        'Routing Preference: Internet',
        [
          ['0', '0'],
          ['100', '0.08'],
          ['10335', '0.065'],
        ],
        false,
      ),
      ADDRESS,
    ],
    [NETHERLANDS]: [disk('0.000132'), MICROSOFT, ADDRESS],
  },
  // Storage, single servers and other regions are not read.
  databasePlans: {
    [VIRGINIA]: [
      plan('postgresql', 'Standard_B2s', 2, 4, '0.068'),
      // Two and four times the price of a vCore.
      plan('postgresql', 'Standard_D2s_v5', 2, 8, '0.189'),
      plan('postgresql', 'Standard_D4s_v5', 4, 16, '0.378'),
      plan('mysql', 'Standard_D2s_v5', 2, 8, '0.1825'),
    ],
    [NETHERLANDS]: [plan('postgresql', 'Standard_B2s', 2, 4, '0.079')],
  },
  rejected: [
    {
      key: 'reserved prices',
      reason: /first is Standard_E4-2as_v5@northeurope: currencyCode must be USD, as requested; it is "EUR"/,
    },
    {
      key: 'address prices',
      reason: /first is Standard IPv4@northeurope: unitOfMeasure must be 1 Hour; it is 1000 Hours/,
    },
    { key: `Standard_D2as_v5@${NETHERLANDS}`, reason: /^several prices are in force: 0\.104, 0\.105/ },
    { key: 'sizes', reason: /^one size is not offered to this subscription: Standard_Secret1\./ },
    { key: `Standard_D4s_v5@${NETHERLANDS}`, reason: /^unitOfMeasure must be 1 Hour; it is "100 Hours"/ },
    { key: `Standard_E2s_v5@${NETHERLANDS}`, reason: /^capabilities\.MemoryGB is missing/ },
  ],
};

import type { OfferedPlan } from '../../src/domain/database-plan.ts';
import type { OfferedRegionPrice } from '../../src/domain/prices/region-price.ts';
import { type CatalogueCase, type FixturePage, fixture, offersIn } from './catalogue-case.ts';

const indexOf = (name: string) => `/offers/v1.0/aws/${name}/current/region_index.json`;
const fileOf = (name: string) => `/offers/v1.0/aws/${name}/{version}/{region}/index.json`;
const [INDEX, FILE] = [indexOf('AmazonEC2'), fileOf('AmazonEC2')];
const OHIO = 'us-east-2';
const LOS_ANGELES = 'us-west-2-lax-1';

const offer = offersIn('USD');

/** Products and terms are maps by SKU, and so are a SKU's terms and a term's prices. */
const maps = [
  '/products',
  '/terms',
  '/terms/OnDemand',
  '/terms/OnDemand/*',
  '/terms/OnDemand/*/*/priceDimensions',
  '/terms/Reserved',
  '/terms/Reserved/*',
  '/terms/Reserved/*/*/priceDimensions',
];
const file = (code: string) => `/offers/v1.0/aws/AmazonEC2/20260220180000/${code}/index.json`;
const smallFile = (name: string, code: string) =>
  `/offers/v1.0/aws/${name}/20260110120000/${code}/index.json`;
const hourly = (amount: string, upfront?: string) => ({
  price: { amount, per: 'hour' as const, currency: 'USD' },
  ...(upfront !== undefined && { upfront }),
});
const storage = (name: string, amount: string): OfferedRegionPrice => ({
  item: 'block_storage',
  name,
  isDefault: name === 'gp3',
  unit: 'GiB',
  per: 'month',
  currency: 'USD',
  tiers: [{ from: '0', amount }],
});
const plan = (
  engine: string,
  nodes: number | null,
  name: string,
  [cpu, ram]: readonly [number, number],
  amount: string,
): OfferedPlan => ({
  ...{ engine, name, nodes, cpu, ram, ramUnit: 'Binary', storage: 0 },
  price: { amount, per: 'hour', currency: 'USD' },
});
/** The index of a small offer, and the files of both regions. That of Los Angeles states only prices of Ohio. */
const smallOffer = (name: string, of: string, sku: string): FixturePage[] => [
  {
    path: indexOf(name),
    query: {},
    json: fixture(`aws/${of}_index.json`),
    list: 'regions',
    maps: ['/regions'],
    required: ['/regions'],
    otherRequired: [`/regions/${OHIO}/currentVersionUrl`, `/regions/${OHIO}/regionCode`],
    prices: [],
  },
  {
    path: smallFile(name, OHIO),
    endpoint: fileOf(name),
    region: OHIO,
    query: {},
    json: fixture(`aws/${of}-${OHIO}.json`),
    list: 'products',
    maps,
    required: [],
    otherRequired: [
      `${term(sku)}/priceDimensions`,
      `${step(sku)}/unit`,
      `${step(sku)}/pricePerUnit`,
      `${step(sku)}/pricePerUnit/USD`,
    ],
    otherPrices: [`${step(sku)}/pricePerUnit/USD`],
    prices: [],
  },
  {
    path: smallFile(name, LOS_ANGELES),
    endpoint: fileOf(name),
    region: LOS_ANGELES,
    query: {},
    json: fixture(`aws/${of}-${OHIO}.json`),
    list: 'products',
    maps,
    required: [],
    prices: [],
  },
];
const term = (sku: string) => `/terms/OnDemand/${sku}/${sku}.JRTCKXETXF`;
const dimension = (sku: string) => `${term(sku)}/priceDimensions/${sku}.JRTCKXETXF.6YS6EN2CT7`;
const step = (sku: string) => `${term(sku)}/priceDimensions/${sku}.JRTCKXETXF.STEP0`;
const lease = (sku: string, code: string) => `/terms/Reserved/${sku}/${sku}.${code}`;
const upfront = (sku: string, code: string) =>
  `${lease(sku, code)}/priceDimensions/${sku}.${code}.2TG2D8R56U/pricePerUnit/USD`;
const attribute = (sku: string, name: string) => `/products/${sku}/attributes/${name}`;

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  pages: [
    {
      path: INDEX,
      query: {},
      json: fixture('aws/region_index.json'),
      list: 'regions',
      maps: ['/regions'],
      required: ['/regions', `/regions/${OHIO}/regionCode`, `/regions/${OHIO}/currentVersionUrl`],
      prices: [],
    },
    {
      path: file(OHIO),
      endpoint: FILE,
      region: OHIO,
      query: {},
      json: fixture('aws/us-east-2.json'),
      list: 'products',
      maps,
      required: [
        '/products',
        '/terms',
        '/terms/OnDemand',
        '/products/OHT3MEDIUM000001/productFamily',
        '/products/OHT3MEDIUM000001/attributes',
        ...[
          'instanceType',
          'operatingSystem',
          'tenancy',
          'capacitystatus',
          'preInstalledSw',
          'operation',
          'location',
          'vcpu',
          'memory',
          'instanceFamily',
        ].map((name) => attribute('OHT3MEDIUM000001', name)),
        `${term('OHA1METAL0000001')}/priceDimensions`,
        `${dimension('OHA1METAL0000001')}/unit`,
        `${dimension('OHA1METAL0000001')}/pricePerUnit`,
        `${dimension('OHA1METAL0000001')}/pricePerUnit/USD`,
      ],
      otherRequired: [
        `${dimension('OHSTORAGEGP30001')}/unit`,
        `${dimension('OHSTORAGEIO20001')}/pricePerUnit/USD`,
        `${lease('OHT3MEDIUM000001', 'NQ3QZPMQV9')}/termAttributes`,
        `${lease('OHT3MEDIUM000001', 'NQ3QZPMQV9')}/termAttributes/OfferingClass`,
        `${lease('OHT3MEDIUM000001', 'NQ3QZPMQV9')}/termAttributes/LeaseContractLength`,
        `${lease('OHT3MEDIUM000001', 'NQ3QZPMQV9')}/priceDimensions`,
        upfront('OHT3MEDIUM000001', 'NQ3QZPMQV9'),
      ],
      otherPrices: [
        `${dimension('OHSTORAGEGP30001')}/pricePerUnit/USD`,
        upfront('OHT3MEDIUM000001', 'NQ3QZPMQV9'),
        // Not the cheapest way to pay, but it might have been.
        upfront('OHT3MEDIUM000001', '38NPMPTW36'),
      ],
      prices: [
        `${dimension('OHT3MEDIUM000001')}/pricePerUnit/USD`,
        `${dimension('OHA1METAL0000001')}/pricePerUnit/USD`,
      ],
    },
    {
      path: file(LOS_ANGELES),
      endpoint: FILE,
      region: LOS_ANGELES,
      query: {},
      json: fixture('aws/us-west-2-lax-1.json'),
      list: 'products',
      maps,
      required: ['/products', attribute('LAC5LARGE0000001', 'vcpu')],
      prices: [`${dimension('LAC5LARGE0000001')}/pricePerUnit/USD`],
    },
    ...smallOffer('AWSDataTransfer', 'transfer', 'OHTRANSFEROUT001'),
    ...smallOffer('AmazonVPC', 'vpc', 'OHADDRESSINUSE01'),
    {
      path: indexOf('AmazonRDS'),
      query: {},
      json: fixture('aws/rds_index.json'),
      list: 'regions',
      maps: ['/regions'],
      required: [],
      otherRequired: ['/regions', `/regions/${OHIO}/currentVersionUrl`, `/regions/${OHIO}/regionCode`],
      prices: [],
      additional: true,
    },
    {
      path: smallFile('AmazonRDS', OHIO),
      endpoint: fileOf('AmazonRDS'),
      query: {},
      json: fixture(`aws/rds-${OHIO}.json`),
      list: 'products',
      maps,
      required: [],
      otherRequired: [
        '/products',
        '/terms',
        '/products/OHRDSPGMICRO0001/productFamily',
        '/products/OHRDSPGMICRO0001/attributes',
        ...['databaseEngine', 'instanceType', 'deploymentOption', 'usagetype', 'vcpu', 'memory'].map((name) =>
          attribute('OHRDSPGMICRO0001', name),
        ),
        `${term('OHRDSPGMICRO0001')}/priceDimensions`,
        `${dimension('OHRDSPGMICRO0001')}/unit`,
        `${dimension('OHRDSPGMICRO0001')}/pricePerUnit/USD`,
      ],
      otherPrices: [
        `${dimension('OHRDSPGMICRO0001')}/pricePerUnit/USD`,
        `${dimension('OHRDSAURORAPG002')}/pricePerUnit/USD`,
      ],
      prices: [],
      additional: true,
    },
  ],
  empty: Object.fromEntries(
    ['AmazonEC2', 'AWSDataTransfer', 'AmazonVPC', 'AmazonRDS'].flatMap((name) => [
      [indexOf(name), { formatVersion: 'v1.0', regions: {} }],
      [fileOf(name), { formatVersion: 'v1.0', products: {}, terms: { OnDemand: {}, Reserved: {} } }],
    ]),
  ),
  uncounted: ['AmazonEC2', 'AWSDataTransfer', 'AmazonVPC', 'AmazonRDS'].flatMap((name) => [
    indexOf(name),
    fileOf(name),
  ]),
  regions: { [OHIO]: 'US East (Ohio)', [LOS_ANGELES]: 'US West (Los Angeles)' },
  offers: [
    // Windows, dedicated, SQL Server, reserved and unused capacity, and April's price are not read.
    offer('t3.medium', OHIO, 2, 4, '0.0416'),
    // Listed once more at zero dollars.
    offer('r6i.4xlarge', OHIO, 16, 128, '1.008'),
    offer('t3.nano', OHIO, 2, 0.5, '0.0052'),
    offer('x1.32xlarge', OHIO, 128, 1952, '13.338'),
    // Bare metal, in a file without `marketoption`.
    offer('a1.metal', OHIO, 16, 32, '0.408'),
    offer('m3.large', OHIO, 2, 7.5, '0.133'),
    offer('g4dn.xlarge', OHIO, 4, 16, '0.526', 'accelerated'),
    offer('inf1.xlarge', OHIO, 4, 8, '0.228', 'accelerated'),
    offer('t4g.small', OHIO, 2, 2, '0', 'zero_price'),
    offer('t3.medium', LOS_ANGELES, 2, 4, '0.0499'),
    offer('c5.large', LOS_ANGELES, 2, 4, '0.102'),
  ],
  facts: {
    't3.medium@us-east-2': { architecture: 'x86_64', generation: '3', localDisk: 0 },
    't3.medium': { generation: '3', localDisk: 0 },
    'r6i.4xlarge': { architecture: 'x86_64', generation: '6', localDisk: 0, network: 12_500 },
    't3.nano': { generation: '3', localDisk: 0 },
    'x1.32xlarge': { architecture: 'x86_64', generation: '1', localDisk: 3840, network: 25_000 },
    'a1.metal': { generation: '1', localDisk: 0 },
    'm3.large': { architecture: 'x86_64', generation: '3', localDisk: 32 },
    'g4dn.xlarge': { generation: '4', localDisk: 0 },
    'inf1.xlarge': { generation: '1', localDisk: 0 },
    't4g.small': { architecture: 'arm64', generation: '4', localDisk: 0 },
    'c5.large': { generation: '5', localDisk: 0 },
  },
  terms: {
    // Convertible reservations, and those of Windows and dedicated machines, are not read.
    't3.medium@us-east-2': {
      terms: { reserved_1y: hourly('0', '214'), reserved_3y: hourly('0', '412') },
    },
    'r6i.4xlarge@us-east-2': { terms: { reserved_1y: hourly('0.635'), reserved_3y: hourly('0.436') } },
  },
  regionPrices: {
    [OHIO]: [
      storage('gp2', '0.1'),
      storage('gp3', '0.08'),
      storage('io2', '0.125'),
      {
        item: 'traffic_out',
        name: 'Internet',
        isDefault: true,
        unit: 'GiB',
        per: undefined,
        currency: 'USD',
        tiers: [
          { from: '0', amount: '0.09' },
          { from: '10240', amount: '0.085' },
          { from: '51200', amount: '0.07' },
          { from: '153600', amount: '0.05' },
        ],
      },
      {
        item: 'ipv4',
        name: 'Public IPv4',
        isDefault: true,
        unit: 'address',
        per: 'hour',
        currency: 'USD',
        tiers: [{ from: '0', amount: '0.005' }],
      },
    ],
  },
  // Oracle, SQL Server, racks, storage, serverless capacity and Extended Support are not read.
  databasePlans: {
    [OHIO]: [
      plan('postgresql', 1, 'db.t4g.micro', [2, 1], '0.016'),
      plan('postgresql', 2, 'db.t4g.micro', [2, 1], '0.032'),
      plan('postgresql', 3, 'db.m6gd.large', [2, 8], '0.591'),
      // Listed once more at zero dollars.
      plan('mysql', 1, 'db.r6g.large', [2, 16], '0.215'),
      plan('mariadb', 1, 'db.x1.32xlarge', [128, 1952], '13.338'),
      plan('aurora-postgresql', null, 'db.r6g.large', [2, 16], '0.26'),
      plan('aurora-postgresql', null, 'db.r6g.large I/O-Optimized', [2, 16], '0.338'),
      plan('aurora-mysql', null, 'db.r8gd.large I/O-Optimized', [2, 16], '0.39'),
    ],
  },
  rejected: [
    { key: 'AmazonVPC moon-1', reason: /region_index\.json: regions\.moon-1\.currentVersionUrl/ },
    { key: 'mars-1', reason: /^regions\.mars-1\.currentVersionUrl/ },
    { key: `m7i.large@${OHIO}`, reason: /no term is on demand, in force and priced by the hour/ },
    {
      key: `c7i.large@${OHIO}`,
      reason: /^has several prices: 0\.08925 \(OHC7ILARGE000001\), 0\.8925 \(OHC7ILARGE000002\)/,
    },
    { key: `m8g.medium@${OHIO}`, reason: /attributes\.memory must be a count of GiB .*; it is "NA"/ },
  ],
};

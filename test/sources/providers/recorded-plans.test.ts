/**
 * Plans of managed databases from recorded answers. Each price is compared with an own calculation, which reads the recording by
 * another path: other fields, and fractions instead of decimals.
 */
import { parse } from 'csv-parse/sync';
import { expect, it } from 'vitest';
import type { OfferedPlan } from '../../../src/domain/database-plan.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter as aws } from '../../../src/sources/providers/aws.ts';
import { adapter as azure } from '../../../src/sources/providers/azure.ts';
import { adapter as google } from '../../../src/sources/providers/gcp.ts';
import type { CatalogueAdapter, CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { needsRecorded, RECORDED, WRITTEN } from '../../support/payloads.ts';
import { gcpDatabases } from '../../support/provider-answers.ts';
import { machine, onDemand } from './aws-payloads.ts';
import { onDemand as onDemandOf, type } from './gcp-skus.ts';
import { atoms } from './seeded.ts';

const NOW = new Date('2026-10-01T00:00:00Z');

async function read(adapter: CatalogueAdapter, baseUrl: string): Promise<CatalogueItem[]> {
  const { credentials } = adapter;
  const limits = { deadlineMs: 10_000, maxBytes: 10_000_000 };
  const http = openSourceHttp({ baseUrl, credentials, token: 'token', ...limits });
  return await Array.fromAsync(adapter.catalogue({ http, now: () => NOW }));
}

/** A plan in one text, with its price for an hour in units of 10^-12 dollars. */
const shown = ({ engine, name, nodes, cpu, ram, price }: OfferedPlan) =>
  [engine, name, nodes, `${cpu} vCPU`, `${ram} GiB`, atoms(price.amount)].join(' | ');

const plansIn = (items: readonly CatalogueItem[]) =>
  items.flatMap((item) => (item.kind === 'database-plan' ? [item.plan] : []));
const reasonsIn = (items: readonly CatalogueItem[]) =>
  items.flatMap((item) => (item.kind === 'rejected' ? [item.reason] : []));

async function awsItems(code: string, offer: unknown): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  const index = (name: string, region: string) =>
    upstream.expect(
      { path: `/offers/v1.0/aws/${name}/current/region_index.json` },
      { json: { regions: { [region]: { regionCode: region, currentVersionUrl: `/${name}.json` } } } },
    );
  index('AmazonEC2', code);
  index('AWSDataTransfer', 'elsewhere');
  index('AmazonVPC', 'elsewhere');
  index('AmazonRDS', code);
  const products = { A: machine('m5.large') };
  upstream.expect(
    { path: '/AmazonEC2.json' },
    { json: { products, terms: { OnDemand: { A: onDemand('0.096') } } } },
  );
  upstream.expect({ path: '/AmazonRDS.json' }, { raw: JSON.stringify(offer) });
  return await read(aws, upstream.url);
}

/** Engines by the number in `operation`, which is that of AWS's bills. */
const ENGINES: Readonly<Record<string, string>> = {
  '0002': 'mysql',
  '0014': 'postgresql',
  '0016': 'aurora-mysql',
  '0018': 'mariadb',
  '0021': 'aurora-postgresql',
};
/** Units of one instance by its size. A deployment has them once for each instance. */
const UNITS: Readonly<Record<string, number>> = { micro: 0.5, small: 1, medium: 2, large: 4, xlarge: 8 };

/** Returns the plans in a CSV offer file: engine, size and number of instances come from its codes and units. */
function plansInCsv(csv: Buffer): string[] {
  const rows: Record<string, string>[] = parse(csv, { columns: true, from_line: 6 });
  return rows.flatMap((row) => {
    const { usageType = '', operation = '', Unit, TermType, PricePerUnit = '', Memory } = row;
    const engine = ENGINES[operation.split(':')[1] ?? ''];
    const found = /(?<usage>\w+):db\.(?<family>\w+)\.(?<size>\w+)$/.exec(usageType)?.groups;
    if (engine === undefined || found === undefined || Unit !== 'Hrs' || TermType !== 'OnDemand') return [];
    const [, times = '', size = ''] = /^(\d*)(\w+)$/.exec(found.size?.replace(/xl$/, 'xlarge') ?? '') ?? [];
    const units = (UNITS[size] ?? Number.NaN) * Number(times || 1);
    const instances = Number(row['Normalization Size Factor']) / units;
    const isOptimized = found.usage === 'InstanceUsageIOOptimized';
    const name = `db.${found.family}.${times}${size}${isOptimized ? ' I/O-Optimized' : ''}`;
    const nodes = engine.startsWith('aurora') ? null : instances;
    return [[engine, name, nodes, `${row.vCPU} vCPU`, Memory, atoms(PricePerUnit)].join(' | ')];
  });
}

const AWS = [
  { kind: 'small', payloads: WRITTEN, plans: 7, options: {} },
  { kind: 'recorded', payloads: RECORDED, plans: 14, options: needsRecorded },
];
for (const { kind, payloads, plans, options } of AWS)
  it(`the ${kind} offer of RDS has ${plans} plans at the prices of its CSV file`, options, async () => {
    const offer = payloads.json('next/aws-rds/AmazonRDS-eu-west-2-derived.json');
    const expected = plansInCsv(payloads.raw('next/aws-rds/AmazonRDS-eu-west-2.csv').raw);
    const items = await awsItems('eu-west-2', offer);
    expect(plansIn(items).map(shown).toSorted()).toEqual(expected.toSorted());
    expect(new Set(expected).size).toBe(plans);
    expect(reasonsIn(items)).toEqual([]);
  });

it(
  'offers of RDS of 2017 and 2019 have the same form, and licensed engines are no plans',
  needsRecorded,
  async () => {
    const old = RECORDED.json('next/aws-rds/AmazonRDS-offer-index-2017-04.json');
    const withoutPrice = await awsItems('us-west-2', old);
    expect(plansIn(withoutPrice)).toEqual([]);
    expect(reasonsIn(withoutPrice)).toEqual([
      expect.stringContaining('terms.OnDemand has nothing for RYXYA7XK2PDKTNV4'),
    ]);
    expect(withoutPrice).toContainEqual({ kind: 'unread-prices', items: ['database_plan'] });
    const answered: Record<string, { product: { sku: string }; terms: { OnDemand?: object } }> =
      RECORDED.json('next/aws-rds/AmazonRDS-GetProducts-2019.json');
    const products = Object.fromEntries(Object.entries(answered).map(([sku, { product }]) => [sku, product]));
    const OnDemand = Object.fromEntries(
      Object.entries(answered).map(([sku, { terms }]) => [sku, terms.OnDemand ?? {}]),
    );
    const items = await awsItems('ap-northeast-1', { products, terms: { OnDemand } });
    expect(plansIn(items).map(shown)).toEqual(['mariadb | db.m4.large | 1 | 2 vCPU | 8 GiB | 350000000000']);
  },
);

type AzureRow = Readonly<Record<string, string>> & { readonly retailPrice: number };

/** Reads the servers of one region, whose machines have the sizes of this list, with its names' numbers of vCores. */
async function azureItems(
  rows: readonly AzureRow[],
  sizes: readonly string[],
  region: string,
): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  const list = (what: string, type: string, Items: readonly object[]) =>
    upstream.expect(
      {
        path: '/api/retail/prices',
        query: { 'api-version': '2023-01-01-preview', $filter: `${what} and priceType eq '${type}'` },
      },
      { json: { Items, NextPageLink: null, Count: Items.length } },
    );
  const of = `serviceName eq 'Virtual Machines' and armRegionName eq '${region}'`;
  const machines = rows.slice(0, 1).map((row) => ({
    ...row,
    ...{ productName: 'Virtual Machines Ddsv4 Series', armSkuName: 'Standard_D2ds_v4', skuName: 'D2ds v4' },
  }));
  list(of, 'Consumption', machines);
  list(of, 'Reservation', []);
  list("serviceName eq 'Storage' and productName eq 'Azure Premium SSD v2'", 'Consumption', []);
  list("serviceName eq 'Bandwidth' and meterName eq 'Standard Data Transfer Out'", 'Consumption', []);
  list("serviceName eq 'Virtual Network' and productName eq 'IP Addresses'", 'Consumption', []);
  for (const name of ['Azure Database for PostgreSQL', 'Azure Database for MySQL'])
    list(
      `serviceName eq '${name}'`,
      'Consumption',
      rows.filter(({ serviceName }) => serviceName === name),
    );
  const value = sizes.map((name) => ({
    resourceType: 'virtualMachines',
    name,
    capabilities: [
      { name: 'vCPUs', value: coresOf(name) },
      { name: 'MemoryGB', value: String(Number(coresOf(name)) * (name.startsWith('Standard_E') ? 8 : 4)) },
    ],
    restrictions: [],
  }));
  upstream.expect(
    { path: '/subscriptions/s1/locations', query: { 'api-version': '2022-12-01' } },
    { json: { value: [{ name: region }] } },
  );
  const query = { 'api-version': '2021-07-01', $filter: `location eq '${region}'` };
  const path = '/subscriptions/s1/providers/Microsoft.Compute/skus';
  upstream.expect({ path, query }, { json: { value } });
  return await read(azure, `${upstream.url}/subscriptions/s1`);
}

const coresOf = (name: string) => /^Standard_[A-Z]+(\d+)/.exec(name)?.[1] ?? '';

const UK_SOUTH = 'retail-prices-uksouth-postgresql-mysql.json';
const WEST_EUROPE = 'retail-prices-postgresql-flexible-westeurope.json';
const AZURE = [
  { kind: 'small', payloads: WRITTEN, region: 'uksouth', file: UK_SOUTH, plans: 5, options: {} },
  {
    kind: 'recorded',
    payloads: RECORDED,
    region: 'uksouth',
    file: UK_SOUTH,
    plans: 10,
    options: needsRecorded,
  },
  {
    kind: 'recorded (2024)',
    payloads: RECORDED,
    region: 'westeurope',
    file: WEST_EUROPE,
    plans: 1,
    options: needsRecorded,
  },
];
for (const { kind, payloads, region, file, plans, options } of AZURE)
  it(
    `the ${kind} price list of Azure has ${plans} servers, at the price of their vCores or of the whole`,
    options,
    async () => {
      const rows: AzureRow[] = payloads.json(`next/azure-db/${file}`).Items;
      const tiers: Record<string, object> = payloads.json(
        'next/azure-db/postgresql_flexible_tier_types.json',
      );
      const sizes = Object.values(tiers).flatMap((tier) => Object.keys(tier));
      // By the other names of a row: a Burstable server is its SKU, and the series is in the name for ARM.
      const expected = sizes.flatMap((name) => {
        const short = name.replace('Standard_', '').toUpperCase();
        const series = name.replace(/^Standard_([A-Z]+)\d+([a-z]+)_(v\d+)$/, '$1$2$3');
        return rows.flatMap((row) => {
          const isWhole = row.skuName === short;
          const isOfSeries = row.armSkuName?.includes(`_${series}Series_`) && row.skuName === '1 vCore';
          if (!isWhole && !isOfSeries) return [];
          const cores = Number(coresOf(name));
          const engine = row.serviceName?.includes('MySQL') ? 'mysql' : 'postgresql';
          const price = BigInt(Math.round(row.retailPrice * 1e6)) * BigInt(isWhole ? 1 : cores) * 1_000_000n;
          return [
            [
              engine,
              name,
              1,
              `${cores} vCPU`,
              `${cores * (name.startsWith('Standard_E') ? 8 : 4)} GiB`,
              price,
            ].join(' | '),
          ];
        });
      });
      const items = await azureItems(rows, sizes, region);
      expect(plansIn(items).map(shown).toSorted()).toEqual(expected.toSorted());
      expect(new Set(expected).size).toBe(plans);
      // The price of `Basic`, which names no size, and those of a product without a series.
      const without = rows.filter(
        (row) => row.skuName === 'Basic' || / (Purpose|Optimized) Series/.test(row.productName ?? ''),
      );
      const reasons = reasonsIn(items).filter((reason) => reason.includes('Flexible Server'));
      expect(reasons).toHaveLength(without.length > 0 ? 1 : 0);
      if (without.length > 0)
        expect(reasons[0]).toMatch(new RegExp(`^${without.length} prices are left out; .* names no s`));
    },
  );

async function googleItems(skus: readonly object[]): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  const project = '/compute/v1/projects/fleet';
  const machineTypes = [type('e2-standard-2', 2, 8)];
  const items = { 'zones/europe-west2-a': { machineTypes }, 'zones/europe-west1-b': { machineTypes } };
  upstream.expect(
    {
      path: `${project}/aggregated/machineTypes`,
      query: { maxResults: '500', returnPartialSuccess: 'true' },
    },
    { json: { items } },
  );
  upstream.expect(
    { path: '/v1/services/6F81-5844-456A/skus', query: { currencyCode: 'USD', pageSize: '5000' } },
    { json: { skus: onDemandOf('E2'), nextPageToken: '' } },
  );
  gcpDatabases(upstream, skus);
  return await read(google, upstream.url + project);
}

interface GoogleSku {
  readonly description: string;
  readonly category: { readonly resourceGroup: string };
  readonly serviceRegions: readonly string[];
  readonly pricingInfo: readonly [
    { readonly pricingExpression: { readonly tieredRates: readonly { unitPrice: { nanos: number } }[] } },
  ];
}

const GOOGLE = [
  { kind: 'small', payloads: WRITTEN, plans: 32, unpriced: 2, options: {} },
  { kind: 'recorded', payloads: RECORDED, plans: 64, unpriced: 2, options: needsRecorded },
];
for (const { kind, payloads, plans, unpriced, options } of GOOGLE)
  it(
    `the ${kind} SKUs of Cloud SQL make ${plans} plans, each at the sum of its CPUs and memory`,
    options,
    async () => {
      const { skus }: { skus: GoogleSku[] } = payloads.json(
        'next/gcp-cloudsql/skus-cloud-sql-europe-west2.json',
      );
      // By the group of a SKU, and the words of its description before the place.
      const nanos = (engine: string, nodes: number | null, group: string) => {
        const place = nodes === 2 ? 'Regional' : 'Zonal';
        const found = skus.filter(
          ({ description, category, serviceRegions }) =>
            category.resourceGroup === `SQLGen2Instances${group}` &&
            description.split(' ').length === 9 &&
            description.toLowerCase().startsWith(`cloud sql for ${engine}: ${place.toLowerCase()} `) &&
            serviceRegions[0] === 'europe-west2',
        );
        expect(found).toHaveLength(1);
        return BigInt(found[0]?.pricingInfo[0].pricingExpression.tieredRates[0]?.unitPrice.nanos ?? 0);
      };
      const items = await googleItems(skus);
      const read = plansIn(items);
      expect(new Set(read.map(shown)).size).toBe(plans);
      for (const plan of read) {
        const [, cpu = '', mebibytes = ''] = /^db-custom-(\d+)-(\d+)$/.exec(plan.name) ?? [];
        const parts = [nanos(plan.engine, plan.nodes, 'CPU'), nanos(plan.engine, plan.nodes, 'RAM')] as const;
        const sum = parts[0] * BigInt(cpu) * 1024n + parts[1] * BigInt(mebibytes);
        expect([plan.name, atoms(plan.price.amount) * 1024n]).toEqual([plan.name, sum * 1000n]);
        expect([plan.cpu, plan.ram]).toEqual([Number(cpu), Number(mebibytes) / 1024]);
      }
      // Enterprise Plus, and Belgium, have a price of CPUs alone.
      expect(reasonsIn(items).filter((reason) => reason.includes('no SKU prices the RAM'))).toEqual([
        expect.stringMatching(new RegExp(`^${unpriced} prices are left out`)),
      ]);
    },
  );

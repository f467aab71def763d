/**
 * Plans of managed databases from recorded answers. Each price is compared with an own calculation, which reads the recording by
 * another path: other fields, and fractions instead of decimals.
 */
import { parse } from 'csv-parse/sync';
import { expect, it } from 'vitest';
import type { OfferedPlan } from '../../../src/domain/database-plan.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter as aws } from '../../../src/sources/providers/aws.ts';
import type { CatalogueAdapter, CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { needsRecorded, RECORDED, WRITTEN } from '../../support/payloads.ts';
import { machine, onDemand } from './aws-payloads.ts';
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

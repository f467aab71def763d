/**
 * 100 random prices of database plans of each provider, from generated payloads in the documented form. Each price per minute is
 * compared with an independent calculation from the payload, in fractions.
 */
import { describe, expect, it } from 'vitest';
import { planName } from '../../../src/domain/database-plan.ts';
import { pricePerMinute } from '../../../src/domain/prices/price.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter as aiven } from '../../../src/sources/providers/aiven.ts';
import { readPlans as readAzure } from '../../../src/sources/providers/azure/database-plans.ts';
import { readPlans as readGoogle } from '../../../src/sources/providers/gcp/database-plans.ts';
import { addPlans as addLinode } from '../../../src/sources/providers/linode/database-plans.ts';
import { addPlan as addOvh } from '../../../src/sources/providers/ovh/database-plans.ts';
import {
  addPlans as addScaleway,
  DATABASES,
} from '../../../src/sources/providers/scaleway/database-plans.ts';
import { adapter as upcloud } from '../../../src/sources/providers/upcloud.ts';
import { RegionPrices } from '../../../src/sources/schema/region-prices.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { gcpDatabases } from '../../support/provider-answers.ts';
import { itemsOf, machine, onDemand, REGION } from './aws-payloads.ts';
import { readCatalogue } from './read-catalogue.ts';

const COUNT = 100;
const HOUR = 60n;
const MONTH = 43_800n;

/** Whole numbers from 1 to `most`, the same in each run (a linear congruential generator). */
function numbersFrom(seed: bigint): (most: number) => number {
  let state = seed;
  return (most) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number((state >> 33n) % BigInt(most)) + 1;
  };
}

/** `units` × 10^-`places` ÷ `minutes`, to 18 places, rounded half to even. */
function divided(units: bigint, places: number, minutes: bigint): string {
  const numerator = units * 10n ** BigInt(18 - places);
  const [whole, rest] = [numerator / minutes, numerator % minutes];
  const isUp = rest * 2n > minutes || (rest * 2n === minutes && whole % 2n === 1n);
  const digits = String(whole + (isUp ? 1n : 0n)).padStart(19, '0');
  return `${digits.slice(0, -18)}.${digits.slice(-18)}`.replace(/\.?0+$/, '');
}

/** Price per minute by plan, as a sync in the source's currency stores it. */
function pricesIn(items: readonly CatalogueItem[], regionCode: string): Map<string, string | undefined> {
  const plans = items.flatMap((item) =>
    item.kind === 'database-plan' && item.regionCode === regionCode ? [item.plan] : [],
  );
  return new Map(plans.map((plan) => [planName(plan), pricePerMinute(plan.price, plan.price.currency, {})]));
}
const each = <T>(make: (index: number) => T) => Array.from({ length: COUNT }, (_, index) => make(index));

const httpOf = (baseUrl: string) =>
  openSourceHttp({ baseUrl, credentials: 'none', deadlineMs: 10_000, maxBytes: 10_000_000 });

describe('100 random prices of plans', () => {
  it('of Linode are those of a month, else of an hour, for all nodes', () => {
    const number = numbersFrom(1n);
    const prices = new RegionPrices();
    const expected = new Map<string, string>();
    for (const index of each((i) => i)) {
      const [cents, micros] = [number(500_000), number(5_000_000)];
      const isMonthly = number(4) > 1;
      const price = { hourly: micros / 1e6, monthly: isMonthly ? cents / 100 : null };
      const row = {
        id: `g6-${index}`,
        vcpus: 1,
        memory: 1024,
        disk: 25_600,
        engines: { mysql: [{ quantity: 3, price }] },
      };
      addLinode(prices, '1', row, ['us-east']);
      const perMinute = isMonthly ? divided(BigInt(cents), 2, MONTH) : divided(BigInt(micros), 6, HOUR);
      expected.set(`database/mysql/g6-${index}/3`, perMinute);
    }
    expect([expected.size, pricesIn([...prices.items()], 'us-east')]).toEqual([COUNT, expected]);
  });

  it('of OVH are units of 10^-8 for an hour of one node', () => {
    const number = numbersFrom(2n);
    const expected = new Map<string, string>();
    const plans = each((index) => {
      const price = number(2_000_000_000);
      expected.set(`database/kafka/business-db1-${index}`, divided(BigInt(price), 8, HOUR));
      const pricings = [{ price, intervalUnit: 'hour', capacities: ['consumption'] }];
      const planCode = `databases.kafka-business-db1-${index}.hour.consumption`;
      return { planCode, row: { pricings, configurations: [], blobs: { tags: ['active'] } } };
    });
    const prices = new RegionPrices();
    const places = { regionsOf: () => ['GRA'], selling: new Set(['GRA11']), currency: 'EUR' };
    for (const plan of plans) addOvh(prices, plan, places);
    expect([expected.size, pricesIn([...prices.items()], 'GRA11')]).toEqual([COUNT, expected]);
  });

  it('of Scaleway are units and billionths for an hour of one node', () => {
    const number = numbersFrom(3n);
    const prices = new RegionPrices();
    const expected = new Map<string, string>();
    const redis = DATABASES.find(({ type }) => type === 'managed_redis_database') ?? expect.unreachable();
    const rows = each((index) => {
      const [units, nanos] = [number(4) - 1, number(1_000_000_000) - 1];
      const row = {
        sku: `/storage/redis/main-node/RED1-${index}/fr-par-1`,
        product: 'RED1',
        locality: { zone: 'fr-par-1' },
        price: { retail_price: { currency_code: 'EUR', units, nanos } },
        unit_of_measure: { unit: 'hour', size: 1 },
        properties: { hardware: { cpu: { virtual: { count: 2 } }, ram: { size: 2 ** 30 } } },
      };
      const billionths = BigInt(units) * 1_000_000_000n + BigInt(nanos);
      expected.set(`database/redis/RED1-${index}`, divided(billionths, 9, HOUR));
      return row;
    });
    addScaleway(prices, rows, redis, ['fr-par-1']);
    expect([expected.size, pricesIn([...prices.items()], 'fr-par-1')]).toEqual([COUNT, expected]);
  });

  it('of UpCloud are cents for an hour of all nodes', async () => {
    await using upstream = await fakeUpstream();
    const number = numbersFrom(4n);
    const expected = new Map<string, string>();
    const zone: Record<string, unknown> = {
      name: 'fi-hel1',
      'server_plan_1xCPU-1GB': { amount: 1, price: 1 },
    };
    const service_plans = each((index) => {
      const plan = `2x${index}xCPU`;
      const tenThousandths = number(5_000_000);
      zone[`managed_database_${plan}`] = { amount: 1, price: tenThousandths / 1e4 };
      expected.set(`database/postgresql/${plan}/2`, divided(BigInt(tenThousandths), 6, HOUR));
      return {
        plan,
        node_count: 2,
        core_number: 1,
        memory_amount: 1024,
        zones: { zone: [{ name: 'fi-hel1' }] },
      };
    });
    const zones = [{ id: 'fi-hel1', description: 'Helsinki #1', public: 'yes' }];
    const plan = [{ name: '1xCPU-1GB', core_number: 1, memory_amount: 1024 }];
    upstream.expect({ path: '/1.3/zone' }, { json: { zones: { zone: zones } } });
    upstream.expect({ path: '/1.3/plan' }, { json: { plans: { plan } } });
    upstream.expect({ path: '/1.3/price' }, { json: { prices: { zone: [zone] } } });
    upstream.expect({ path: '/1.3/database/service-types' }, { json: { pg: { service_plans } } });
    expect([expected.size, pricesIn(await readCatalogue(upcloud, upstream.url), 'fi-hel1')]).toEqual([
      COUNT,
      expected,
    ]);
  });

  it('of Aiven are for an hour of all nodes', async () => {
    await using upstream = await fakeUpstream();
    const number = numbersFrom(5n);
    const expected = new Map<string, string>();
    const service_plans = each((index) => {
      const micros = number(50_000_000);
      expected.set(`database/postgresql/business-${index}/2`, divided(BigInt(micros), 6, HOUR));
      const price_usd = `${Math.floor(micros / 1e6)}.${String(micros % 1e6).padStart(6, '0')}`;
      return { service_plan: `business-${index}`, node_count: 2, regions: { 'do-fra': { price_usd } } };
    });
    upstream.expect({ path: '/v1/clouds' }, { json: { clouds: [{ cloud_name: 'do-fra' }] } });
    const service_types = { pg: { service_plans } };
    upstream.expect({ path: '/v1/service_types' }, { json: { service_types } });
    expect([expected.size, pricesIn(await readCatalogue(aiven, upstream.url), 'do-fra')]).toEqual([
      COUNT,
      expected,
    ]);
  });

  it('of AWS are for an hour of all instances, and for one instance of Aurora', async () => {
    const number = numbersFrom(6n);
    const expected = new Map<string, string>();
    const engines = ['PostgreSQL', 'MySQL', 'MariaDB', 'Aurora PostgreSQL', 'Aurora MySQL'] as const;
    const deployments = ['Single-AZ', 'Multi-AZ', 'Multi-AZ (readable standbys)'] as const;
    const rows = each((index) => {
      const databaseEngine = engines[number(5) - 1] ?? '';
      const isAurora = databaseEngine.startsWith('Aurora');
      const nodes = isAurora ? 1 : number(3);
      const isOptimized = isAurora && number(2) === 1;
      const micros = number(20_000_000);
      const name = `db.r${index}.large${isOptimized ? ' I/O-Optimized' : ''}`;
      const engine = databaseEngine.toLowerCase().replace(' ', '-');
      const key = `database/${engine}/${name}${isAurora ? '' : `/${nodes}`}`;
      expected.set(key, divided(BigInt(micros), 6, HOUR));
      const USD = `${Math.floor(micros / 1e6)}.${String(micros % 1e6).padStart(6, '0')}0000`;
      const attributes = {
        ...{ databaseEngine, instanceType: `db.r${index}.large`, vcpu: '2', memory: '16 GiB' },
        deploymentOption: deployments[nodes - 1],
        storage: isOptimized ? 'Aurora IO Optimization Mode' : 'EBS Only',
        usagetype: `InstanceUsage${isOptimized ? 'IOOptimized' : ''}:db.r${index}.large`,
      };
      return {
        sku: `S${index}`,
        product: { productFamily: 'Database Instance', attributes },
        term: onDemand(USD),
      };
    });
    const products = Object.fromEntries(rows.map(({ sku, product }) => [sku, product]));
    const OnDemand = Object.fromEntries(rows.map(({ sku, term }) => [sku, term]));
    const machines = { products: { A: machine('m5.large') }, terms: { OnDemand: { A: onDemand('0.096') } } };
    const items = await itemsOf([machines, undefined, undefined, { products, terms: { OnDemand } }]);
    expect([expected.size, pricesIn(items, REGION)]).toEqual([COUNT, expected]);
  });

  it('of Azure are for an hour of a server, or of each of its vCores', async () => {
    await using upstream = await fakeUpstream();
    const number = numbersFrom(7n);
    const expected = new Map<string, string>();
    const sizes = new Map<string, { name: string; cpu: number; memory: number }>();
    const rows = each((index) => {
      const cpu = [2, 4, 8, 16, 32, 48, 64, 96][number(8) - 1] ?? 0;
      const [engine, isWhole, tenThousandths] = [
        number(2) === 1 ? 'PostgreSQL' : 'MySQL',
        number(2) === 1,
        number(20_000),
      ];
      const name = `Standard_D${cpu}ds_v${index}`;
      sizes.set(name.toLowerCase(), { name, cpu, memory: 4 * cpu });
      const times = isWhole ? 1n : BigInt(cpu);
      expected.set(
        `database/${engine.toLowerCase()}/${name}/1`,
        divided(BigInt(tenThousandths) * times, 4, HOUR),
      );
      const row = {
        ...{ currencyCode: 'USD', armRegionName: 'eastus', effectiveStartDate: '2023-04-01T00:00:00Z' },
        ...{ unitOfMeasure: '1 Hour', type: 'Consumption', retailPrice: tenThousandths / 1e4 },
        productName: `Azure Database for ${engine} Flexible Server General Purpose Ddsv${index} Series Compute`,
        ...(isWhole
          ? { skuName: name, meterName: `${cpu} vCore` }
          : { skuName: number(2) === 1 ? 'vCore' : '1 vCore', meterName: 'vCore' }),
      };
      return { engine, row };
    });
    for (const engine of ['PostgreSQL', 'MySQL']) {
      const Items = rows.flatMap(({ engine: of, row }) => (of === engine ? [row] : []));
      const $filter = `serviceName eq 'Azure Database for ${engine}' and priceType eq 'Consumption'`;
      upstream.expect(
        { path: '/api/retail/prices', query: { 'api-version': '2023-01-01-preview', $filter } },
        { json: { Items, NextPageLink: null, Count: Items.length } },
      );
    }
    const prices = new RegionPrices();
    await readAzure(httpOf(upstream.url), new Date(), prices, new Map([['eastus', 1]]), sizes);
    expect([expected.size, pricesIn([...prices.items()], 'eastus')]).toEqual([COUNT, expected]);
  });

  it('of Google are for an hour of CPUs and of GiB of memory', async () => {
    await using upstream = await fakeUpstream();
    const number = numbersFrom(8n);
    const expected = new Map<string, string>();
    const sku = (description: string, usageUnit: string, nanos: number, region: string) => ({
      ...{ skuId: description, description, category: { usageType: 'OnDemand' }, serviceRegions: [region] },
      pricingInfo: [
        {
          pricingExpression: {
            usageUnit,
            tieredRates: [{ unitPrice: { currencyCode: 'USD', units: '0', nanos } }],
          },
        },
      ],
    });
    const skus = each((index) => {
      const [engine, place] = [
        number(2) === 1 ? 'PostgreSQL' : 'MySQL',
        number(2) === 1 ? 'Zonal' : 'Regional',
      ];
      const [cpuNanos, ramNanos, cpu] = [number(200_000_000), number(20_000_000), 2 ** (number(7) - 1)];
      // Hundredths of a GiB for each CPU.
      const [edition, each] = [
        ['', 375],
        ['', 650],
        ['Enterprise ', 650],
        ['Enterprise Plus ', 800],
      ][number(4) - 1] as [string, number];
      const cpus = Math.max(edition === 'Enterprise Plus ' ? 2 : 1, cpu);
      const name =
        edition === 'Enterprise Plus '
          ? `db-perf-optimized-N-${cpus}`
          : `db-custom-${cpus}-${(cpus * each * 1024) / 100}`;
      const units = BigInt(cpus) * (BigInt(cpuNanos) * 100n + BigInt(ramNanos) * BigInt(each));
      const plan = `database/${engine.toLowerCase()}/${name}/${place === 'Zonal' ? 1 : 2}`;
      expected.set(`r${index} ${plan}`, divided(units, 11, HOUR));
      const of = `Cloud SQL for ${engine}: ${place} - ${edition}`;
      return [
        sku(`${of}vCPU in R${index}`, 'h', cpuNanos, `r${index}`),
        sku(`${of}RAM in R${index}`, 'GiBy.h', ramNanos, `r${index}`),
      ];
    }).flat();
    gcpDatabases(upstream, skus);
    const prices = new RegionPrices();
    const regions = new Map(each((index) => [`r${index}`, 1]));
    await readGoogle(httpOf(upstream.url), new Date(), prices, regions);
    const items = [...prices.items()];
    const found = [...expected.keys()].map((key): [string, string | undefined] => {
      const [region = '', plan = ''] = key.split(' ');
      return [key, pricesIn(items, region).get(plan)];
    });
    expect([expected.size, new Map(found)]).toEqual([COUNT, expected]);
  });
});

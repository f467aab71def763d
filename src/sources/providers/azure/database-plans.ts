/** Plans of Azure Database for PostgreSQL and MySQL, flexible server. Other servers are retired. */
import { z } from 'zod';
import { memory } from '../../../domain/machine.ts';
import { product } from '../../../domain/prices/price.ts';
import { completeRows, nothingListed } from '../../http/lists.ts';
import { amount, label } from '../../schema/fields.ts';
import type { RegionPrices } from '../../schema/region-prices.ts';
import { labelIn, parseRow, rowOf, unusable } from '../../schema/rows.ts';
import { badAnswer, type CatalogueItem, type SourceHttp } from '../../source.ts';
import {
  DATES,
  eachRow,
  inForce,
  NAMES,
  PRICES,
  type PriceRow,
  priceInForce,
  usd,
  whenOf,
} from './price-list.ts';

/** By `serviceName`. */
const ENGINES = {
  'Azure Database for PostgreSQL': 'postgresql',
  'Azure Database for MySQL': 'mysql',
} as const;
type Service = keyof typeof ENGINES;

/** Storage, backups and single servers have other names. */
const PRODUCT =
  /^Azure Database for \w+ Flexible Server (?<tier>Burstable|General Purpose|Memory Optimized|Business Critical)(?: -)?(?: (?<series>[A-Za-z]+\d*))? Series Compute$/;

/**
 * The numbers of vCores that a price of one vCore may be multiplied by. Memory Optimized has 20 from v4 on.
 * Source: https://learn.microsoft.com/azure/postgresql/flexible-server/concepts-compute-storage.
 */
const VCORES = [2, 4, 8, 16, 20, 32, 48, 64, 96];

/** `D` + `ds` + `v5`: `Standard_D4ds_v5` has 4 vCores. Source: https://learn.microsoft.com/azure/virtual-machines/vm-naming-conventions. */
const SERIES = /^(?<family>[A-Z]+)(?<features>[a-z]*)v(?<version>\d+)$/;

/** The meter of a Burstable server, such as `B2MS`. */
const BURSTABLE = /^B\d+M?S$/i;

const Kind = z.object({
  armRegionName: label,
  ...NAMES,
  ...DATES,
  tierMinimumUnits: z.number().optional(),
});
type Kind = z.infer<typeof Kind>;
const Price = z.object({
  currencyCode: usd,
  unitOfMeasure: z.literal('1 Hour', { error: 'must be 1 Hour' }),
  retailPrice: amount,
});

/** A size of machines, which a server has too: GiB of memory. */
export interface Size {
  readonly name: string;
  readonly cpu: number;
  readonly memory: number;
}

/**
 * GiB of memory of a server that has less than the machine of its size, by engine and size.
 * Source: https://learn.microsoft.com/azure/postgresql/flexible-server/concepts-limits.
 */
const LESS_MEMORY: Readonly<Record<string, number>> = { 'postgresql Standard_E64ds_v4': 432 };

/** Prices in one region. */
interface Priced {
  readonly regionCode: string;
  readonly tier: string;
  /** `Ddsv5`, or the meter of a Burstable server. */
  readonly of: string;
  /** Number of vCores → the rows of its price; 0 is a whole Burstable server. */
  readonly rows: Map<number, PriceRow[]>;
}

/** Adds the plans in these regions. @param sizes by name in lower case */
export async function readPlans(
  http: SourceHttp,
  now: Date,
  prices: RegionPrices,
  regions: ReadonlyMap<string, unknown>,
  sizes: ReadonlyMap<string, Size>,
): Promise<void> {
  for (const service of Object.keys(ENGINES) as Service[]) {
    const filter = `serviceName eq '${service}' and priceType eq 'Consumption'`;
    await prices.read('database_plan', PRICES, async () => {
      const rows = await completeRows(PRICES, listOf(http, service, filter));
      if (rows.length === 0) throw nothingListed(`${PRICES}: Items of ${service}`);
      for (const priced of pricedServers(rows, now, prices, regions))
        addPlans(prices, ENGINES[service], priced, sizes);
    });
  }
}

async function* listOf(
  http: SourceHttp,
  of: string,
  filter: string,
): AsyncGenerator<CatalogueItem, unknown[]> {
  const rows: unknown[] = [];
  yield* eachRow(http, of, filter, (row) => {
    rows.push(row);
    return undefined;
  });
  return rows;
}

function pricedServers(
  rows: readonly unknown[],
  now: Date,
  prices: RegionPrices,
  regions: ReadonlyMap<string, unknown>,
): Iterable<Priced> {
  const found = new Map<string, Priced>();
  let isListed = false;
  for (const [index, row] of rows.entries()) {
    const place = `${labelIn(row, 'armSkuName') ?? `row ${index + 1}`}@${labelIn(row, 'armRegionName')}`;
    const kind = prices.usable('database_plan', place, () => parseRow(Kind, row));
    const { tier, series } = PRODUCT.exec(kind?.productName ?? '')?.groups ?? {};
    if (kind === undefined || tier === undefined || kind.type !== 'Consumption') continue;
    isListed = true;
    const { armRegionName: regionCode } = kind;
    if (!regions.has(regionCode) || !inForce(kind, now) || (kind.tierMinimumUnits ?? 0) > 0) continue;
    const read = prices.usable('database_plan', `${kind.productName} ${kind.skuName}@${regionCode}`, () =>
      tier === 'Burstable' ? burstable(kind) : ofSeries(kind, series),
    );
    if (read === undefined) continue;
    const key = JSON.stringify([regionCode, tier, read.of]);
    const priced = found.get(key) ?? { regionCode, tier, of: read.of, rows: new Map() };
    const known = priced.rows.get(read.vcores) ?? [];
    priced.rows.set(read.vcores, [
      ...known,
      { ...whenOf(kind), price: rowOf(() => parseRow(Price, row).retailPrice) },
    ]);
    found.set(key, priced);
  }
  if (!isListed) throw badAnswer(`no productName of ${rows.length} rows is that of a flexible server`);
  return found.values();
}

function burstable({ meterName }: Kind): { of: string; vcores: number } {
  if (!BURSTABLE.test(meterName)) return unusable(`meterName names no size such as B2MS; it is ${meterName}`);
  return { of: meterName, vcores: 0 };
}

/**
 * Returns for how many vCores a row has the price. Some series have a price of one vCore, others one of each size; the meter or the
 * SKU has the number. The same meter may be listed as `vCore` and as `1 vCore`.
 */
function ofSeries({ meterName, skuName }: Kind, series = ''): { of: string; vcores: number } {
  if (!SERIES.test(series)) return unusable('productName names no series of machines such as Ddsv5');
  const counts = [meterName, skuName].map((name) => /^(?:(\d+) )?vCore$/i.exec(name));
  if (!counts.some((count) => count !== null))
    return unusable(`meterName must be a number of vCores; it is ${meterName}`);
  const stated = counts.flatMap((count) => (count?.[1] === undefined ? [] : [Number(count[1])]));
  if (new Set(stated).size > 1)
    return unusable(`meterName and skuName have different numbers: ${meterName}, ${skuName}`);
  return { of: series, vcores: stated[0] ?? 1 };
}

/** A server with high availability is two of them, which the list does not price. */
function addPlans(
  prices: RegionPrices,
  engine: string,
  { regionCode, tier, of, rows }: Priced,
  sizes: ReadonlyMap<string, Size>,
): void {
  const place = `${engine} ${of}@${regionCode}`;
  const add = ({ name, cpu, memory: gib }: Size, amounts: readonly string[]) => {
    const [found, other] = new Set(amounts);
    if (found === undefined) return;
    if (other !== undefined) {
      prices.leaveOut('database_plan', place, `${name} has several prices: ${found}, ${other}`);
      return;
    }
    const price = { amount: found, per: 'hour', currency: 'USD' } as const;
    const size = memory(LESS_MEMORY[`${engine} ${name}`] ?? gib, 'GiB');
    prices.addPlan(regionCode, { engine, name, nodes: 1, cpu, ...size, storage: 0, price });
  };
  const amounts = new Map<number, string>();
  for (const [vcores, each] of rows) {
    const read = prices.usable('database_plan', place, () => priceInForce(each));
    if (read !== undefined) amounts.set(vcores, read);
  }
  if (tier === 'Burstable') {
    const size = sizes.get(`standard_${of}`.toLowerCase());
    const whole = amounts.get(0);
    if (size === undefined) prices.leaveOut('database_plan', place, UNKNOWN_SIZE);
    else if (whole !== undefined) add(size, [whole]);
    return;
  }
  let isKnown = false;
  for (const vcores of new Set([...VCORES, ...amounts.keys()])) {
    const size = sizes.get(sizeName(of, vcores));
    if (vcores === 1) continue;
    const [one, whole] = [amounts.get(1), amounts.get(vcores)];
    if (size?.cpu !== vcores) {
      // A number that is only documented may be missing in this series.
      if (whole !== undefined) prices.leaveOut('database_plan', `${place} ${vcores} vCore`, UNKNOWN_SIZE);
      continue;
    }
    isKnown = true;
    const isComposed = one !== undefined && VCORES.includes(vcores) && (vcores !== 20 || hasTwenty(tier, of));
    add(size, [
      ...(isComposed ? [product(one, String(vcores))] : []),
      ...(whole === undefined ? [] : [whole]),
    ]);
  }
  if (!isKnown && amounts.has(1)) prices.leaveOut('database_plan', place, UNKNOWN_SIZE);
}

const UNKNOWN_SIZE = 'no size of it is in the list of SKUs, which has the CPUs and the memory';

function hasTwenty(tier: string, series: string): boolean {
  return tier !== 'General Purpose' && Number(SERIES.exec(series)?.groups?.version) >= 4;
}

/** In lower case. */
function sizeName(series: string, vcores: number): string {
  const { family = '', features = '', version = '' } = SERIES.exec(series)?.groups ?? {};
  return `standard_${family}${vcores}${features}_v${version}`.toLowerCase();
}

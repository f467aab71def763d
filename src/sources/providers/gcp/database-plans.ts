/** Plans of Cloud SQL for PostgreSQL and MySQL. Google prices their CPUs and memory, so a plan is composed of both. */
import Big from 'big.js';
import { memory } from '../../../domain/machine.ts';
import { isPositive } from '../../../domain/prices/price.ts';
import { nothingListed, pagesByToken } from '../../http/lists.ts';
import type { RegionPrices } from '../../schema/region-prices.ts';
import { labelIn, parseRow, type Row, rowOf, unusable, valueIn } from '../../schema/rows.ts';
import { badAnswer, type SourceHttp } from '../../source.ts';
import {
  agreed,
  type FoundSku,
  MEMORY,
  paidAmount,
  pricedBy,
  SKUS_QUERY,
  Sku,
  SkuPage,
  stepsInForce,
} from './sku.ts';

/** The SKUs of Cloud SQL. */
export const DATABASE_SKUS = '/v1/services/9662-B51E-5089/skus';

/**
 * CPUs and memory of dedicated instances. Other SKUs of the service are shared cores, whose size no SKU states, whole machines of old
 * tiers, the series N4 and C4A, Extended Support, storage, addresses and commitments.
 */
const PART =
  /^Cloud SQL for (?<engine>PostgreSQL|MySQL): (?<place>Zonal|Regional) - (?:(?<edition>Enterprise|Enterprise Plus) )?(?<part>vCPU|RAM) in .+$/;
const PRICED = { vCPU: pricedBy('h'), RAM: MEMORY };
type Part = keyof typeof PRICED;

/** A regional instance has a standby in another zone, and its price includes it. */
const NODES: Readonly<Record<string, number>> = { Zonal: 1, Regional: 2 };

interface Shape {
  readonly name: string;
  readonly cpu: number;
  /** MiB. */
  readonly memory: number;
}

/**
 * The shapes that Google names. Enterprise is sold in any size of 1 or an even number of CPUs up to 96, with 0.9 to 6.5 GiB for each:
 * the plans have the 3.75 and 6.5 GiB of its standard and high-memory tiers. Source: https://cloud.google.com/sql/docs/postgres/instance-settings.
 */
const SHAPES: Readonly<Record<string, readonly Shape[]>> = {
  Enterprise: [3840, 6656].flatMap((each) =>
    [1, 2, 4, 8, 16, 32, 64, 96].map((cpu) => ({
      name: `db-custom-${cpu}-${cpu * each}`,
      cpu,
      memory: cpu * each,
    })),
  ),
  'Enterprise Plus': [2, 4, 8, 16, 32, 48, 64, 80, 96, 128].map((cpu) => ({
    name: `db-perf-optimized-N-${cpu}`,
    cpu,
    // The largest has less for each CPU.
    memory: (cpu === 128 ? 864 : cpu * 8) * 1024,
  })),
};

/** Prices of one engine and edition in a region, in one zone or two. */
interface Priced {
  readonly engine: string;
  readonly place: string;
  readonly edition: string;
  readonly regionCode: string;
  readonly parts: Map<Part, Row<string>>;
}

/** Adds the plans in these regions: dollars for CPUs and memory, summed exactly. */
export async function readPlans(
  http: SourceHttp,
  now: Date,
  prices: RegionPrices,
  regions: ReadonlyMap<string, unknown>,
): Promise<void> {
  await prices.read('database_plan', DATABASE_SKUS, async () => {
    const found = new Map<string, Priced>();
    let listed = 0;
    const pages = pagesByToken(
      http,
      DATABASE_SKUS,
      SkuPage,
      SKUS_QUERY,
      (page) => page.nextPageToken,
      'pageToken',
    );
    for await (const { data } of pages) {
      for (const row of data.skus) {
        listed += 1;
        const id = labelIn(row, 'skuId') ?? `SKU ${listed}`;
        const sku = prices.usable('database_plan', id, () => parseRow(Sku, row));
        if (sku !== undefined) addPart(found, { ...sku, usage: sku.category.usageType, id, row, now });
      }
    }
    if (listed === 0) throw nothingListed(`${DATABASE_SKUS}: skus`);
    if (found.size === 0) throw badAnswer(`no SKU of ${listed} is a vCPU or RAM of Cloud SQL`);
    for (const priced of found.values()) if (regions.has(priced.regionCode)) addPlans(prices, priced);
  });
}

function addPart(found: Map<string, Priced>, sku: FoundSku): void {
  const { engine, place, edition = 'Enterprise', part } = PART.exec(sku.description)?.groups ?? {};
  if (engine === undefined || place === undefined || !isPart(part) || sku.usage !== 'OnDemand') return;
  const rate = rowOf(() => paidAmount(stepsInForce(PRICED[part], sku)));
  for (const regionCode of sku.serviceRegions) {
    const key = JSON.stringify([engine, place, edition, regionCode]);
    const priced = found.get(key) ?? { engine, place, edition, regionCode, parts: new Map() };
    priced.parts.set(part, agreed(priced.parts.get(part) ?? rate, rate));
    found.set(key, priced);
  }
}

function isPart(text = ''): text is Part {
  return Object.hasOwn(PRICED, text);
}

/** Without the price of one part, an edition has no plans: half of a price is never published. */
function addPlans(prices: RegionPrices, { engine, place, edition, regionCode, parts }: Priced): void {
  const key = `${engine} ${place} ${edition}@${regionCode}`;
  const rates = prices.usable('database_plan', key, () => {
    const rateOf = (part: Part) => {
      const rate = valueIn(parts.get(part) ?? { reason: `no SKU prices the ${part}` });
      return isPositive(rate) ? new Big(rate) : unusable(`the ${part} costs nothing`);
    };
    return { cpu: rateOf('vCPU'), ram: rateOf('RAM') };
  });
  if (rates === undefined) return;
  for (const { name, cpu, memory: mebibytes } of SHAPES[edition] ?? []) {
    const size = memory(mebibytes, 'MiB');
    const amount = rates.cpu.times(cpu).plus(rates.ram.times(size.ram)).toFixed();
    prices.addPlan(regionCode, {
      ...{ engine: engine.toLowerCase(), name, nodes: NODES[place] ?? null, cpu, ...size },
      // Storage is another SKU.
      storage: 0,
      price: { amount, per: 'hour', currency: 'USD' },
    });
  }
}

import Big from 'big.js';
import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { isPositive, product } from '../../domain/prices/price.ts';
import { siblingHost } from '../http/address.ts';
import { gigabytes } from '../schema/facts.ts';
import { amount, count, label, quantity, someRows } from '../schema/fields.ts';
import { offerItem, orRejected, rejectedRow } from '../schema/items.ts';
import { RegionPrices, tiersOf } from '../schema/region-prices.ts';
import { labelIn, parseRow, type Row, readRow, rowOf, unusable, valueIn } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem, SourceHttp } from '../source.ts';

const SHAPES = '/a/ocom/docs/cloudestimator2/data/shapes.json';
const PRODUCTS = '/pls/apex/cetools/api/v1/products/';
/** Prices are the same in all commercial regions, and the list of shapes does not state the regions of a shape. */
const REGION = { code: 'commercial', name: 'All commercial regions' } as const;

const Shapes = z.object({ items: someRows, count: z.int().optional() });
const Products = z.object({ items: someRows });

const Kind = z.object({ shapeType: z.object({ value: z.string() }), name: label });
const words = z.object({ value: z.string() });
const Part = z.object({
  partNumber: label,
  type: z.object({ value: z.enum(['ocpu', 'memory', 'disk'], { error: 'must be ocpu, memory or disk' }) }),
  /** OCPUs; GB of memory; TB of disk. */
  qty: quantity,
});
const Shape = z.object({
  hidden: z.boolean(),
  status: z.string(),
  bundleMemoryQty: quantity.nullish(),
  gpuQty: count.nullish(),
  processorType: words.optional().catch(undefined),
  /** True if the shape has preemptible capacity. */
  allowPreemptible: z.unknown().optional(),
  products: z.array(Part).min(1, { error: 'must have at least one entry' }),
});
/** The list states no quantities of new shapes with accelerators, which are never published. */
const AcceleratedShape = Shape.extend({
  products: z
    .array(Part.extend({ qty: quantity.nullable() }))
    .min(1, { error: 'must have at least one entry' }),
});
type Shape = z.infer<typeof AcceleratedShape>;

/** OCPUs, and GB of memory, of shapes without quantities. Source: that of `cpusPerOcpu`. */
const DOCUMENTED: Readonly<Record<string, { readonly ocpu: number; readonly memory: number }>> = {
  'BM.GPU.GB300.4': { ocpu: 144, memory: 960 },
};

/**
 * No part of the price list is for preemptible capacity: "Preemptible capacity costs 50% less than on-demand capacity".
 * Source: https://docs.oracle.com/en-us/iaas/Content/Compute/Concepts/preemptible.htm, and the notes of the price list.
 */
const PREEMPTIBLE = '0.5';

/** A GB of a block volume costs its storage, and the performance of as many units as the level has. Source: https://www.oracle.com/cloud/storage/pricing/. */
const VOLUME = { storage: 'B91961', performance: 'B91962' } as const;
const LEVELS = { balanced: 10, lower_cost: 0, higher_performance: 20 } as const;

/** Outgoing traffic by the region that it leaves. */
const TRAFFIC = {
  north_america_europe_uk: 'B88327',
  apac_japan_south_america: 'B93455',
  middle_east_africa: 'B93456',
} as const;

/** `VM.GPU3.1`, `BM.GPU.B300.8`; the count of accelerators may be null. */
const ACCELERATED = /\.GPU/;
const Accelerators = z.object({ gpuQty: z.unknown() });

const Localizations = z.array(
  z.object({
    currencyCode: z.string(),
    prices: z.array(z.object({ model: z.string(), value: amount, rangeMin: z.unknown().optional() })),
  }),
);
const productOf = (metric: RegExp, what: string) =>
  z.object({
    metricName: z.string().regex(metric, { error: `must be a quantity ${what}` }),
    currencyCodeLocalizations: Localizations,
  });
const Product = productOf(/ per hour$/i, 'per hour');
const Volume = productOf(
  /^(Gigabyte Storage Capacity|Performance Units Per Gigabyte) Per Month$/i,
  'per gigabyte and month',
);
const Traffic = productOf(/^Gigabyte Outbound Data Transfer Per Month$/i, 'of gigabytes');
type Product = z.infer<typeof Product>;

/** The rows of the price list by part number. */
type Products = ReadonlyMap<string, readonly unknown[]>;
type Rates = ReadonlyMap<string, Row<string>>;

/**
 * The price of a shape is the sum of its OCPUs, its memory and its disks. A flexible shape has the size in the list.
 * Source: https://docs.oracle.com/en-us/iaas/Content/Billing/Tasks/signingup_topic-Estimating_Costs.htm, and the data of
 * https://www.oracle.com/cloud/costestimator.html, as in https://github.com/dstackai/gpuhunt (providers/oci.py).
 */
export const adapter: CatalogueAdapter = {
  id: 'oracle',
  provider: { id: 11, name: 'Oracle' },
  baseUrl: 'https://www.oracle.com/a/ocom/docs/cloudestimator2/data',
  endpoints: [SHAPES, PRODUCTS],
  credentials: 'none',
  memoryUnit: 'GB',
  currency: 'USD',
  facts: ['architecture', 'localDisk'],
  schedule: '57 */6 * * *',
  notes:
    'Shapes come from the cost estimator, prices from the public price list at `https://apexapps.oracle.com`. Neither ' +
    'names regions. Prices are the same in all commercial regions, so Fleetbook has one region, `commercial`, for all of ' +
    'them; a shape may not be sold in each. A flexible shape is one machine, in the first size of the estimator. An OCPU ' +
    'is two vCPUs, an OCPU of Ampere A1 one. Preemptible capacity has no part in the price list. Oracle documents that it costs 50 % less ' +
    'than capacity on demand, so the spot price of a shape that the estimator marks as preemptible is half of its price. A volume ' +
    'costs its storage and its performance units: 10 for each GB of the level `balanced`, the default, none of `lower_cost`, and 20 of ' +
    '`higher_performance`. Traffic has a price for each part of the world. The default is that of regions in North America, Europe and ' +
    'the United Kingdom, and the first 10 TB of a month are free. The price list has no part for public IPv4 addresses. If the URL is not Oracle’s, prices are read there too: ' +
    `\`${PRODUCTS}\` replaces the path from \`/a/ocom/docs/\` on.`,

  async *catalogue({ http }) {
    const prices = siblingHost(http, {
      below: /^(.*)\/a\/ocom\/docs\/cloudestimator2\/data\/?$/,
      example: 'https://www.oracle.com/a/ocom/docs/cloudestimator2/data',
      first: /(^|\.)oracle\.com$/,
      second: 'https://apexapps.oracle.com',
      credentials: 'none',
    });
    const { items, count: advertised } = (await http.json('/shapes.json', Shapes)).data;
    if (advertised !== undefined) yield { kind: 'total', of: 'shapes', advertised, fetched: items.length };
    const products = await readProducts(prices);
    const rates = new Map(
      [...products].map(([part, [row, another]]) => [
        part,
        another === undefined ? rowOf(() => rateOf(parseRow(Product, row))) : { reason: 'is listed twice' },
      ]),
    );
    yield { kind: 'region', ...REGION };
    for (const [index, row] of items.entries()) {
      const { value: kind, reason } = readRow(Kind, row);
      const listed = labelIn(row, 'name');
      // `BM.GPU.GB200.4 (NVL72)` is BM.GPU.GB200.4 in the Compute API.
      const name = listed?.replace(/\([^()]*\)$/, '').trimEnd() ?? '';
      if (kind === undefined)
        yield rejectedRow(listed ?? `shape ${index + 1}`, reason, { name: name || undefined });
      else if (['vm', 'bm'].includes(kind.shapeType.value)) {
        const item = orRejected(name, { name, regionCode: REGION.code }, () => itemOf(name, row, rates));
        if (item !== undefined) yield item;
      }
    }
    yield* regionPrices(products).items(['balanced', 'north_america_europe_uk']);
  },
};

async function readProducts(http: SourceHttp): Promise<Products> {
  const { items } = (await http.json(PRODUCTS, Products, { query: { currencyCode: adapter.currency } })).data;
  // A shape with a part that has no number has no price and is rejected.
  const numbered = items.filter((row) => labelIn(row, 'partNumber') !== undefined);
  return Map.groupBy(numbered, (row) => labelIn(row, 'partNumber') ?? '');
}

function statedPrices({ currencyCodeLocalizations }: Product) {
  const local = currencyCodeLocalizations.find(({ currencyCode }) => currencyCode === adapter.currency);
  return (local?.prices ?? []).filter(({ model }) => model === 'PAY_AS_YOU_GO');
}

/** Returns the first price above zero: the first hours of a month may be free. */
function rateOf(product: Product): string {
  const stated = statedPrices(product);
  const [first] = stated;
  if (first === undefined)
    return unusable(
      `currencyCodeLocalizations must have a price with model PAY_AS_YOU_GO in ${adapter.currency}`,
    );
  const paid = new Set(stated.map(({ value }) => value).filter(isPositive));
  const [price = first.value, ...others] = paid;
  return others.length === 0 ? price : unusable(`has several prices: ${[...paid].join(', ')}`);
}

/** Returns the prices of volumes by their level of performance, and of traffic. The list has no part for IPv4 addresses. */
function regionPrices(products: Products): RegionPrices {
  const prices = new RegionPrices();
  const tiersIn = (part: string, schema: typeof Volume | typeof Traffic) => {
    const [row, another] = products.get(part) ?? unusable('is not in the price list');
    if (another !== undefined) return unusable('is listed twice');
    const stated = statedPrices(parseRow(schema, row));
    return tiersOf(stated.map(({ value, rangeMin }) => ({ from: String(rangeMin ?? 0), amount: value })));
  };
  const amountIn = (part: string) => {
    const [tier, another] = tiersIn(part, Volume);
    return tier && !another ? tier.amount : unusable('has several prices by quantity');
  };
  const common = { currency: adapter.currency, unit: 'GB' } as const;
  const { storage, performance } = VOLUME;
  const add = (name: string, units: number) => {
    const amount = prices.usable('block_storage', `${storage} and ${performance}`, () =>
      new Big(amountIn(performance)).times(units).plus(amountIn(storage)).toFixed(),
    );
    if (amount !== undefined)
      prices.add(REGION.code, { ...common, item: 'block_storage', name, per: 'month', amount });
  };
  for (const [name, units] of Object.entries(LEVELS)) add(name, units);
  for (const [name, part] of Object.entries(TRAFFIC)) {
    const tiers = prices.usable('traffic_out', part, () => tiersIn(part, Traffic));
    if (tiers) prices.addTiers(REGION.code, { ...common, item: 'traffic_out', name, per: undefined, tiers });
  }
  return prices;
}

/** Returns undefined for a shape with accelerators whose size is not known: it is never published. */
function itemOf(name: string, row: unknown, rates: Rates): CatalogueItem | undefined {
  const isAccelerated = ACCELERATED.test(name) || Boolean(Accelerators.safeParse(row).data?.gpuQty);
  const shape = parseRow(isAccelerated ? AcceleratedShape : Shape, row);
  const size = sizeOf(name, shape, isAccelerated);
  if (size === undefined) return undefined;
  const price = { amount: priceOf(shape, rates), per: 'hour', currency: adapter.currency } as const;
  const spot = { ...price, amount: product(price.amount, PREEMPTIBLE) };
  const terms =
    shape.allowPreemptible === true && isPositive(price.amount) ? { terms: { spot: { price: spot } } } : {};
  const facts = factsOf(shape, isAccelerated);
  const found = { regionCode: REGION.code, name, ...size, price, ...terms, facts };
  return offerItem(found, isAccelerated ? 'accelerated' : exclusion(shape));
}

function sizeOf(name: string, shape: Shape, isAccelerated: boolean) {
  const ocpus = partOf(shape, 'ocpu')?.qty ?? DOCUMENTED[name]?.ocpu;
  const size = partOf(shape, 'memory')?.qty ?? shape.bundleMemoryQty ?? DOCUMENTED[name]?.memory;
  if (isAccelerated && (ocpus === undefined || size === undefined)) return undefined;
  const cpu = (ocpus ?? 0) * (isAccelerated ? 2 : cpusPerOcpu(name, shape));
  if (!count.safeParse(cpu).success) unusable('products must have OCPUs, a whole number of vCPUs');
  if (size === undefined)
    return unusable('must have a bundleMemoryQty, or memory in products; it has neither');
  return { cpu, ...memory(size, adapter.memoryUnit) };
}

/** Source: https://docs.oracle.com/en-us/iaas/Content/Compute/References/computeshapes.htm. AmpereOne is A2 and A4. */
function cpusPerOcpu(name: string, { processorType }: Shape): number {
  if (processorType?.value !== 'arm') return 2;
  const series = /\.(A\d+)\./.exec(name)?.[1] ?? '';
  if (series === 'A1') return 1;
  if (series === 'A2' || series === 'A4') return 2;
  return unusable(`how many vCPUs an OCPU of the Arm series ${series || name} has is not known`);
}

const partOf = ({ products }: Shape, kind: 'ocpu' | 'memory' | 'disk') =>
  products.find(({ type }) => type.value === kind);

/** Returns exact dollars per hour. Zero if one part is free or has no quantity, so that half a price is never published. */
function priceOf({ products, gpuQty }: Shape, rates: Rates): string {
  let sum = new Big(0);
  let isFree = false;
  for (const { partNumber, type, qty } of products) {
    const listed = rates.get(partNumber);
    if (listed === undefined)
      return unusable(`no product of the price list has the partNumber ${partNumber}`);
    const rate = valueIn(listed, `product ${partNumber}: `);
    // In a shape with GPUs, the price of an OCPU is the price of a GPU.
    const number = type.value === 'ocpu' ? (gpuQty ?? qty) : qty;
    isFree ||= !isPositive(rate) || number === null;
    sum = sum.plus(new Big(rate).times(number ?? 0));
  }
  return isFree ? '0' : sum.toFixed();
}

function factsOf(shape: Shape, isAccelerated: boolean) {
  const processor = shape.processorType?.value ?? '';
  // The list marks some hosts of accelerators as Arm by mistake.
  const isArm = processor === 'arm' && !isAccelerated;
  const terabytes = partOf(shape, 'disk')?.qty;
  return {
    architecture: ['amd', 'intel'].includes(processor) ? 'x86_64' : isArm ? 'arm64' : undefined,
    localDisk: terabytes == null ? undefined : gigabytes(terabytes * 1000, 'GB'),
  };
}

function exclusion({ hidden, status }: Shape) {
  return hidden || status !== 'ACTIVE' ? 'unavailable' : undefined;
}

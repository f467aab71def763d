import Big from 'big.js';
import { z } from 'zod';
import type { ExclusionReason } from '../../domain/exclusion.ts';
import { memory } from '../../domain/machine.ts';
import { isPositive } from '../../domain/price.ts';
import { siblingHost } from '../http/address.ts';
import { nothingListed } from '../http/listing.ts';
import { amount, count, label, quantity } from '../schema/fields.ts';
import { type FoundFacts, offerItem } from '../schema/offers.ts';
import { labelIn, type Row, readRow, rejectedRow } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem, SourceHttp } from '../source.ts';

const SHAPES = '/a/ocom/docs/cloudestimator2/data/shapes.json';
const PRODUCTS = '/pls/apex/cetools/api/v1/products/';
/** Prices are the same in all commercial regions, and the list of shapes does not state the regions of a shape. */
const REGION = { code: 'commercial', name: 'All commercial regions' } as const;

const Shapes = z.object({ items: z.array(z.unknown()), count: z.int().optional() });
const Products = z.object({ items: z.array(z.unknown()) });

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
  products: z.array(Part).min(1, { error: 'must have at least one entry' }),
});
type Shape = z.infer<typeof Shape>;

const Product = z.object({
  metricName: z.string().regex(/ per hour$/i, { error: 'must be a quantity per hour' }),
  currencyCodeLocalizations: z.array(
    z.object({
      currencyCode: z.string(),
      prices: z.array(z.object({ model: z.string(), value: amount })),
    }),
  ),
});

type Rates = ReadonlyMap<string, Row<string>>;

/**
 * Source of the price list: https://docs.oracle.com/en-us/iaas/Content/Billing/Tasks/signingup_topic-Estimating_Costs.htm.
 * Source of the shapes and their parts: the data of https://www.oracle.com/cloud/costestimator.html, with the fields that
 * https://github.com/dstackai/gpuhunt/blob/master/src/gpuhunt/providers/oci.py reads.
 *
 * The price of a shape is the sum of its OCPUs, its memory and its disks. A flexible shape has the size in the list.
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
    'is two vCPUs, an OCPU of Ampere A1 one. If the URL is not Oracle’s, prices are read there too: ' +
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
    if (items.length === 0) throw nothingListed(SHAPES);
    if (advertised !== undefined) {
      yield { kind: 'total', of: 'shapes', advertised, fetched: items.length };
    }
    const rates = await readRates(prices);
    yield { kind: 'region', ...REGION };
    for (const [index, row] of items.entries()) {
      const { value: kind, reason } = readRow(Kind, row);
      const name = labelIn(row, 'name');
      if (kind === undefined) yield rejectedRow(name ?? `shape ${index + 1}`, reason, { name: plain(name) });
      else if (['vm', 'bm'].includes(kind.shapeType.value)) yield itemOf(plain(kind.name), row, rates);
    }
  },
};

/** `BM.GPU.GB200.4 (NVL72)` → `BM.GPU.GB200.4`, as the Compute API calls it. */
function plain<Name extends string | undefined>(name: Name): Name {
  return name?.replace(/\s*\([^)]*\)$/, '') as Name;
}

async function readRates(http: SourceHttp): Promise<Rates> {
  const { items } = (await http.json(PRODUCTS, Products, { query: { currencyCode: adapter.currency } })).data;
  if (items.length === 0) throw nothingListed(PRODUCTS);
  const rates = new Map<string, Row<string>>();
  for (const row of items) {
    const partNumber = labelIn(row, 'partNumber');
    // A shape with such a part has no price and is rejected.
    if (partNumber === undefined) continue;
    const { value, reason } = readRow(Product, row);
    const rate = value === undefined ? { reason } : rateOf(value);
    rates.set(partNumber, rates.has(partNumber) ? { reason: 'is listed twice' } : rate);
  }
  return rates;
}

/** Returns the first price above zero: the first hours of a month may be free. */
function rateOf({ currencyCodeLocalizations }: z.infer<typeof Product>): Row<string> {
  const local = currencyCodeLocalizations.find(({ currencyCode }) => currencyCode === adapter.currency);
  const stated = (local?.prices ?? []).filter(({ model }) => model === 'PAY_AS_YOU_GO');
  const [first] = stated;
  if (first === undefined) {
    return {
      reason: `currencyCodeLocalizations must have a price with model PAY_AS_YOU_GO in ${adapter.currency}`,
    };
  }
  const paid = new Set(stated.map(({ value }) => value).filter(isPositive));
  const [price = first.value, ...others] = paid;
  return others.length === 0 ? { value: price } : { reason: `has several prices: ${[...paid].join(', ')}` };
}

function itemOf(name: string, row: unknown, rates: Rates): CatalogueItem {
  const regionCode = REGION.code;
  const rejected = (reason: string) => rejectedRow(name, reason, { name, regionCode });
  const { value: shape, reason } = readRow(Shape, row);
  if (shape === undefined) return rejected(reason);
  const size = sizeOf(name, shape);
  if (size.value === undefined) return rejected(size.reason);
  const price = priceOf(shape, rates);
  if (price.value === undefined) return rejected(price.reason);
  const { ram, unit: ramUnit } = memory(size.value.memory, adapter.memoryUnit);
  const hourly = { amount: price.value, per: 'hour', currency: adapter.currency } as const;
  const found = { regionCode, name, cpu: size.value.cpu, ram, ramUnit, price: hourly, facts: factsOf(shape) };
  return offerItem(found, exclusion(shape));
}

function sizeOf(name: string, shape: Shape): Row<{ cpu: number; memory: number }> {
  const { value: perOcpu, reason } = cpusPerOcpu(name, shape);
  if (perOcpu === undefined) return { reason };
  const cpu = (partOf(shape, 'ocpu')?.qty ?? 0) * perOcpu;
  if (!count.safeParse(cpu).success) return { reason: 'products must have OCPUs, a whole number of vCPUs' };
  const size = partOf(shape, 'memory')?.qty ?? shape.bundleMemoryQty;
  if (size == null) return { reason: 'must have a bundleMemoryQty, or memory in products; it has neither' };
  return { value: { cpu, memory: size } };
}

/**
 * Returns the vCPUs of an OCPU: x86 has a core with two threads, Ampere A1 a core, AmpereOne (A2, A4) two cores.
 * Source: https://docs.oracle.com/en-us/iaas/Content/Compute/References/computeshapes.htm.
 */
function cpusPerOcpu(name: string, { processorType, gpuQty }: Shape): Row<number> {
  // The list marks some GPU hosts as Arm by mistake. They are never published.
  if (processorType?.value !== 'arm' || gpuQty != null) return { value: 2 };
  const series = /\.(A\d+)\./.exec(name)?.[1] ?? '';
  if (series === 'A1') return { value: 1 };
  if (series === 'A2' || series === 'A4') return { value: 2 };
  return { reason: `how many vCPUs an OCPU of the Arm series ${series || name} has is not known` };
}

const partOf = ({ products }: Shape, kind: 'ocpu' | 'memory' | 'disk') =>
  products.find(({ type }) => type.value === kind);

/** Returns exact dollars per hour. Zero if one part is free, so that half a price is never published. */
function priceOf({ products, gpuQty }: Shape, rates: Rates): Row<string> {
  let sum = new Big(0);
  let isFree = false;
  for (const { partNumber, type, qty } of products) {
    const rate = rates.get(partNumber);
    if (rate === undefined)
      return { reason: `no product of the price list has the partNumber ${partNumber}` };
    if (rate.value === undefined) return { reason: `product ${partNumber}: ${rate.reason}` };
    isFree ||= !isPositive(rate.value);
    // In a shape with GPUs, the price of an OCPU is the price of a GPU.
    sum = sum.plus(new Big(rate.value).times(type.value === 'ocpu' ? (gpuQty ?? qty) : qty));
  }
  return { value: isFree ? '0' : sum.toFixed() };
}

function factsOf(shape: Shape): FoundFacts {
  const processor = shape.processorType?.value ?? '';
  const terabytes = partOf(shape, 'disk')?.qty;
  return {
    architecture: ['amd', 'intel'].includes(processor)
      ? 'x86_64'
      : processor === 'arm' && !shape.gpuQty
        ? 'arm64'
        : undefined,
    localDisk: terabytes === undefined ? undefined : Math.round(terabytes * 1e6) / 1e3,
  };
}

function exclusion({ gpuQty, hidden, status }: Shape): ExclusionReason | undefined {
  if (gpuQty) return 'accelerated';
  return hidden || status !== 'ACTIVE' ? 'unavailable' : undefined;
}

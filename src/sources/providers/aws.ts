import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { isPositive } from '../../domain/price.ts';
import { entriesOf } from '../http/json-entries.ts';
import { eachRegion, nothingListed } from '../http/lists.ts';
import { amount, count, label, quantity } from '../schema/fields.ts';
import { offerItem, offerOrRejected, orRejected, unusableRegion } from '../schema/items.ts';
import { labelIn, latestPrice, type Row, readRow, rowOf, unusable, valueIn } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem, SourceError, SourceHttp } from '../source.ts';
import { badAnswer } from '../source.ts';
import { awsFacts } from './aws/facts.ts';

const MOST_ROWS = 100_000;
const INDEX = '/offers/v1.0/aws/AmazonEC2/current/region_index.json';

const Index = z.object({ regions: z.record(z.string(), z.unknown()) });
const IndexRow = z.object({
  regionCode: label,
  currentVersionUrl: z.string().regex(/^\/[^/]/, { error: 'must be a path that starts with /' }),
});

/** A type has hundreds of rows; these fields identify the ordinary one. */
const Kind = z.object({
  productFamily: z.string(),
  attributes: z.object({
    instanceType: label,
    operatingSystem: z.string(),
    tenancy: z.string(),
    capacitystatus: z.string(),
    preInstalledSw: z.string(),
    operation: z.string(),
    marketoption: z.string().optional(),
    locationType: z.string().optional(),
  }),
});
type Kind = z.infer<typeof Kind>['attributes'];

const grouped = (text: string) => Number(text.replace(/ GiB$/, '').replaceAll(',', ''));

const Shape = z.object({
  attributes: z.object({
    location: label,
    regionCode: label.optional(),
    vcpu: z
      .string()
      .regex(/^[\d,]+$/, { error: 'must be a whole number above 0' })
      .transform(grouped)
      .pipe(count),
    memory: z
      .string()
      .regex(/^[\d,]+(\.\d+)? GiB$/, { error: 'must be a count of GiB such as "8 GiB"' })
      .transform(grouped)
      .pipe(quantity),
    currentGeneration: z.enum(['Yes', 'No']),
    instanceFamily: label,
    gpu: z.string().optional(),
    physicalProcessor: z.string().optional().catch(undefined),
    processorArchitecture: z.string().optional().catch(undefined),
    storage: z.string().optional().catch(undefined),
    networkPerformance: z.string().optional().catch(undefined),
  }),
});

const Terms = z.record(z.string(), z.unknown()).catch({});
const Term = z.object({
  effectiveDate: z.string().optional(),
  priceDimensions: z.record(z.string(), z.unknown()),
  /** The conditions of a reservation; empty for an on-demand term. */
  termAttributes: z.record(z.string(), z.unknown()).optional(),
});
const Unit = z.object({ unit: z.string(), beginRange: z.string().optional() });
const Hourly = z.object({ pricePerUnit: z.object({ USD: amount }) });

interface Machine {
  readonly sku: string;
  readonly name: string;
  readonly shape: z.infer<typeof Shape>['attributes'];
}

/** Source: https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/bulk-api-reading-price-list-files.html. */
export const adapter: CatalogueAdapter = {
  id: 'aws',
  provider: { id: 2, name: 'AWS' },
  baseUrl: 'https://pricing.us-east-1.amazonaws.com',
  endpoints: [INDEX, '/offers/v1.0/aws/AmazonEC2/{version}/{region}/index.json'],
  credentials: 'none',
  large: true,
  memoryUnit: 'GiB',
  currency: 'USD',
  facts: ['architecture', 'generation', 'localDisk', 'network'],
  schedule: '23 4 * * *',
  notes:
    'Each region has a file of up to 500 MB. Fleetbook reads the files as streams, one after the other, and only those ' +
    'that have changed (`ETag`, `Last-Modified`). If a file cannot be read, its region keeps its machines. Previous ' +
    'generations count as `deprecated`.',

  async *catalogue({ http, now }) {
    const { data } = await http.json(INDEX, Index);
    const rows = Object.entries(data.regions);
    if (rows.length === 0) throw nothingListed(INDEX);
    const failures: SourceError[] = [];
    const files = new Map<string, string>();
    for (const [code, row] of rows) {
      const { value, reason } = readRow(IndexRow, row, ['regions', code]);
      if (value === undefined) {
        yield unusableRegion(label.safeParse(code).data, code, reason);
        failures.push(badAnswer(`${INDEX}: ${reason}`));
      } else files.set(value.regionCode, value.currentVersionUrl);
    }
    yield* eachRegion(files.keys(), (code) => readRegion(http, code, files.get(code) ?? '', now()), failures);
  },
};

async function readRegion(
  http: SourceHttp,
  regionCode: string,
  file: string,
  now: Date,
): Promise<CatalogueItem[]> {
  const answer = await http.streamIfModified(file);
  if ('unmodified' in answer) return [{ kind: 'unmodified', validator: answer.unmodified, regionCode }];
  const { body, url, validator } = answer;
  const where = url.origin + url.pathname;
  const items: CatalogueItem[] = [];
  const machines = new Map<string, Machine>();
  const prices = new Map<string, Row<string>>();
  let begun = false;
  let changesLater = false;
  const isWanted = (map: string, sku: string) => {
    begun ||= map === 'products';
    // Otherwise every price would stay in memory until its product is known.
    if (!begun) throw badAnswer(`${where} has terms before products, or no products`);
    return map === 'products' || machines.has(sku);
  };
  const maps = ['products', 'terms.OnDemand'];
  for await (const { map, key: sku, value } of entriesOf(body, { maps, isWanted, where })) {
    const read = map === 'products' ? machineOf(sku, value, regionCode) : undefined;
    if (map !== 'products') {
      const terms = Terms.parse(value);
      prices.set(
        sku,
        rowOf(() => priceOf(terms, now)),
      );
      changesLater ||= beginsLater(terms, now);
    } else if (read !== undefined && 'kind' in read) items.push(read);
    else if (read !== undefined) machines.set(sku, read);
    if (machines.size + items.length > MOST_ROWS)
      throw badAnswer(`${where} lists more than ${MOST_ROWS} machines; check the source's URL`);
  }
  const [first] = machines.values();
  if (first === undefined) throw badAnswer(`${where} lists nothing in products that is an ordinary machine`);
  items.push({ kind: 'region', code: regionCode, name: first.shape.location });
  const byName = Map.groupBy(machines.values(), ({ name }) => name);
  for (const [name, rows] of byName)
    items.push(offerOrRejected(name, regionCode, () => offered(name, regionCode, rows, prices)));
  if (validator !== undefined && !changesLater) items.push({ kind: 'validator', validator, regionCode });
  return items;
}

/** Returns undefined for another product, and for a type with another operating system, tenancy or contract. */
function machineOf(sku: string, product: unknown, regionCode: string): Machine | CatalogueItem | undefined {
  if (!isInstance(product)) return undefined;
  const name = labelIn(product.attributes, 'instanceType');
  return orRejected(`${name ?? sku}@${regionCode}`, { name, regionCode }, () => {
    const kind = valueIn(readRow(Kind, product), `${sku}: `).attributes;
    if (!isOrdinary(kind)) return undefined;
    const shape = valueIn(readRow(Shape, product), `${sku}: `).attributes;
    const { regionCode: stated = regionCode } = shape;
    if (stated !== regionCode)
      unusable(`${sku}: attributes.regionCode must be ${regionCode}, whose file this is; it is ${stated}`);
    return { sku, name: kind.instanceType, shape };
  });
}

/** Includes bare metal, and products without a family if they have a type: they are rejected, not lost. */
function isInstance(product: unknown): product is { attributes?: unknown } {
  if (typeof product !== 'object' || product === null) return false;
  const family = 'productFamily' in product ? product.productFamily : undefined;
  if (typeof family === 'string') return family.startsWith('Compute Instance');
  return 'attributes' in product && labelIn(product.attributes, 'instanceType') !== undefined;
}

function isOrdinary(kind: Kind): boolean {
  return (
    kind.operatingSystem === 'Linux' &&
    kind.tenancy === 'Shared' &&
    kind.capacitystatus === 'Used' &&
    kind.preInstalledSw === 'NA' &&
    // Other operations, such as `RunInstances:CB`, are capacity bought in advance, listed at zero dollars.
    kind.operation === 'RunInstances' &&
    (kind.marketoption ?? 'OnDemand') === 'OnDemand' &&
    kind.locationType !== 'AWS Outposts'
  );
}

function priceOf(terms: z.infer<typeof Terms>, now: Date): string {
  const problems: string[] = [];
  const current: { since: number; amount: string }[] = [];
  for (const [code, row] of Object.entries(terms)) {
    const { value: term, reason } = readRow(Term, row, [code]);
    if (term === undefined) {
      problems.push(reason);
      continue;
    }
    if (Object.hasOwn(term.termAttributes ?? {}, 'LeaseContractLength')) continue;
    // A term whose date cannot be read counts as in force.
    const since = Date.parse(term.effectiveDate ?? '') || 0;
    if (since > now.getTime()) continue;
    for (const [rate, dimension] of Object.entries(term.priceDimensions)) {
      const unit = readRow(Unit, dimension, [code, 'priceDimensions', rate]);
      if (unit.value === undefined) problems.push(unit.reason);
      else if (unit.value.unit === 'Hrs' && (unit.value.beginRange ?? '0') === '0') {
        const hourly = readRow(Hourly, dimension, [code, 'priceDimensions', rate]);
        if (hourly.value === undefined) problems.push(hourly.reason);
        else current.push({ since, amount: hourly.value.pricePerUnit.USD });
      }
    }
  }
  if (current.length > 0) return latestPrice(current);
  return unusable(problems[0] ?? 'no term is on demand, in force and priced by the hour');
}

/** Returns whether a term begins in the future: then the same file states another price later. */
function beginsLater(terms: z.infer<typeof Terms>, now: Date): boolean {
  return Object.values(terms).some(
    (row) => Date.parse(readRow(Term, row).value?.effectiveDate ?? '') > now.getTime(),
  );
}

/** Returns one type in one region from the rows with its price: mostly one, sometimes a second one at zero dollars. */
function offered(
  name: string,
  regionCode: string,
  rows: readonly Machine[],
  prices: ReadonlyMap<string, Row<string>>,
): CatalogueItem {
  const priced = rows.flatMap((row) => {
    const price = prices.get(row.sku);
    return price === undefined ? [] : [{ ...row, amount: valueIn(price, `${row.sku}: `) }];
  });
  const paid = priced.filter((row) => isPositive(row.amount));
  const [row] = paid.length > 0 ? paid : priced;
  if (row === undefined)
    return unusable(`terms.OnDemand has nothing for ${rows.map(({ sku }) => sku).join(', ')}`);
  if (new Set(paid.map((other) => other.amount)).size > 1)
    unusable(`has several prices: ${paid.map((other) => `${other.amount} (${other.sku})`).join(', ')}`);
  const shapes = new Set(rows.map(({ shape }) => `${shape.vcpu} vCPU and ${shape.memory} GiB`));
  if (shapes.size > 1) unusable(`has several shapes: ${[...shapes].join(', ')}`);

  const { shape, amount } = row;
  const price = { amount, per: 'hour', currency: adapter.currency } as const;
  const machine = { name, cpu: shape.vcpu, ...memory(shape.memory, adapter.memoryUnit), price };
  return offerItem({ regionCode, ...machine, facts: awsFacts(name, shape) }, exclusion(shape));
}

/** Only the family names FPGAs, inference chips and media accelerators. */
function exclusion(shape: Machine['shape']) {
  if (Number(shape.gpu) > 0 || /GPU|FPGA|ASIC|Accelerator/i.test(shape.instanceFamily)) return 'accelerated';
  return shape.currentGeneration === 'No' ? 'deprecated' : undefined;
}

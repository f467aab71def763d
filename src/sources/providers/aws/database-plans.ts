/** Plans of managed databases: RDS and Aurora, which have one offer. */
import { z } from 'zod';
import { type OfferedPlan, planName } from '../../../domain/database-plan.ts';
import { memory } from '../../../domain/machine.ts';
import { nothingListed } from '../../http/lists.ts';
import { label } from '../../schema/fields.ts';
import { LeftOut } from '../../schema/left-out.ts';
import { RegionPrices } from '../../schema/region-prices.ts';
import { labelIn, readRow, rowOf, unusable, valueIn } from '../../schema/rows.ts';
import { badAnswer, type CatalogueItem, type SourceHttp, type ValidatorItem } from '../../source.ts';
import { Index, IndexRow, indexOf, productsIn } from './offer-file.ts';
import { checkRegion, isElsewhere, SIZE } from './products.ts';
import { beginsLater, hourlyPrice, pricedRow } from './terms.ts';

/** The offer of RDS and Aurora. */
export const DATABASES = 'AmazonRDS';

/** By `databaseEngine`, the names that AWS's own API gives them. Other engines need a licence. */
const ENGINES: Readonly<Record<string, string>> = {
  PostgreSQL: 'postgresql',
  MySQL: 'mysql',
  MariaDB: 'mariadb',
  'Aurora PostgreSQL': 'aurora-postgresql',
  'Aurora MySQL': 'aurora-mysql',
};

/**
 * The instances in the price of a deployment. Source of their number:
 * https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_WorkingWithReservedDBInstances.html, units of each deployment.
 */
const INSTANCES: Readonly<Record<string, number>> = {
  'Single-AZ': 1,
  'Multi-AZ': 2,
  'Multi-AZ (readable standbys)': 3,
};

/** I/O-Optimized Aurora: the price of an instance includes its input and output. */
const OPTIMIZED = 'Aurora IO Optimization Mode';
const OPTIMIZED_USAGE = 'InstanceUsageIOOptimized:';

const Engine = z.object({ attributes: z.object({ databaseEngine: z.string() }) });
const Instance = z.object({
  productFamily: z.literal('Database Instance', { error: 'must be Database Instance' }),
  attributes: z.object({
    instanceType: label,
    deploymentOption: z.string(),
    usagetype: z.string(),
    storage: z.string().optional(),
    locationType: z.string().optional(),
    regionCode: z.string().optional(),
    ...SIZE,
  }),
});

/**
 * Yields the plans of these regions whose file has changed. If a file cannot be read, the stored plans stay, the machines of the run
 * are good, and the next run reads all files again.
 */
export async function* readPlans(
  http: SourceHttp,
  regions: ReadonlySet<string>,
  now: Date,
): AsyncGenerator<CatalogueItem> {
  const path = indexOf(DATABASES);
  let files: Readonly<Record<string, unknown>> = {};
  const index = new RegionPrices();
  let failure = await index.read('database_plan', path, async () => {
    files = (await http.json(path, Index)).data.regions;
    if (Object.keys(files).length === 0) throw nothingListed(path);
  });
  yield* ofPlans(index.items());
  const validators: ValidatorItem[] = [];
  for (const [code, row] of Object.entries(files)) {
    const { value, reason } = readRow(IndexRow, row, ['regions', code]);
    if (value !== undefined && !regions.has(value.regionCode)) continue;
    const prices: RegionPrices = new RegionPrices(new LeftOut(), failure);
    const failed = await prices.read('database_plan', path, async () => {
      if (value === undefined) throw badAnswer(reason);
      const { regionCode, currentVersionUrl } = value;
      const validator = await addPlans(http, regionCode, currentVersionUrl, now, prices);
      if (validator !== undefined) validators.push(validator);
    });
    failure = failed ?? failure;
    // The rejected rows name their region: a row without one causes all files to be read again.
    yield* ofPlans(prices.items([], label.safeParse(code).data));
  }
  // After a failure plans that are gone stay, so each file is read again. The unmodified ones keep what is stored.
  yield* validators.filter(({ kind }) => kind === 'unmodified' || failure === undefined);
}

/** A rejected row causes the files of plans to be read again, and not those of machines. */
function* ofPlans(items: Iterable<CatalogueItem>): Generator<CatalogueItem> {
  for (const item of items) yield item.kind === 'rejected' ? { ...item, of: 'database_plan' } : item;
}

/** Adds the plans of one region. Returns nothing to store if its file states other prices later. */
async function addPlans(
  http: SourceHttp,
  regionCode: string,
  file: string,
  now: Date,
  prices: RegionPrices,
): Promise<ValidatorItem | undefined> {
  const answer = await http.streamIfModified(file);
  const place = { regionCode, of: 'database_plan' } as const;
  if ('unmodified' in answer) return { kind: 'unmodified', validator: answer.unmodified, ...place };
  const products = await productsIn(answer, (sku, product) =>
    prices.usable('database_plan', `${sku}@${regionCode}`, () => planOf(sku, product, regionCode)),
  );
  if (products.length === 0)
    prices.leaveOut('database_plan', file, 'products has no instance of a known engine');
  const plans = Map.groupBy(products, ({ product }) => planName(product));
  for (const [name, rows] of plans) {
    const plan = prices.usable('database_plan', `${name}@${regionCode}`, () => {
      const { product, amount } = pricedRow(rows, ({ terms }) =>
        Object.keys(terms).length === 0 ? undefined : rowOf(() => hourlyPrice(terms, now)),
      );
      const shapes = new Set(rows.map(({ product: { cpu, ram } }) => `${cpu} vCPU and ${ram} GiB`));
      if (shapes.size > 1) unusable(`has several shapes: ${[...shapes].join(', ')}`);
      return { ...product, price: { amount, per: 'hour', currency: 'USD' } as const };
    });
    if (plan !== undefined) prices.addPlan(regionCode, plan);
  }
  const { validator } = answer;
  const changesLater = products.some(({ terms }) => beginsLater(terms, now));
  return validator === undefined || changesLater ? undefined : { kind: 'validator', validator, ...place };
}

type Plan = Omit<OfferedPlan, 'price'>;

/**
 * Returns the plan of an instance; undefined for another product, such as storage, and for another engine. The price of RDS is that of
 * all instances of the deployment. The price of Aurora is that of one instance, and a cluster may have any number.
 */
function planOf(sku: string, product: unknown, regionCode: string): Plan | undefined {
  if (!isInstance(product)) return undefined;
  const place = `${sku}: `;
  const { databaseEngine } = valueIn(readRow(Engine, product), place).attributes;
  const engine = ENGINES[databaseEngine];
  if (engine === undefined) return undefined;
  const { instanceType, deploymentOption, vcpu, storage, usagetype, ...rest } = valueIn(
    readRow(Instance, product),
    place,
  ).attributes;
  if (isElsewhere(rest, regionCode)) return undefined;
  checkRegion(sku, rest, regionCode);
  const instances =
    INSTANCES[deploymentOption] ?? unusable(`${place}deploymentOption is unknown: ${deploymentOption}`);
  const isAurora = engine.startsWith('aurora-');
  if (isAurora && instances > 1) unusable(`${place}Aurora has no deploymentOption ${deploymentOption}`);
  const isOptimized = isAurora && (storage === OPTIMIZED || usagetype.includes(OPTIMIZED_USAGE));
  return {
    engine,
    name: isOptimized ? `${instanceType} I/O-Optimized` : instanceType,
    nodes: isAurora ? null : instances,
    cpu: vcpu,
    ...memory(rest.memory, 'GiB'),
    // Storage is another product.
    storage: 0,
  };
}

/** Includes products without a family if they have a type: they are left out with a reason, not lost. */
function isInstance(product: unknown): boolean {
  if (typeof product !== 'object' || product === null) return false;
  const family = 'productFamily' in product ? product.productFamily : undefined;
  if (typeof family === 'string') return family === 'Database Instance';
  return 'attributes' in product && labelIn(product.attributes, 'instanceType') !== undefined;
}

import { memory } from '../../domain/machine.ts';
import { entriesOf } from '../http/json-entries.ts';
import { eachRegion, nothingListed } from '../http/lists.ts';
import { label } from '../schema/fields.ts';
import { offerItem, offerOrRejected, rejectedRow, unusableRegion } from '../schema/items.ts';
import type { LeftOut } from '../schema/left-out.ts';
import { regionPriceItems, unreadPrices } from '../schema/region-prices.ts';
import { readRow, unusable } from '../schema/rows.ts';
import type {
  CatalogueAdapter,
  CatalogueItem,
  SourceError,
  SourceHttp,
  UnreadItem,
  ValidatorItem,
} from '../source.ts';
import { badAnswer } from '../source.ts';
import { DATABASES, readPlans } from './aws/database-plans.ts';
import { awsFacts } from './aws/facts.ts';
import { networkPrices } from './aws/network-prices.ts';
import { fileOf, Index, IndexRow, indexOf } from './aws/offer-file.ts';
import type { Machine } from './aws/products.ts';
import { MAPS, RegionFile } from './aws/region-file.ts';
import { pricedRow } from './aws/terms.ts';

const [MACHINES, ...OTHERS] = ['AmazonEC2', 'AWSDataTransfer', 'AmazonVPC'] as const;
type Offer = typeof MACHINES | (typeof OTHERS)[number];

/** Source: https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/bulk-api-reading-price-list-files.html. */
export const adapter: CatalogueAdapter = {
  id: 'aws',
  provider: { id: 2, name: 'AWS' },
  baseUrl: 'https://pricing.us-east-1.amazonaws.com',
  endpoints: [MACHINES, ...OTHERS, DATABASES].flatMap((offer) => [indexOf(offer), fileOf(offer)]),
  credentials: 'none',
  large: true,
  memoryUnit: 'GiB',
  currency: 'USD',
  facts: ['architecture', 'generation', 'localDisk', 'network'],
  schedule: '23 4 * * *',
  notes:
    'Each region has a file of up to 500 MB. Fleetbook reads the files as streams, one after the other, and only those ' +
    'that have changed (`ETag`, `Last-Modified`). If a file cannot be read, its region keeps its machines. Previous ' +
    'generations are published, because AWS still sells them. Terms are standard reservations for one and three years, each with the cheapest way ' +
    'to pay. The files state no spot prices and no savings plans. Volumes are in the same file, default `gp3`. Traffic and ' +
    'addresses are in two small files of the region, which are read when the large one has changed. The free 100 GB of ' +
    'traffic a month count for all regions together, so no region includes them. RDS for PostgreSQL, MySQL and MariaDB and Aurora are plans of ' +
    'databases. Their file of a region is a stream too, read if it has changed. If it cannot be read, the region ' +
    'keeps its plans. A Multi-AZ deployment is a plan with two nodes, one with readable standbys has three, and the price is that of all. ' +
    'The price of Aurora is that of one instance, Standard or `I/O-Optimized`. Prices exclude storage, backups and Extended Support; only ' +
    'those of `I/O-Optimized` include input and output.',

  async *catalogue({ http, now }) {
    const indexes = new Map<Offer, Map<string, string>>();
    const failures: SourceError[] = [];
    for (const offer of [MACHINES, ...OTHERS]) {
      const files = yield* readIndex(http, offer, failures);
      indexes.set(offer, files);
    }
    const files = (regionCode: string) => (offer: Offer) => indexes.get(offer)?.get(regionCode);
    const regions = indexes.get(MACHINES)?.keys() ?? [];
    const read: ReadRegions = { codes: new Set(), validators: [], found: new Set(), leftOut: [] };
    yield* eachRegion(regions, (code) => readRegion(http, code, files(code), now(), read), failures);
    yield* unreadPrices(read.found, read.leftOut);
    yield* readPlans(http, read.codes, now());
    yield* read.validators;
  },
};

async function* readIndex(
  http: SourceHttp,
  offer: Offer,
  failures: SourceError[],
): AsyncGenerator<CatalogueItem, Map<string, string>> {
  const path = indexOf(offer);
  const { data } = await http.json(path, Index);
  const rows = Object.entries(data.regions);
  if (rows.length === 0) throw nothingListed(path);
  const files = new Map<string, string>();
  for (const [code, row] of rows) {
    const { value, reason } = readRow(IndexRow, row, ['regions', code]);
    if (value !== undefined) files.set(value.regionCode, value.currentVersionUrl);
    // Without one of the other files a region has its machines, but not these prices.
    else if (offer !== MACHINES) {
      const regionCode = label.safeParse(code).data;
      yield rejectedRow(`${offer} ${code}`, `${path}: ${reason}`, { name: offer, regionCode });
    } else {
      yield unusableRegion(label.safeParse(code).data, code, reason);
      failures.push(badAnswer(`${path}: ${reason}`));
    }
  }
  return files;
}

/** Rejected rows name their region: a row without one causes all files to be read again. */
interface ReadRegions {
  /** Unmodified ones too. */
  readonly codes: Set<string>;
  /** Of the files that have changed, and state no other prices later. */
  readonly validators: ValidatorItem[];
  readonly found: Set<UnreadItem>;
  readonly leftOut: LeftOut[];
}

async function readRegion(
  http: SourceHttp,
  regionCode: string,
  files: (offer: Offer) => string | undefined,
  now: Date,
  read: ReadRegions,
): Promise<CatalogueItem[]> {
  const answer = await http.streamIfModified(files(MACHINES) ?? '');
  if ('unmodified' in answer) {
    read.codes.add(regionCode);
    return [{ kind: 'unmodified', validator: answer.unmodified, regionCode }];
  }
  const { body, url, validator } = answer;
  const where = url.origin + url.pathname;
  const file = new RegionFile(regionCode, where, now);
  for await (const { map, key, value } of entriesOf(body, { maps: MAPS, isWanted: file.isWanted, where }))
    file.add(map, key, value);
  const [first] = file.machines.values();
  if (first === undefined) throw badAnswer(`${where} lists nothing in products that is an ordinary machine`);
  const items: CatalogueItem[] = [{ kind: 'region', code: regionCode, name: first.shape.location }];
  items.push(...file.rejected);
  for (const [name, rows] of Map.groupBy(file.machines.values(), (machine) => machine.name))
    items.push(offerOrRejected(name, regionCode, () => offered(name, regionCode, rows, file)));
  const prices = [...file.storage(), ...(await networkPrices(http, regionCode, files, now, file.leftOut))];
  items.push(...regionPriceItems(regionCode, prices, ['gp3', 'gp2']), ...file.leftOut.rows(regionCode));
  for (const { item } of prices) read.found.add(item);
  read.leftOut.push(file.leftOut);
  read.codes.add(regionCode);
  if (validator !== undefined && !file.changesLater)
    read.validators.push({ kind: 'validator', validator, regionCode });
  return items;
}

/** Returns one type in one region from the rows with its price: mostly one, sometimes a second one at zero dollars. */
function offered(
  name: string,
  regionCode: string,
  rows: readonly Machine[],
  file: RegionFile,
): CatalogueItem {
  const { sku, shape, amount } = pricedRow(rows, (row) => file.prices.get(row.sku));
  const shapes = new Set(rows.map(({ shape }) => `${shape.vcpu} vCPU and ${shape.memory} GiB`));
  if (shapes.size > 1) unusable(`has several shapes: ${[...shapes].join(', ')}`);
  const price = { amount, per: 'hour', currency: adapter.currency } as const;
  const terms = file.reserved.get(sku);
  const machine = { name, cpu: shape.vcpu, ...memory(shape.memory, adapter.memoryUnit), price };
  const offer = { regionCode, ...machine, ...(terms && { terms }), facts: awsFacts(name, shape) };
  return offerItem(offer, exclusion(shape));
}

/** Only the family names FPGAs, inference chips and media accelerators. */
function exclusion(shape: Machine['shape']) {
  const isAccelerated = Number(shape.gpu) > 0 || /GPU|FPGA|ASIC|Accelerator/i.test(shape.instanceFamily);
  return isAccelerated ? 'accelerated' : undefined;
}

/**
 * Azure's public price list: what a size of virtual machine costs in a region, on demand.
 *
 * Source: https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices.
 */
import { z } from 'zod';
import { nothingListed } from '../../http/listing.ts';
import { amount, label } from '../../schema/fields.ts';
import { labelIn, type Row, readRow, rejectedRow } from '../../schema/rows.ts';
import { type CatalogueItem, SourceError, type SourceHttp } from '../../source.ts';

export const PRICES = '/api/retail/prices';
/** `Consumption` leaves out reservations and the prices of DevTest subscriptions. */
const FILTER = "serviceName eq 'Virtual Machines' and priceType eq 'Consumption'";
/** At 100 rows a page, as it once was, there are some thousands. */
const MOST_PAGES = 10_000;

type Query = Readonly<Record<string, string>>;

const PricePage = z.object({
  Items: z.array(z.unknown()),
  NextPageLink: z.string().nullable(),
  /** Of the rows in this page. */
  Count: z.int(),
});

/** What tells the ordinary row of a size from its others. */
const Kind = z.object({
  armRegionName: label,
  /** Empty for what is no size, such as the hour of a dedicated host. */
  armSkuName: z.string(),
  productName: z.string(),
  skuName: z.string(),
  meterName: z.string(),
  type: z.string(),
  tierMinimumUnits: z.number().optional(),
  effectiveStartDate: z.string(),
  effectiveEndDate: z.string().optional(),
  isPrimaryMeterRegion: z.boolean().optional(),
});
type Kind = z.infer<typeof Kind>;
const Price = z.object({
  location: label,
  currencyCode: z.literal('USD', { error: 'must be USD, as asked for' }),
  unitOfMeasure: z.literal('1 Hour', { error: 'must be 1 Hour' }),
  retailPrice: amount,
});

export interface AzurePrice {
  readonly name: string;
  readonly regionCode: string;
  /** Dollars an hour. */
  readonly price: Row<string>;
  /** Whether it is sold with Windows only. */
  readonly licensed: boolean;
}

interface PriceRow {
  readonly since: number;
  readonly isPrimary: boolean;
  readonly price: Row<string>;
}

/** The rows of one size in one region, those with Windows apart. */
interface SizeRows {
  readonly name: string;
  readonly regionCode: string;
  readonly linux: PriceRow[];
  readonly windows: PriceRow[];
}

/**
 * Reads the whole list, page after page. A size that a region sells at Spot or Low Priority prices only is not sold
 * there on demand, and left out; rows that cannot be told apart come back as rejected ones.
 */
export async function* readPrices(
  http: SourceHttp,
  now: Date,
): AsyncGenerator<CatalogueItem, { regions: Map<string, string>; priced: AzurePrice[] }> {
  const regions = new Map<string, string>();
  const sizes = new Map<string, SizeRows>();
  const listed = pagesByLink(http, PRICES, PricePage, { $filter: FILTER }, (page) => page.NextPageLink);
  let [advertised, fetched] = [0, 0];
  for await (const { Items, Count } of listed) {
    for (const [index, row] of Items.entries()) {
      const { value: kind, reason } = readRow(Kind, row);
      const [name, regionCode] = [labelIn(row, 'armSkuName'), labelIn(row, 'armRegionName')];
      const key = `${name ?? `price ${fetched + index + 1}`}@${regionCode ?? 'an unknown region'}`;
      if (kind === undefined) yield rejectedRow(key, reason, { name, regionCode });
      else if (isOnDemand(kind, now)) {
        const read = readRow(Price, row);
        if (read.value !== undefined) regions.set(kind.armRegionName, read.value.location);
        keep(sizes, kind, read.value === undefined ? read : { value: read.value.retailPrice });
      }
    }
    advertised += Count;
    fetched += Items.length;
  }
  if (sizes.size === 0) throw nothingListed(`${PRICES}: Items`);
  yield { kind: 'total', of: 'prices', advertised, fetched };
  return { regions, priced: [...sizes.values()].map(chosen) };
}

/** In force, and neither Spot, Low Priority, a dedicated host's nor any other than a virtual machine's by itself. */
function isOnDemand(kind: Kind, now: Date): boolean {
  if (kind.armSkuName === '' || kind.type !== 'Consumption' || (kind.tierMinimumUnits ?? 0) > 0) return false;
  if (/\b(Spot|Low Priority|Expired)\b/i.test(`${kind.skuName} ${kind.meterName}`)) return false;
  if (/\b(Dedicated Host|Cloud ?Services)\b/i.test(kind.productName)) return false;
  // A date that cannot be read is no reason to believe that the price is not in force.
  const [from, to] = [Date.parse(kind.effectiveStartDate), Date.parse(kind.effectiveEndDate ?? '')];
  return !(from > now.getTime()) && !(to <= now.getTime());
}

function keep(sizes: Map<string, SizeRows>, kind: Kind, price: Row<string>): void {
  const { armSkuName: name, armRegionName: regionCode } = kind;
  const key = JSON.stringify([name, regionCode]);
  const size = sizes.get(key) ?? { name, regionCode, linux: [], windows: [] };
  sizes.set(key, size);
  const rows = /\bWindows\b/i.test(kind.productName) ? size.windows : size.linux;
  const since = Date.parse(kind.effectiveStartDate) || 0;
  rows.push({ since, isPrimary: kind.isPrimaryMeterRegion ?? true, price });
}

function chosen({ name, regionCode, linux, windows }: SizeRows): AzurePrice {
  const licensed = linux.length === 0;
  return { name, regionCode, price: inForce(licensed ? windows : linux), licensed };
}

/** The price of the primary meter, or where there is none of another, that came into force last. */
function inForce(rows: readonly PriceRow[]): Row<string> {
  const bad = rows.find(({ price }) => price.reason !== undefined);
  if (bad !== undefined) return bad.price;
  const primary = rows.filter(({ isPrimary }) => isPrimary);
  const candidates = primary.length > 0 ? primary : rows;
  const latest = Math.max(...candidates.map(({ since }) => since));
  const amounts = new Set(candidates.filter(({ since }) => since === latest).map(({ price }) => price.value));
  const [found] = amounts;
  if (found === undefined || amounts.size > 1)
    return { reason: `several prices are in force: ${[...amounts].join(', ')}` };
  return { value: found };
}

/**
 * The pages of one of Azure's lists. Of a link to the next page only the query is followed: it names the public host,
 * whatever the list was asked of.
 * @throws SourceError `invalid` when a page comes again, or the pages do not come to an end
 */
export async function* pagesByLink<T>(
  http: SourceHttp,
  path: string,
  schema: z.ZodType<T>,
  first: Query,
  nextOf: (page: T) => string | null | undefined,
): AsyncGenerator<T, void> {
  const asked = new Set<string>();
  let query = first;
  while (!asked.has(JSON.stringify(query)) && asked.size < MOST_PAGES) {
    asked.add(JSON.stringify(query));
    const { data } = await http.json(path, schema, { query });
    yield data;
    const next = nextOf(data) ?? '';
    if (next === '') return;
    if (!URL.canParse(next)) throw new SourceError('invalid', `${path}: its link to the next page is no URL`);
    query = Object.fromEntries(new URL(next).searchParams);
  }
  throw new SourceError('invalid', `${path} repeats a page, or has more than ${MOST_PAGES} pages`);
}

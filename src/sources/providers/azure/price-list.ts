/** Lists of Azure's price list, and which of their rows are in force. */
import { z } from 'zod';
import { pagesByLink } from '../../http/lists.ts';
import { latestPrice, type Row, valueIn } from '../../schema/rows.ts';
import type { CatalogueItem, SourceHttp } from '../../source.ts';

export const PRICES = '/api/retail/prices';
/** The version with savings plans. */
const VERSION = '2023-01-01-preview';
/** The list of machines has hundreds of pages of up to 1,000 rows. The adapter stores little of each. */
export const BOUNDS = { pages: 10_000, values: 50_000_000 };

const PricePage = z.object({
  Items: z.array(z.unknown()),
  NextPageLink: z.string().nullable(),
  Count: z.int(),
});

export const usd = z.literal('USD', { error: 'must be USD, as requested' });

/** Fields that tell what a row is a price of. */
export const NAMES = {
  productName: z.string(),
  skuName: z.string(),
  meterName: z.string(),
  type: z.string(),
};
export const DATES = {
  effectiveStartDate: z.string(),
  effectiveEndDate: z.string().nullish(),
  isPrimaryMeterRegion: z.boolean().optional(),
};
type Dates = z.infer<z.ZodObject<typeof DATES>>;

/** Reads a list. Yields what `use` returns of its rows, which count from 1, and the total. Returns the count of rows. */
export async function* eachRow(
  http: SourceHttp,
  of: string,
  filter: string,
  use: (row: unknown, number: number) => CatalogueItem | undefined,
): AsyncGenerator<CatalogueItem, number> {
  const query = { 'api-version': VERSION, $filter: filter };
  let [advertised, fetched] = [0, 0];
  const pages = pagesByLink(http, PRICES, PricePage, query, (page) => page.NextPageLink, BOUNDS);
  for await (const { data } of pages) {
    advertised += data.Count;
    for (const row of data.Items) {
      fetched += 1;
      const item = use(row, fetched);
      if (item !== undefined) yield item;
    }
  }
  yield { kind: 'total', of, advertised, fetched };
  return fetched;
}

/** A price whose date cannot be read counts as in force. */
export function inForce({ effectiveStartDate, effectiveEndDate }: Dates, now: Date): boolean {
  const [from, to] = [Date.parse(effectiveStartDate), Date.parse(effectiveEndDate ?? '')];
  return !(from > now.getTime()) && !(to <= now.getTime());
}

export interface PriceRow {
  readonly since: number;
  readonly isPrimary: boolean;
  readonly price: Row<string>;
}

export function whenOf({ effectiveStartDate, isPrimaryMeterRegion = true }: Dates) {
  return { since: Date.parse(effectiveStartDate) || 0, isPrimary: isPrimaryMeterRegion };
}

/** Returns the latest price of the primary meter; without a primary meter, the latest of any. */
export function priceInForce(rows: readonly PriceRow[]): string {
  const read = rows.map(({ price, ...row }) => ({ ...row, amount: valueIn(price) }));
  const primary = read.filter(({ isPrimary }) => isPrimary);
  return latestPrice(primary.length > 0 ? primary : read);
}

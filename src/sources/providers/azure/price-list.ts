/** Lists of Azure's price list, and which of their rows are in force. */
import { z } from 'zod';
import { isPositive } from '../../../domain/prices/price.ts';
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
  meterId: z.string().optional(),
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
  /** The names of the row's price. */
  readonly meter: string;
  readonly price: Row<string>;
}

type Meter = Dates & Readonly<Record<'productName' | 'skuName' | 'meterName', string>>;

export function whenOf({ effectiveStartDate, isPrimaryMeterRegion = true, ...meter }: Meter) {
  const { meterId = '', productName, skuName, meterName } = meter;
  return {
    since: Date.parse(effectiveStartDate) || 0,
    isPrimary: isPrimaryMeterRegion,
    meter: JSON.stringify([meterId, productName, skuName, meterName]),
  };
}

/**
 * Returns the latest price of the primary meter; without a primary meter, the latest of any. A meter at zero next to a paid one is
 * a free allowance of new accounts.
 */
export function priceInForce(rows: readonly PriceRow[]): string {
  const read = rows.map(({ price, ...row }) => ({ ...row, amount: valueIn(price) }));
  const primary = read.filter(({ isPrimary }) => isPrimary);
  const meters = Map.groupBy(primary.length > 0 ? primary : read, ({ meter }) => meter);
  const current = [...meters.values()].map((prices) => ({
    since: Math.max(...prices.map(({ since }) => since)),
    amount: latestPrice(prices),
  }));
  const paid = current.filter(({ amount }) => isPositive(amount));
  return latestPrice(paid.length > 0 ? paid : current);
}

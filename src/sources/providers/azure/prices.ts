/** Azure's public price list. Source: https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices. */

import { z } from 'zod';
import { nothingListed, pagesByLink } from '../../http/lists.ts';
import { amount, label } from '../../schema/fields.ts';
import { rejectedRow } from '../../schema/items.ts';
import { labelIn, latestPrice, type Row, readRow, rowOf, valueIn } from '../../schema/rows.ts';
import type { CatalogueItem, SourceHttp } from '../../source.ts';

export const PRICES = '/api/retail/prices';
/** `Consumption` excludes reservations and the prices of DevTest subscriptions. */
const FILTER = "serviceName eq 'Virtual Machines' and priceType eq 'Consumption'";
/** The list has thousands of pages of 100 rows. The adapter stores little of each. */
export const BOUNDS = { pages: 10_000, values: 50_000_000 };

const PricePage = z.object({
  Items: z.array(z.unknown()),
  NextPageLink: z.string().nullable(),
  Count: z.int(),
});

/** A size has many rows; these fields identify the ordinary one. */
const Kind = z.object({
  armRegionName: label,
  /** Empty if the row is not a size, e.g. for an hour of a dedicated host. */
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
  currencyCode: z.literal('USD', { error: 'must be USD, as requested' }),
  unitOfMeasure: z.literal('1 Hour', { error: 'must be 1 Hour' }),
  retailPrice: amount,
});

export type AzurePrice = ReturnType<typeof chosen>;

interface PriceRow {
  readonly since: number;
  readonly isPrimary: boolean;
  readonly price: Row<string>;
}

interface SizeRows {
  readonly name: string;
  readonly regionCode: string;
  readonly linux: PriceRow[];
  readonly windows: PriceRow[];
}

/** Skips a size that a region sells only as Spot or Low Priority. */
export async function* readPrices(
  http: SourceHttp,
  now: Date,
): AsyncGenerator<CatalogueItem, { regions: Map<string, string>; priced: AzurePrice[] }> {
  const regions = new Map<string, string>();
  const sizes = new Map<string, SizeRows>();
  const query = { $filter: FILTER };
  const listed = pagesByLink(http, PRICES, PricePage, query, (page) => page.NextPageLink, BOUNDS);
  let [advertised, fetched] = [0, 0];
  for await (const { data } of listed) {
    const { Items, Count } = data;
    for (const [index, row] of Items.entries()) {
      const { value: kind, reason } = readRow(Kind, row);
      const [name, regionCode] = [labelIn(row, 'armSkuName'), labelIn(row, 'armRegionName')];
      const key = `${name ?? `price ${fetched + index + 1}`}@${regionCode ?? 'an unknown region'}`;
      if (kind === undefined) yield rejectedRow(key, reason, { name, regionCode });
      else if (isOnDemand(kind, now)) {
        const read = readRow(Price, row);
        if (read.value !== undefined) regions.set(kind.armRegionName, read.value.location);
        addPrice(sizes, kind, read.value === undefined ? read : { value: read.value.retailPrice });
      }
    }
    advertised += Count;
    fetched += Items.length;
  }
  if (sizes.size === 0) throw nothingListed(`${PRICES}: Items`);
  yield { kind: 'total', of: 'prices', advertised, fetched };
  return { regions, priced: [...sizes.values()].map(chosen) };
}

function isOnDemand(kind: Kind, now: Date): boolean {
  if (kind.armSkuName === '' || kind.type !== 'Consumption' || (kind.tierMinimumUnits ?? 0) > 0) return false;
  if (/\b(Spot|Low Priority|Expired)\b/i.test(`${kind.skuName} ${kind.meterName}`)) return false;
  if (/\b(Dedicated ?Host|Cloud ?Services)\b/i.test(kind.productName)) return false;
  // A price whose date cannot be read counts as in force.
  const [from, to] = [Date.parse(kind.effectiveStartDate), Date.parse(kind.effectiveEndDate ?? '')];
  return !(from > now.getTime()) && !(to <= now.getTime());
}

function addPrice(sizes: Map<string, SizeRows>, kind: Kind, price: Row<string>): void {
  const { armSkuName: name, armRegionName: regionCode } = kind;
  const key = JSON.stringify([name, regionCode]);
  const size = sizes.get(key) ?? { name, regionCode, linux: [], windows: [] };
  sizes.set(key, size);
  const rows = /\bWindows\b/i.test(kind.productName) ? size.windows : size.linux;
  const since = Date.parse(kind.effectiveStartDate) || 0;
  rows.push({ since, isPrimary: kind.isPrimaryMeterRegion ?? true, price });
}

function chosen({ name, regionCode, linux, windows }: SizeRows) {
  const licensed = linux.length === 0;
  return { name, regionCode, price: rowOf(() => priceInForce(licensed ? windows : linux)), licensed };
}

/** Returns the latest price of the primary meter; without a primary meter, the latest of any. */
function priceInForce(rows: readonly PriceRow[]): string {
  const read = rows.map(({ price, ...row }) => ({ ...row, amount: valueIn(price) }));
  const primary = read.filter(({ isPrimary }) => isPrimary);
  return latestPrice(primary.length > 0 ? primary : read);
}

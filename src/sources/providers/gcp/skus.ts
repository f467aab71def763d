/** The list of Google's SKUs. Source: https://cloud.google.com/billing/docs/reference/rest/v1/services.skus/list. */
import { z } from 'zod';
import { nothingListed, pagesByToken } from '../../http/lists.ts';
import { label } from '../../schema/fields.ts';
import { rejectedRow } from '../../schema/items.ts';
import type { LeftOut } from '../../schema/left-out.ts';
import { labelIn, readRow } from '../../schema/rows.ts';
import type { RejectedRow, SourceHttp } from '../../source.ts';
import { Rates } from './rates.ts';
import { RegionSkus } from './region-prices.ts';

/** The SKUs of Compute Engine. */
export const SKUS = '/v1/services/6F81-5844-456A/skus';

/** The token is empty on the last page. */
const SkuPage = z.object({ skus: z.array(z.unknown()), nextPageToken: z.string() });
const Sku = z.object({
  description: z.string(),
  category: z.object({ usageType: z.string() }),
  serviceRegions: z.array(label),
});

export async function* readSkus(
  http: SourceHttp,
  leftOut: LeftOut,
): AsyncGenerator<RejectedRow, { rates: Rates; regionSkus: RegionSkus }> {
  const rates = new Rates(leftOut);
  const regionSkus = new RegionSkus();
  let listed = 0;
  const query = { currencyCode: 'USD', pageSize: 5000 };
  const pages = pagesByToken(http, SKUS, SkuPage, query, (page) => page.nextPageToken, 'pageToken');
  for await (const { data } of pages) {
    for (const row of data.skus) {
      listed += 1;
      const id = labelIn(row, 'skuId') ?? `SKU ${listed}`;
      const { value: sku, reason } = readRow(Sku, row);
      if (sku === undefined) {
        yield rejectedRow(id, reason);
        continue;
      }
      const found = { ...sku, usage: sku.category.usageType, id, row };
      rates.add(found);
      regionSkus.add(found);
    }
  }
  if (listed === 0) throw nothingListed(`${SKUS}: skus`);
  return { rates, regionSkus };
}

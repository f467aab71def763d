import type { CatalogueItem } from '../sources/source.ts';
import { type CatalogueDiff, diffStaged, type PreviewRow, previewRows } from '../store/catalogue-diff.ts';
import type { Store } from '../store/connect.ts';
import type { GuardLimits } from './guard.ts';
import { createStaging, highestPrice, type Pricing, stageCatalogue } from './stage.ts';

export interface Preview {
  readonly diff: CatalogueDiff;
  readonly rows: readonly PreviewRow[];
}

/** What a batch would do to the catalogue as it is now. Nothing is written: the session ends without a commit. */
export async function previewCatalogue(options: {
  readonly store: Store;
  readonly sourceId: string;
  readonly providerId: number;
  readonly items: AsyncIterable<CatalogueItem>;
  readonly pricing: Pricing;
  readonly limits: GuardLimits;
  /** Rows of each kind of change. */
  readonly limit: number;
}): Promise<Preview> {
  await using session = options.store.session();
  const { sql } = session;
  await createStaging(sql);
  const fetched = await stageCatalogue(sql, options.items, options.pricing);
  const maxPrice = highestPrice(options.limits.maxHourlyPrice, options.pricing);
  await sql`begin`;
  const { diff } = await diffStaged(
    sql,
    { id: options.sourceId, providerId: options.providerId },
    {
      regions: [...fetched.regions.keys()],
      rows: fetched.offers,
      rejected: fetched.rejected,
      maxPrice,
      maxRatio: options.limits.priceRatio,
    },
  );
  return { diff, rows: await previewRows(sql, options.limit) };
}

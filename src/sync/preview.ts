/** What a held batch would change now. Nothing is written: the session ends without a commit. */

import type { Store } from '../db/connect.ts';
import {
  type CatalogueDiff,
  type CataloguePreview,
  cataloguePreview,
  diffStaged,
} from '../db/queries/catalogue-diff.ts';
import {
  type ClusterDiff,
  computeClusterDiff,
  createClusterStaging,
  rejectStagedClusters,
} from '../db/queries/cluster-diff.ts';
import { type ClusterPreview, clusterPreview } from '../db/queries/cluster-preview.ts';
import { boundedRejected, groupReasons, type ReasonGroup } from '../db/queries/rejected.ts';
import type { ReportedCluster } from '../domain/cluster.ts';
import type { CatalogueItem, ClusterItem } from '../sources/source.ts';
import type { GuardLimits } from './guard.ts';
import { createStaging, highestPrice, type Pricing, stageCatalogue } from './stage.ts';
import { stageClusters } from './sync-clusters.ts';

interface PreviewOf<Kind extends string, Diff> {
  readonly kind: Kind;
  readonly diff: Diff;
  /** Why rows of the batch cannot be used. */
  readonly reasons: readonly ReasonGroup[];
}

export type Preview =
  | (PreviewOf<'catalogue', CatalogueDiff> & CataloguePreview)
  | (PreviewOf<'clusters', ClusterDiff> & ClusterPreview);

export async function previewCatalogue(options: {
  readonly store: Store;
  readonly sourceId: string;
  readonly providerId: number;
  readonly items: AsyncIterable<CatalogueItem>;
  readonly pricing: Pricing;
  readonly limits: GuardLimits;
  /** Rows of each kind of change; undefined for all. */
  readonly limit: number | undefined;
}): Promise<Preview> {
  await using session = options.store.session();
  const { sql } = session;
  await createStaging(sql);
  const fetched = await stageCatalogue(sql, options.items, options.pricing);
  const maxPrice = highestPrice(options.limits.maxHourlyPrice, options.pricing);
  await sql`begin`;
  const { diff, rejected } = await diffStaged(
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
  const preview = await cataloguePreview(sql, options.limit);
  return { kind: 'catalogue', diff, reasons: groupReasons(rejected), ...preview };
}

export async function previewClusters(options: {
  readonly store: Store;
  readonly sourceId: string;
  readonly items: AsyncIterable<ClusterItem<ReportedCluster>>;
  readonly pricing: Pricing;
  /** Rows of each kind of change; undefined for all. */
  readonly limit: number | undefined;
}): Promise<Preview> {
  await using session = options.store.session();
  const { sql } = session;
  await createClusterStaging(sql);
  const fetched = await stageClusters(sql, options);
  await sql`begin`;
  const staged = await rejectStagedClusters(sql, fetched.namesMachines);
  const rejected = boundedRejected([...fetched.rejected, ...staged.rejected]);
  const diff = await computeClusterDiff(sql, options.sourceId, rejected);
  const preview = await clusterPreview(sql, options.limit);
  return { kind: 'clusters', diff, reasons: groupReasons(rejected), ...preview };
}

/** Decisions about held batches: previewed, approved, rejected, and taken back. */
import type { SourceConfig } from '../../config/config.ts';
import type { Configured } from '../../config/settings.ts';
import type { Store } from '../../db/connection/connect.ts';
import {
  type BatchDecision,
  type BatchRecord,
  decide,
  heldItems,
  undoRejection,
} from '../../db/held-batches.ts';
import type { RunCounts } from '../../db/sync/run.ts';
import type { ReportedCluster } from '../../domain/cluster.ts';
import type { Decider } from '../../domain/operator.ts';
import type { CatalogueItem, ClusterItem } from '../../sources/source.ts';
import { type PreviewedCatalogue, previewCatalogue, syncCatalogue } from '../../sync/catalogue/catalogue.ts';
import { type PreviewedClusters, previewClusters, syncClusters } from '../../sync/clusters/clusters.ts';
import { currentPricing } from '../../sync/currency.ts';
import type { SyncResult } from '../../sync/result.ts';
import { type ProvidedSource, providerOf, recorded } from '../run-source.ts';
import { publishNow, type Writing } from './publish.ts';

/** The rows that an approval or its reversal stored. */
export interface StoredBatch {
  readonly counts: RunCounts;
  /** False while the cache is away. */
  readonly published: boolean;
}

/** Stores a batch and publishes it. Undefined if it does not wait any more, or another run has begun. */
export async function approveBatch(
  config: Configured,
  writing: Writing,
  source: SourceConfig,
  batchId: number,
  decider: Decider,
): Promise<StoredBatch | undefined> {
  return published(writing, await approveHeld(config, writing.store, source, batchId, decider));
}

/** Drops a batch. False if it does not wait any more. */
export function rejectBatch({ db }: Pick<Store, 'db'>, batchId: number, decider: Decider): Promise<boolean> {
  return decide(db, batchId, 'rejected', decider);
}

/**
 * Takes a decision back. Undefined if that is not possible any more. `counts` is null for a rejection, which has stored nothing.
 * @param sourceOf returns the configuration of the batch's source
 */
export async function undoDecision(
  config: Configured,
  writing: Writing,
  batch: BatchRecord,
  sourceOf: () => SourceConfig,
  decider: Decider,
): Promise<StoredBatch | { readonly counts: null } | undefined> {
  const { store } = writing;
  if (batch.status === 'rejected')
    return (await undoRejection(store.db, batch.id, decider)) ? { counts: null } : undefined;
  return published(writing, await undoApproval(config, store, sourceOf(), batch.id, decider));
}

async function published(
  writing: Writing,
  { outcome, counts }: SyncResult,
): Promise<StoredBatch | undefined> {
  if (outcome === 'superseded' || outcome === 'cancelled') return undefined;
  return { counts, published: await publishNow(writing) };
}

/**
 * Stores a held batch that an operator approves. It is compared once more with what is stored now, and no guard
 * can hold it again. `superseded` when another run has begun, or when the batch no longer waits for a decision.
 */
export async function approveHeld(
  config: Configured,
  store: Store,
  source: SourceConfig,
  batchId: number,
  decider: Decider,
): Promise<SyncResult> {
  return storeDecided(config, store, source, { kind: 'approve', batchId, decider });
}

/**
 * Stores again what was stored before a batch was approved. `superseded` when that is not possible any more: a run has
 * stored or held something since, or another operator has undone the approval.
 */
export async function undoApproval(
  config: Configured,
  store: Store,
  source: SourceConfig,
  batchId: number,
  decider: Decider,
): Promise<SyncResult> {
  return storeDecided(config, store, source, { kind: 'undo', batchId, decider });
}

async function storeDecided(
  config: Configured,
  store: Store,
  source: SourceConfig,
  decision: BatchDecision,
): Promise<SyncResult> {
  const origin = { cause: 'decision', by: decision.decider.by } as const;
  return recorded(config, store, source, { evenIfDisabled: true, origin }, async (run) => {
    const now = () => new Date();
    const pricing = await currentPricing(store, config.settings, now());
    const { limits } = source;
    const common = { store, run, pricing, limits, approved: true, decision, now };
    // The run that held them, or the approval, wrote these items in the form in which they are stored: no defaults apply.
    const items = storableItems(store, decision.batchId);
    return source.kind === 'catalogue'
      ? syncCatalogue({
          ...common,
          provider: await providerOf(store, source),
          items: items as AsyncIterable<CatalogueItem>,
        })
      : syncClusters({ ...common, items: items as AsyncIterable<ClusterItem<ReportedCluster>> });
  });
}

/** The items without quarantine and freshness of before the approval: these are restored in another way. */
async function* storableItems(store: Store, batchId: number): AsyncGenerator<unknown> {
  for await (const item of heldItems(store.sql, batchId)) {
    if (!['quarantined', 'freshness'].includes((item as { kind: string }).kind)) yield item;
  }
}

export type Preview = PreviewedCatalogue | PreviewedClusters;

/** The part of a source that a preview needs. It does not need the adapter. */
type PreviewedSource = Pick<SourceConfig, 'id' | 'limits'> &
  (({ readonly kind: 'catalogue' } & ProvidedSource) | { readonly kind: 'clusters' | 'rates' });

/** What a held batch would change now. @param limit rows of each kind of change; undefined for all */
export async function previewHeld(
  { settings }: Configured,
  store: Store,
  source: PreviewedSource,
  batchId: number,
  limit: number | undefined,
): Promise<Preview> {
  const items = heldItems(store.sql, batchId);
  const pricing = await currentPricing(store, settings, new Date());
  const options = { store, sourceId: source.id, limit };
  const { limits } = source;
  if (source.kind === 'catalogue') {
    const provider = await providerOf(store, source);
    return previewCatalogue(options, {
      provider,
      items: items as AsyncIterable<CatalogueItem>,
      pricing,
      limits,
    });
  }
  return previewClusters(options, {
    items: items as AsyncIterable<ClusterItem<ReportedCluster>>,
    pricing,
    limits,
  });
}

/** Previews, approves and rejects held batches, and undoes decisions. */
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
import type { Decider } from '../../domain/operator.ts';
import { type PreviewedCatalogue, previewCatalogue, syncCatalogue } from '../../sync/catalogue/catalogue.ts';
import { type PreviewedClusters, previewClusters, syncClusters } from '../../sync/clusters/clusters.ts';
import { currentPricing } from '../../sync/currency.ts';
import { type PreviewedLifecycles, previewLifecycles, syncLifecycles } from '../../sync/lifecycles.ts';
import type { SyncResult } from '../../sync/pipeline.ts';
import { LiveRuns } from '../../sync/runs/live.ts';
import type { RunCounts } from '../../sync/runs/run.ts';
import { type ProvidedSource, providerOf, recorded } from '../run-source.ts';
import { publishNow, type Writing } from './publish.ts';

/** The rows that an approval or its reversal stored. */
export interface StoredBatch {
  readonly counts: RunCounts;
  /** False if the cache cannot be reached. */
  readonly published: boolean;
}

/** Stores a batch and publishes it. Undefined if it has a decision, or another run has begun. */
export async function approveBatch(
  config: Configured,
  writing: Writing,
  source: SourceConfig,
  batchId: number,
  decider: Decider,
): Promise<StoredBatch | undefined> {
  const decision = { kind: 'approve', batchId, decider } as const;
  return published(writing, await storeDecided(config, writing.store, source, decision));
}

export function rejectBatch({ db }: Pick<Store, 'db'>, batchId: number, decider: Decider): Promise<boolean> {
  return decide(db, batchId, 'rejected', decider);
}

/** Undoes a decision; undefined if a later run prevents it. `counts` is null for a rejection, which stored nothing. */
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
  const decision = { kind: 'undo', batchId: batch.id, decider } as const;
  return published(writing, await storeDecided(config, store, sourceOf(), decision));
}

async function published(
  writing: Writing,
  { outcome, counts }: SyncResult,
): Promise<StoredBatch | undefined> {
  if (outcome === 'superseded' || outcome === 'cancelled') return undefined;
  return { counts, published: await publishNow(writing) };
}

/**
 * Stores an approved batch, or the rows of before an approval. It is compared with the stored rows again, and no guard can hold
 * it. The outcome is `superseded` if another run has begun, or another operator has decided.
 */
export async function storeDecided(
  config: Configured,
  store: Store,
  source: SourceConfig,
  decision: BatchDecision,
): Promise<SyncResult> {
  const origin = { cause: 'decision', by: decision.decider.by } as const;
  await using liveRuns = new LiveRuns(store.connection);
  return await recorded(config, store, liveRuns, source, { evenIfDisabled: true, origin }, async (run) => {
    const now = () => new Date();
    const pricing = await currentPricing(store, config.settings, now());
    const { limits } = source;
    // Held items are complete: the run that wrote them has applied the defaults.
    const batch = {
      store,
      run,
      pricing,
      limits,
      approved: true,
      decision,
      now,
      items: storableItems(store, decision),
    };
    if (source.kind === 'lifecycles') return syncLifecycles(batch);
    return source.kind === 'catalogue'
      ? syncCatalogue({ ...batch, provider: await providerOf(store, source) })
      : syncClusters(batch);
  });
}

/** Reads the items of the source's kind, except quarantine and freshness, which another statement restores. */
async function* storableItems(store: Store, { batchId }: BatchDecision): AsyncGenerator<never> {
  for await (const item of heldItems(store.db, batchId)) {
    if (!['quarantined', 'freshness'].includes((item as { kind: string }).kind)) yield item as never;
  }
}

export type Preview = PreviewedCatalogue | PreviewedClusters | PreviewedLifecycles;

type PreviewedSource = Pick<SourceConfig, 'id' | 'limits'> &
  (
    | ({ readonly kind: 'catalogue' } & ProvidedSource)
    | { readonly kind: 'clusters' | 'rates' | 'lifecycles' }
  );

/** Returns what a held batch would change now. @param limit rows of each kind of change; undefined for all */
export async function previewHeld(
  { settings }: Configured,
  store: Store,
  source: PreviewedSource,
  batchId: number,
  limit: number | undefined,
): Promise<Preview> {
  const now = () => new Date();
  const pricing = await currentPricing(store, settings, now());
  const options = { store, sourceId: source.id, limit };
  const items = heldItems(store.db, batchId) as AsyncIterable<never>;
  const batch = { items, pricing, limits: source.limits };
  if (source.kind === 'lifecycles') return previewLifecycles(options, batch);
  return source.kind === 'catalogue'
    ? previewCatalogue(options, { ...batch, now, provider: await providerOf(store, source) })
    : previewClusters(options, batch);
}

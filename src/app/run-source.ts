/** One run of one source, from its configuration to its record. */
import { createHash } from 'node:crypto';
import type { Config, SourceConfig } from '../config/config.ts';
import { VERSION } from '../config/package.ts';
import type { Store } from '../db/connect.ts';
import type { Decider } from '../db/queries/accepted-prices.ts';
import { type BatchDecision, heldItems } from '../db/queries/held.ts';
import { type KnownProvider, providerNamed } from '../db/queries/providers.ts';
import { finishRun, type Run, registerSource } from '../db/queries/runs.ts';
import { storedVersions } from '../db/queries/validators.ts';
import { StatementTimeout, statementTimeout } from '../db/statement-timeout.ts';
import type { ReportedCluster } from '../domain/cluster.ts';
import { completed } from '../sources/complete.ts';
import { openSourceHttp, type SourceHttpOptions } from '../sources/http/http.ts';
import type { KnownVersions } from '../sources/http/validators.ts';
import {
  type CatalogueItem,
  type ClusterItem,
  SourceError,
  type SourceHttp,
  type WatchContext,
} from '../sources/source.ts';
import { currentPricing } from '../sync/currency.ts';
import { type Preview, previewCatalogue, previewClusters } from '../sync/preview.ts';
import type { SyncResult } from '../sync/result.ts';
import type { Pricing, Progress } from '../sync/stage.ts';
import { syncCatalogue } from '../sync/sync-catalogue.ts';
import { syncClusters } from '../sync/sync-clusters.ts';
import { syncRates } from '../sync/sync-rates.ts';

/** Waiting for one answer of an upstream, and its largest size. */
const SOURCE_DEADLINE_MS = 60_000;
const SOURCE_MAX_BYTES = 64 * 1024 * 1024;

export interface RunOptions {
  readonly slot?: string | undefined;
  readonly progress?: Progress;
  /** Ends the run: it is recorded as failed and nothing of it is stored. */
  readonly signal?: AbortSignal | undefined;
  /** Of clusters: the state that a watch has found, in place of a reading. What is missing from it has been deleted. */
  readonly state?: readonly ClusterItem[];
}

type CatalogueConfig = Extract<SourceConfig, { kind: 'catalogue' }>;
export type ClustersConfig = Extract<SourceConfig, { kind: 'clusters' }>;

/**
 * One run of one source, recorded from its start to its end. Publishing is the caller's next step: what is not
 * published stays marked in the database.
 * @throws SourceError when the source cannot be read; StatementTimeout when PostgreSQL gave up a statement; the run is
 * recorded as failed then.
 */
export async function runSource(
  config: Config,
  store: Store,
  source: SourceConfig,
  { slot, progress, signal, state }: RunOptions,
): Promise<SyncResult> {
  return recorded(config, store, source, { slot, signal }, async (run) => {
    const now = () => new Date();
    const pricing = await currentPricing(store, config.settings, now());
    const reading = readingOf(source, pricing);
    const http = openHttp(source, signal, await storedVersions(store.sql, source.id, reading));
    const common = {
      store,
      run,
      pricing,
      reading,
      limits: source.limits,
      now,
      ...(progress === undefined ? {} : { progress }),
    };
    switch (source.kind) {
      case 'catalogue':
        return syncCatalogue({
          ...common,
          provider: await providerOf(store, source),
          items: source.adapter.catalogue({ http, now, options: source.options }),
        });
      case 'clusters':
        return syncClusters({
          ...common,
          ...(state === undefined ? {} : { missingIsDeleted: true }),
          items: completed(
            state ??
              source.adapter.clusters({
                http,
                now,
                ...addressOf(source),
                ...(signal === undefined ? {} : { signal }),
              }),
            source.rules,
          ),
        });
      case 'rates':
        return syncRates({ store, run, reading, rates: source.adapter.rates({ http }), now });
    }
  });
}

/** What an adapter watches a source with, until the signal. */
export function watchContext(source: ClustersConfig, signal: AbortSignal): WatchContext {
  const http = openHttp(source, signal, new Map());
  return { http, now: () => new Date(), ...addressOf(source), signal };
}

function addressOf({ url, credentials, options }: ClustersConfig): Pick<WatchContext, 'address' | 'options'> {
  return { address: { url, credentials }, ...(options === undefined ? {} : { options }) };
}

function openHttp(
  source: SourceConfig,
  signal: AbortSignal | undefined,
  versions: KnownVersions,
): SourceHttp {
  return openSourceHttp({
    versions,
    baseUrl: source.url,
    credentials: source.adapter.credentials,
    token: source.credentials,
    ...apiKeyOf(source),
    deadlineMs: SOURCE_DEADLINE_MS,
    maxBytes: SOURCE_MAX_BYTES,
    ...(signal === undefined ? {} : { signal }),
  });
}

function apiKeyOf(source: SourceConfig): Pick<SourceHttpOptions, 'apiKey'> {
  const { adapter, apiKey: token } = source;
  if (token === undefined || !('apiKey' in adapter) || adapter.apiKey === undefined) return {};
  return { apiKey: { credentials: adapter.apiKey.credentials, token } };
}

/**
 * Stores a held batch as an operator decided: it is diffed anew against what is stored now, and the guards have had
 * their say. `superseded` when a run began meanwhile, or the batch does not wait for a decision any more.
 */
export async function approveHeld(
  config: Config,
  store: Store,
  source: SourceConfig,
  batchId: number,
  decider: Decider,
): Promise<SyncResult> {
  return storeDecided(config, store, source, { kind: 'approve', batchId, decider });
}

/**
 * Stores what there was before a batch was approved. `superseded` when that cannot be had any more: a run has stored or
 * held something since, or somebody else has taken the approval back.
 */
export async function undoApproval(
  config: Config,
  store: Store,
  source: SourceConfig,
  batchId: number,
  decider: Decider,
): Promise<SyncResult> {
  return storeDecided(config, store, source, { kind: 'undo', batchId, decider });
}

async function storeDecided(
  config: Config,
  store: Store,
  source: SourceConfig,
  decision: BatchDecision,
): Promise<SyncResult> {
  return recorded(config, store, source, {}, async (run) => {
    const now = () => new Date();
    const pricing = await currentPricing(store, config.settings, now());
    const { limits } = source;
    const common = { store, run, pricing, limits, approved: true, decision, now };
    // They were written by the run that held them, or by the approval: whole as they are to be stored.
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

/** Without the quarantine and the freshness before an approval, which are stored as they were. */
async function* storableItems(store: Store, batchId: number): AsyncGenerator<unknown> {
  for await (const item of heldItems(store.sql, batchId)) {
    if (!['quarantined', 'freshness'].includes((item as { kind: string }).kind)) yield item;
  }
}

/** What a held batch would change now. @param limit rows of each kind of change; undefined for all */
export async function previewHeld(
  config: Config,
  store: Store,
  source: SourceConfig,
  batchId: number,
  limit: number | undefined,
): Promise<Preview> {
  const items = heldItems(store.sql, batchId);
  const pricing = await currentPricing(store, config.settings, new Date());
  const common = { store, sourceId: source.id, pricing, limit };
  return source.kind === 'catalogue'
    ? previewCatalogue({
        ...common,
        providerId: (await providerOf(store, source)).id,
        items: items as AsyncIterable<CatalogueItem>,
        limits: source.limits,
      })
    : previewClusters({ ...common, items: items as AsyncIterable<ClusterItem<ReportedCluster>> });
}

async function recorded(
  config: Config,
  store: Store,
  source: SourceConfig,
  { slot, signal }: Pick<RunOptions, 'slot' | 'signal'>,
  work: (run: Run) => Promise<SyncResult>,
): Promise<SyncResult> {
  await registerSource(store.sql, { id: source.id, kind: source.kind, adapter: source.adapter.id });
  await using live = await store.liveRuns.begin(source.id, slot);
  const { run } = live;
  try {
    return await work(run);
  } catch (failure) {
    const error = statementTimeout(failure, config.settings.WRITE_STATEMENT_TIMEOUT) ?? failure;
    await finishRun(store.sql, run, 'failed', undefined, new Date().toISOString(), toldOf(error, signal));
    throw error;
  }
}

/** What an operator is told of a run that failed. */
function toldOf(error: unknown, signal: AbortSignal | undefined): string {
  if (error instanceof SourceError || error instanceof StatementTimeout) return error.message;
  if (!signal?.aborted) return 'an internal error, see the log';
  const { reason } = signal;
  return `cancelled: ${reason instanceof Error ? reason.message : String(reason)}`;
}

/**
 * A hash of all that turns a source's documents into stored rows, apart from the documents: under another one they have
 * to be read again, though they may not have changed. Rates only as far as the source's prices can need them.
 */
function readingOf(source: SourceConfig, { currency, rates }: Pricing): string {
  const own = source.kind === 'catalogue' ? source.adapter.currency : undefined;
  const needed = Object.entries(source.kind === 'rates' ? {} : rates)
    .filter(([code]) => code !== currency && (own === undefined || code === own))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  const options = source.kind === 'rates' ? undefined : source.options;
  const rules = source.kind === 'clusters' ? source.rules : undefined;
  const maxPrice = source.kind === 'rates' ? undefined : source.limits.maxHourlyPrice;
  const all = [VERSION, source.adapter.id, options, rules, maxPrice, currency, needed];
  return createHash('sha256').update(JSON.stringify(all)).digest('hex');
}

/** What readers see a catalogue's machines under; made when the source's options name a provider that is new. */
async function providerOf(store: Store, { adapter, options }: CatalogueConfig): Promise<KnownProvider> {
  return adapter.provider ?? (await providerNamed(store.sql, String(options?.provider)));
}

/** Runs a source, and records the run. */
import { createHash } from 'node:crypto';
import type { SourceConfig } from '../config/config.ts';
import { VERSION } from '../config/package.ts';
import type { Configured } from '../config/settings.ts';
import type { Store } from '../db/connection/connect.ts';
import { StatementTimeout, statementTimeout } from '../db/connection/errors.ts';
import { type KnownProvider, providerNamed } from '../db/providers.ts';
import { messageOf } from '../domain/errors.ts';
import { traced } from '../domain/tracer.ts';
import { applyDefaults } from '../sources/cluster-defaults.ts';
import { openSourceHttp, type SourceHttpOptions } from '../sources/http/http.ts';
import { RequestLog } from '../sources/http/request-log.ts';
import {
  type ClusterItem,
  type Retries,
  SourceError,
  type SourceHttp,
  type WatchContext,
} from '../sources/source.ts';
import { syncCatalogue } from '../sync/catalogue/catalogue.ts';
import { syncClusters } from '../sync/clusters/clusters.ts';
import { currentPricing, type Pricing } from '../sync/currency.ts';
import { syncLifecycles } from '../sync/lifecycles.ts';
import { nothingStored, type Progress, type SyncResult } from '../sync/pipeline.ts';
import { syncRates } from '../sync/rates.ts';
import { cancelledRuns, type LiveRuns } from '../sync/runs/live.ts';
import { type BeginOptions, finishRun, type Run, type RunOrigin, registerSource } from '../sync/runs/run.ts';
import { storedValidators } from '../sync/validators.ts';
import { addLogFields } from './log-context.ts';

/** Deadline (ms) and largest size (bytes) of one response of an upstream. */
const SOURCE_DEADLINE_MS = 60_000;
const SOURCE_MAX_BYTES = 64 * 1024 * 1024;

export interface RunOptions {
  readonly slot?: string | undefined;
  readonly origin?: RunOrigin | undefined;
  readonly progress?: Progress;
  /** True for a job of a worker's queue: the run records whether it is the only one of the process. */
  readonly inWorker?: boolean;
  /** Aborts the run: it is recorded as failed, and nothing of it is stored. */
  readonly signal?: AbortSignal | undefined;
  readonly retries?: Retries | undefined;
  /** The clusters that a watch has found. The source is not read then, and every other cluster is deleted. */
  readonly state?: readonly ClusterItem[];
}

export type ClustersConfig = Extract<SourceConfig, { kind: 'clusters' }>;

/**
 * Runs a source once, and records the run. The caller publishes the result: unpublished documents stay marked in the database.
 * If an operator cancels the run, its outcome is `cancelled`.
 * @throws SourceDisabled if the source is disabled; no run is recorded
 * @throws SourceError if the source cannot be read; StatementTimeout. The run is recorded as failed.
 */
export async function runSource(
  config: Configured,
  store: Store,
  liveRuns: LiveRuns,
  source: SourceConfig,
  { slot, origin, progress, signal: stops, inWorker = false, retries, state }: RunOptions,
): Promise<SyncResult> {
  const log = new RequestLog();
  const options = { slot, origin, signal: stops, inWorker, log };
  return recorded(config, store, liveRuns, source, options, async (run, signal) => {
    const now = () => new Date();
    const pricing = await currentPricing(store, config.settings, now());
    const parseFingerprint = parseFingerprintOf(source, pricing);
    const validators = await storedValidators(store.db, source.id, parseFingerprint);
    const requests = { signal, requests: log, ...(retries && { retries }) };
    const http = openHttp(source, { ...requests, validators });
    const { limits } = source;
    const common = { store, run, pricing, parseFingerprint, limits, now, ...(progress && { progress }) };
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
          items: applyDefaults(
            state ?? source.adapter.clusters({ http, now, ...addressOf(source), ...requests }),
            source.rules,
          ),
        });
      case 'lifecycles':
        return syncLifecycles({ store, run, limits, items: source.adapter.cycles({ http }), now });
      case 'rates':
        return syncRates({ store, run, parseFingerprint, rates: source.adapter.rates({ http }), now });
    }
  });
}

/** Returns the context for an adapter's watch of a source, until the signal aborts. */
export function watchContext(source: ClustersConfig, signal: AbortSignal): WatchContext {
  const http = openHttp(source, { signal });
  return { http, now: () => new Date(), ...addressOf(source), signal };
}

function addressOf({ url, credentials, options }: ClustersConfig): Pick<WatchContext, 'address' | 'options'> {
  return { address: { url, credentials }, ...(options === undefined ? {} : { options }) };
}

function openHttp(
  source: SourceConfig,
  requests: Pick<SourceHttpOptions, 'signal' | 'retries' | 'requests' | 'validators'>,
): SourceHttp {
  return openSourceHttp({
    ...requests,
    baseUrl: source.url,
    credentials: source.adapter.credentials,
    token: source.credentials,
    redirectsTo: source.redirectsTo,
    ...apiKeyOf(source),
    deadlineMs: SOURCE_DEADLINE_MS,
    maxBytes: SOURCE_MAX_BYTES,
  });
}

function apiKeyOf(source: SourceConfig): Pick<SourceHttpOptions, 'apiKey'> {
  const { adapter, apiKey: token } = source;
  if (token === undefined || !('apiKey' in adapter) || adapter.apiKey === undefined) return {};
  return { apiKey: { credentials: adapter.apiKey.credentials, token } };
}

export interface ProvidedSource {
  readonly adapter: { readonly provider?: KnownProvider | undefined };
  readonly options?: { readonly provider?: unknown };
}

type RecordedOptions = Pick<RunOptions, 'slot' | 'signal' | 'inWorker'> &
  BeginOptions & { readonly log?: RequestLog };

/** @param signal aborts if the caller ends the run, or an operator cancels it */
type Work = (run: Run, signal: AbortSignal) => Promise<SyncResult>;

/** Records a run in the database and in the trace. */
export function recorded(
  config: Configured,
  store: Store,
  liveRuns: LiveRuns,
  source: SourceConfig,
  { slot, origin, signal, inWorker = false, evenIfDisabled = false, log }: RecordedOptions,
  work: Work,
): Promise<SyncResult> {
  return traced('run', { 'fleetbook.source': source.id }, async (note) => {
    await registerSource(store.db, { id: source.id, kind: source.kind, adapter: source.adapter.id });
    await using live = await liveRuns.begin(source.id, slot, { evenIfDisabled, origin, inWorker });
    const run: Run = { ...live.run, ...(log && { requests: () => log.summary() }) };
    addLogFields({ run: run.id });
    note({ 'fleetbook.run': run.id });
    const end = (result: SyncResult) => {
      note({ 'fleetbook.outcome': result.outcome });
      return result;
    };
    try {
      return end(await work(run, AbortSignal.any([live.signal, ...(signal ? [signal] : [])])));
    } catch (failure) {
      const error = statementTimeout(failure, config.settings.WRITE_STATEMENT_TIMEOUT) ?? failure;
      try {
        const now = new Date().toISOString();
        await finishRun(store.db, run, 'failed', undefined, now, failureMessage(error, signal));
        if ((await cancelledRuns(store.db, [run.id])).length > 0) return end(nothingStored('cancelled'));
      } catch (another) {
        // The first failure decides about the next attempt. Without a record, the run counts as interrupted.
        addLogFields({ notRecorded: messageOf(another) });
      }
      throw error;
    }
  });
}

function failureMessage(error: unknown, signal: AbortSignal | undefined): string {
  if (error instanceof SourceError || error instanceof StatementTimeout) return error.message;
  if (!signal?.aborted) return 'an internal error, see the log';
  const { reason } = signal;
  return `aborted: ${reason instanceof Error ? reason.message : String(reason)}`;
}

/** Returns a digest of all inputs of the rows except payloads. When it changes, unmodified payloads are read again. */
function parseFingerprintOf(source: SourceConfig, { currency, rates }: Pricing): string {
  const own = source.kind === 'catalogue' ? source.adapter.currency : undefined;
  const isPriced = source.kind === 'catalogue' || source.kind === 'clusters';
  const needed = Object.entries(isPriced ? rates : {})
    .filter(([code]) => code !== currency && (own === undefined || code === own))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  const options = 'options' in source ? source.options : undefined;
  const rules = source.kind === 'clusters' ? source.rules : undefined;
  const maxPrice = isPriced ? source.limits.maxHourlyPrice : undefined;
  const all = [VERSION, source.adapter.id, options, rules, maxPrice, currency, needed];
  return createHash('sha256').update(JSON.stringify(all)).digest('hex');
}

/** Returns the provider of a source's machines. Creates it if the source's options name a new one. */
export async function providerOf(store: Store, { adapter, options }: ProvidedSource): Promise<KnownProvider> {
  return adapter.provider ?? (await providerNamed(store.db, String(options?.provider)));
}

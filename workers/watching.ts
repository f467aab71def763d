/** Puts a worker's watches together: leases, runs, publishing and their records. */
import { setTimeout as sleep } from 'node:timers/promises';
import { inLogContext } from '../src/app/log-context.ts';
import type { ClustersConfig } from '../src/app/run-source.ts';
import { disabledSources } from '../src/db/sync/disabled.ts';
import { Leases } from '../src/db/sync/leases.ts';
import { foldUnchanged, recordFailedWatch, registerSource } from '../src/db/sync/run.ts';
import { SourceDisabled } from '../src/domain/disabled-source.ts';
import { type ClusterItem, SourceError } from '../src/sources/source.ts';
import type { SyncResult } from '../src/sync/result.ts';
import { publish, type SyncDependencies, waitsForOthers } from './processors/sync.ts';
import { WatchHost } from './watch.ts';
import { type WatchedSource, watchSource } from './watched-source.ts';

export type WatchingDependencies = Pick<SyncDependencies, 'config' | 'worker' | 'logger' | 'observe'>;

/** Watches every source whose adapter can, as soon as it is started. */
export function openWatches(dependencies: WatchingDependencies): WatchHost {
  const { config, worker, logger } = dependencies;
  return new WatchHost({
    sources: config.sources.flatMap((source) =>
      source.kind === 'clusters' && source.adapter.watch !== undefined ? [source] : [],
    ),
    leases: new Leases(() => worker.store.session()),
    disabled: () => disabledSources(worker.store.db),
    watch: (source, signal) => watchSource(watched(source, dependencies), signal),
    logger,
    pause,
  });
}

function watched(source: ClustersConfig, dependencies: WatchingDependencies): WatchedSource {
  const { config, worker, logger } = dependencies;
  return {
    source,
    logger,
    pause,
    ready: async () => !(await waitsForOthers(source, config, worker)),
    store: (state) => inLogContext({ sourceId: source.id }, () => storeState(source, state, dependencies)),
    async failed(error) {
      dependencies.observe?.(source.id, 'failed', 0);
      const told = error instanceof SourceError ? error.message : 'an internal error, see the log';
      try {
        await registerSource(worker.store.db, {
          id: source.id,
          kind: 'clusters',
          adapter: source.adapter.id,
        });
        await recordFailedWatch(worker.store.db, source.id, told);
      } catch (failure) {
        logger.warn({ err: failure, sourceId: source.id }, 'that a watch failed could not be recorded');
      }
    },
  };
}

async function storeState(
  source: ClustersConfig,
  state: readonly ClusterItem[],
  { worker, logger, observe }: WatchingDependencies,
): Promise<SyncResult['outcome']> {
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1000;
  try {
    const { outcome, counts, broken } = await worker.runSource(source, { state, origin: { cause: 'watch' } });
    observe?.(source.id, outcome, seconds());
    const level = outcome === 'unchanged' ? 'debug' : 'info';
    logger[level]({ sourceId: source.id, outcome, ...counts }, 'synced a state that was watched');
    if (outcome === 'held') logger.warn({ sourceId: source.id, broken }, 'the batch is held for an operator');
    if (outcome === 'unchanged') await foldUnchanged(worker.store.db, source.id);
    else await publish(worker, logger);
    return outcome;
  } catch (error) {
    // The state waits: its watch is about to be ended, or the source is enabled before that.
    if (error instanceof SourceDisabled) return 'superseded';
    observe?.(source.id, 'failed', seconds());
    throw error;
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}

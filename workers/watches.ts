import { setTimeout as sleep } from 'node:timers/promises';
import { inLogContext } from '../src/app/log-context.ts';
import type { ClustersConfig } from '../src/app/run-source.ts';
import { disabledSources } from '../src/db/sync/disabled.ts';
import { Leases } from '../src/db/sync/leases.ts';
import { foldUnchanged, recordFailedWatch, registerSource } from '../src/db/sync/run.ts';
import { SourceDisabled } from '../src/domain/source.ts';
import { type ClusterItem, SourceError } from '../src/sources/source.ts';
import type { SyncResult } from '../src/sync/pipeline.ts';
import { publish, type SyncDependencies, waitsForOthers } from './sync-job.ts';
import { WatchHost } from './watch-host.ts';
import { type WatchedSource, watchSource } from './watched-source.ts';

export type WatchingDependencies = Pick<SyncDependencies, 'config' | 'worker' | 'logger' | 'observe'>;

/** Returns the host of all sources whose adapters can watch. */
export function openWatches(dependencies: WatchingDependencies): WatchHost {
  const { config, worker, logger } = dependencies;
  return new WatchHost({
    sources: config.sources.flatMap((source) =>
      source.kind === 'clusters' && source.adapter.watch !== undefined ? [source] : [],
    ),
    leases: new Leases(() => worker.store.connection()),
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
      const reason = error instanceof SourceError ? error.message : 'an internal error, see the log';
      try {
        await registerSource(worker.store.db, {
          id: source.id,
          kind: 'clusters',
          adapter: source.adapter.id,
        });
        await recordFailedWatch(worker.store.db, source.id, reason);
      } catch (failure) {
        logger.warn({ err: failure, sourceId: source.id }, 'the failure of a watch could not be recorded');
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
    logger[level]({ sourceId: source.id, outcome, ...counts }, 'stored a state of a watch');
    if (outcome === 'held') logger.warn({ sourceId: source.id, broken }, 'the batch is held for an operator');
    if (outcome === 'unchanged') await foldUnchanged(worker.store.db, source.id);
    else await publish(worker, logger);
    return outcome;
  } catch (error) {
    // The watch is about to end. If the source is enabled again first, the state is stored then.
    if (error instanceof SourceDisabled) return 'superseded';
    observe?.(source.id, 'failed', seconds());
    throw error;
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}

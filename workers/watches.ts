/** Watches sources, each in one worker at a time. See docs/decisions/0012. */
import { setTimeout as sleep } from 'node:timers/promises';
import { inLogContext } from '../src/app/log-context.ts';
import type { ClustersConfig } from '../src/app/run-source.ts';
import { withTimeout } from '../src/domain/clock.ts';
import { SourceDisabled, SourcePaused } from '../src/domain/source.ts';
import { type ClusterItem, SourceError } from '../src/sources/source.ts';
import type { SyncResult } from '../src/sync/pipeline.ts';
import { disabledSources, pausedSources } from '../src/sync/runs/disabled.ts';
import { Leases } from '../src/sync/runs/leases.ts';
import { foldUnchanged, recordFailedWatch, registerSource } from '../src/sync/runs/run.ts';
import { pauseIfCrashing } from './crashing-sources.ts';
import { publish, type SyncDependencies, waitsForOthers } from './sync-job.ts';
import { type WatchedSource, watchSource } from './watched-source.ts';

/** Interval of claims. It bounds the time until another worker takes over. */
const CLAIM_EVERY_MS = 2000;
/** After this time the connection of the leases counts as lost. */
const CLAIM_WITHIN_MS = 4000;
/** Time for an old watch to end before a new one starts. The fence protects against a late one. */
const END_WITHIN_MS = 5000;

type WatchingDependencies = Pick<SyncDependencies, 'config' | 'worker' | 'logger' | 'observe'>;

interface Watch {
  readonly end: AbortController;
  readonly ended: Promise<void>;
}

/** Watches all sources whose adapters can watch. */
export class Watches {
  readonly #dependencies: WatchingDependencies;
  readonly #sources: readonly ClustersConfig[];
  readonly #leases: Leases;
  readonly #watches = new Map<string, Watch>();
  readonly #stop = new AbortController();
  #claiming: Promise<void> = Promise.resolve();
  /** Disabled and paused sources. */
  #stopped: ReadonlySet<string> = new Set();

  constructor(dependencies: WatchingDependencies) {
    const { config, worker } = dependencies;
    this.#dependencies = dependencies;
    this.#sources = config.sources.flatMap((source) =>
      source.kind === 'clusters' && source.adapter.watch !== undefined ? [source] : [],
    );
    this.#leases = new Leases(() => worker.store.connection());
  }

  start(): void {
    if (this.#sources.length > 0) this.#claiming = this.#claimRepeatedly();
  }

  async #claimRepeatedly(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#claim();
      await pause(CLAIM_EVERY_MS, signal);
    }
  }

  async #claim(): Promise<void> {
    const { worker, logger } = this.#dependencies;
    const names = this.#sources.map(({ id }) => leaseOf(id));
    let leased: ReadonlySet<string> = new Set();
    try {
      // A failed query of disabled sources must not end the watches.
      const { db } = worker.store;
      const disabledNow = Promise.all([disabledSources(db), pausedSources(db)])
        .then(([disabled, paused]) => disabled.union(paused))
        .catch(() => this.#stopped);
      const claimed = Promise.all([this.#leases.claim(names), disabledNow]).then((now) => {
        [leased, this.#stopped] = now;
      });
      if (!(await withTimeout(CLAIM_WITHIN_MS, claimed))) {
        void this.#leases.release();
        throw new Error(`PostgreSQL did not confirm the leases within ${CLAIM_WITHIN_MS} ms`);
      }
    } catch (error) {
      if (!this.#stop.signal.aborted)
        logger.warn({ err: error }, 'the leases of watches are lost; the worker claims them again');
    }
    if (this.#stop.signal.aborted) return;
    for (const source of this.#sources) {
      const watch = this.#watches.get(source.id);
      const isWatched = watch !== undefined && !watch.end.signal.aborted;
      if (this.#stopped.has(source.id)) {
        if (isWatched)
          logger.info({ sourceId: source.id }, 'the watch ends: the source was disabled or paused');
        watch?.end.abort();
      } else if (!leased.has(leaseOf(source.id))) watch?.end.abort();
      else if (!isWatched) this.#start(source, watch?.ended);
    }
  }

  #start(source: ClustersConfig, before: Promise<void> | undefined): void {
    const end = new AbortController();
    const run = async () => {
      if (before !== undefined) await withTimeout(END_WITHIN_MS, before);
      const { worker, logger } = this.#dependencies;
      try {
        await pauseIfCrashing(worker.store.db, source.id, logger);
      } catch (error) {
        // A paused source is not watched. Without PostgreSQL the leases end, and the next claim tries again.
        if (!(error instanceof SourcePaused)) logger.debug({ err: error }, 'the watch could not start');
        end.abort();
        return;
      }
      this.#dependencies.logger.info({ sourceId: source.id }, 'watching');
      await watchSource(watched(source, this.#dependencies), end.signal);
    };
    this.#watches.set(source.id, { end, ended: run() });
  }

  /** Ends the watches, then the leases. @param ms milliseconds for the watches */
  async stop(ms: number): Promise<void> {
    this.#stop.abort();
    for (const { end } of this.#watches.values()) end.abort();
    const watches = [...this.#watches.values()].map(({ ended }) => ended);
    if (!(await withTimeout(ms, Promise.all([this.#claiming, ...watches]))))
      this.#dependencies.logger.warn('watches did not end in time; the worker stops without them');
    await this.#leases.release();
  }
}

const leaseOf = (sourceId: string): string => `watch ${sourceId}`;

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
    const { outcome, counts, broken } = await worker.runSource(source, {
      state,
      origin: { cause: 'watch' },
      inWorker: true,
    });
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

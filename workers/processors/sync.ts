import { DelayedError, type Job, type Queue, UnrecoverableError, WaitingError } from 'bullmq';
import type { Logger } from 'pino';
import type { WriteTier } from '../../src/compose.ts';
import type { Config } from '../../src/config.ts';
import { SourceError } from '../../src/sources/source.ts';
import { anyNeverRan } from '../../src/store/runs.ts';
import type { SyncResult } from '../../src/sync/sync-catalogue.ts';
import type { SyncJob } from '../queues.ts';

export interface SyncDependencies {
  readonly config: Config;
  readonly tier: WriteTier;
  /** For runs that follow from one. */
  readonly queue: Queue<SyncJob>;
  readonly logger: Logger;
  observe?(sourceId: string, outcome: SyncResult['outcome'] | 'failed', seconds: number): void;
}

/**
 * Runs one source and publishes what changed. A failure that time may heal is tried again, after the pause that the
 * upstream asked for, which delays this job alone; one that needs a person is not.
 */
export function syncProcessor({ config, tier, queue, logger, observe }: SyncDependencies) {
  return async (
    job: Job<SyncJob>,
    token?: string,
    signal?: AbortSignal,
  ): Promise<SyncResult['counts'] | undefined> => {
    const { sourceId, slot } = job.data;
    const source = config.sources.find(({ id }) => id === sourceId);
    if (!source) {
      logger.warn({ sourceId }, 'a job for a source that is not configured here was dropped');
      return undefined;
    }
    if (source.kind === 'clusters' && (await cataloguesAreNew(config, tier))) {
      await job.moveToDelayed(Date.now() + CATALOGUE_WAIT_MS, token);
      throw new DelayedError();
    }
    const started = performance.now();
    const seconds = () => (performance.now() - started) / 1000;
    try {
      const result = await tier.runSource(source, { slot, signal });
      observe?.(sourceId, result.outcome, seconds());
      logger.info({ sourceId, slot, outcome: result.outcome, ...result.counts }, 'synced');
      if (result.outcome === 'held')
        logger.warn({ sourceId, broken: result.broken }, 'the batch is held for an operator');
      await publish(tier, logger);
      if (source.kind === 'catalogue' && result.counts.added > 0) await resolveAgain(config, queue, slot);
      return result.counts;
    } catch (error) {
      if (signal?.aborted) {
        // The worker stops: the next one takes the job up, and this was no failed attempt.
        await job.moveToWait(token);
        throw new WaitingError();
      }
      observe?.(sourceId, 'failed', seconds());
      if (!(error instanceof SourceError)) throw error;
      logger.warn({ sourceId, slot, kind: error.kind }, `sync failed: ${error.message}`);
      if (error.kind !== 'retry') throw new UnrecoverableError(error.message);
      if (error.retryAfterMs === undefined) throw error;
      await job.moveToDelayed(Date.now() + error.retryAfterMs, token);
      throw new DelayedError();
    }
  };
}

/** How long clusters wait for the first run of the catalogues, a look at a time. */
const CATALOGUE_WAIT_MS = 500;

/** In a new database clusters come second: their machines are to be found in the catalogue, not made up. */
function cataloguesAreNew(config: Config, tier: WriteTier): Promise<boolean> {
  const catalogues = config.sources.filter(({ kind }) => kind === 'catalogue').map(({ id }) => id);
  return anyNeverRan(tier.store.sql, catalogues);
}

/** New machines may be those that clusters run on and nobody knew: the cluster sources look again. */
async function resolveAgain(config: Config, queue: Queue<SyncJob>, slot: string): Promise<void> {
  for (const { id, kind } of config.sources) {
    if (kind === 'clusters')
      await queue.add('sync', { sourceId: id, slot }, { deduplication: { id: `resolve-${id}` } });
  }
}

/** What is stored is safe: a cache that is away gets it from the next sweep. */
async function publish(tier: WriteTier, logger: Logger): Promise<void> {
  try {
    const { published } = await tier.publisher.publishDirty();
    logger.debug({ published }, 'published');
  } catch (error) {
    logger.warn({ err: error }, 'publishing failed; the documents stay marked and the next sweep sends them');
  }
}

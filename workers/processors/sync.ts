import { DelayedError, type Job, type Queue, UnrecoverableError, WaitingError } from 'bullmq';
import type { Logger } from 'pino';
import type { WriteTier } from '../../src/compose-write.ts';
import type { Config, SourceConfig } from '../../src/config.ts';
import { SourceError } from '../../src/sources/source.ts';
import { anyNeverRan } from '../../src/store/runs.ts';
import type { SyncResult } from '../../src/sync/sync-catalogue.ts';
import type { SyncJob } from '../queues.ts';

/** What a job leaves behind, as the queues' page shows it. */
export type SyncJobResult =
  | ({ readonly outcome: 'changed' | 'unchanged'; readonly published: boolean } & SyncResult['counts'])
  | {
      readonly outcome: 'held';
      readonly stored: false;
      /** What each guard that was broken says. */
      readonly reasons: readonly string[];
      /** What an operator does about it. */
      readonly decide: string;
      readonly seen: number;
    }
  | { readonly outcome: 'superseded'; readonly stored: false };

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
  ): Promise<SyncJobResult | undefined> => {
    const { sourceId, slot } = job.data;
    const source = config.sources.find(({ id }) => id === sourceId);
    if (!source) {
      logger.warn({ sourceId }, 'a job for a source that is not configured here was dropped');
      return undefined;
    }
    if (await waitsForOthers(source, config, tier)) {
      await job.moveToDelayed(Date.now() + FIRST_RUN_WAIT_MS, token);
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
      const published = await publish(tier, logger);
      if (result.outcome === 'held' || result.outcome === 'superseded') return notStored(sourceId, result);
      if (source.kind === 'catalogue' && result.counts.added > 0) await resolveAgain(config, queue, slot);
      return { outcome: result.outcome, published, ...result.counts };
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

/** The counts of a batch that was not stored would read as if it had been. */
function notStored(sourceId: string, { outcome, broken, counts }: SyncResult): SyncJobResult {
  if (outcome !== 'held') return { outcome: 'superseded', stored: false };
  return {
    outcome,
    stored: false,
    reasons: broken.map(({ detail }) => detail),
    decide: `fleetbook hold show ${sourceId}`,
    seen: counts.seen,
  };
}

/** How long a source waits for the first run of those that it builds upon, a look at a time. */
const FIRST_RUN_WAIT_MS = 250;

/**
 * In a new database catalogues come after exchange rates, and clusters after catalogues: a price is to be converted
 * and a machine to be found, not to be held or made up. One run, good or bad, is waited for.
 *
 * The sample's catalogues come one after the other, so that every new sample has the same ids, those of the README. Real
 * ones do not wait for each other: the first run of a large one takes minutes.
 */
export async function waitsForOthers(
  source: SourceConfig,
  config: Config,
  tier: WriteTier,
): Promise<boolean> {
  const before = { rates: undefined, catalogue: 'rates', clusters: 'catalogue' }[source.kind];
  const isSample = config.settings.FLEETBOOK_CONTENT === 'sample';
  const ids = config.sources
    .filter(
      ({ id, kind }) =>
        kind === before || (isSample && kind === source.kind && kind === 'catalogue' && id < source.id),
    )
    .map(({ id }) => id);
  return ids.length > 0 && (await anyNeverRan(tier.store.sql, ids));
}

/** New machines may be those that clusters run on and nobody knew: the cluster sources look again. */
async function resolveAgain(config: Config, queue: Queue<SyncJob>, slot: string): Promise<void> {
  for (const { id, kind } of config.sources) {
    if (kind === 'clusters')
      await queue.add('sync', { sourceId: id, slot }, { deduplication: { id: `resolve-${id}` } });
  }
}

/**
 * What is stored is safe: a cache that is away gets it from the next sweep.
 * @returns whether it has it already
 */
export async function publish(tier: WriteTier, logger: Logger): Promise<boolean> {
  try {
    const { published } = await tier.publisher.publishDirty();
    logger.debug({ published }, 'published');
    return true;
  } catch (error) {
    logger.warn({ err: error }, 'publishing failed; the documents stay marked and the next sweep sends them');
    return false;
  }
}

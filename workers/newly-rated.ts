import type { Queue } from 'bullmq';
import type { Logger } from 'pino';
import type { Worker } from '../src/app/worker.ts';
import type { Config } from '../src/config/config.ts';
import { missingRates } from '../src/db/quarantine.ts';
import { latestSlot } from '../src/domain/schedule.ts';
import { currentPricing } from '../src/sync/currency.ts';
import type { SyncJob } from './queues.ts';

/**
 * Enqueues a run of each source that has excluded machines for want of an exchange rate that is known now. Their
 * prices are then published without waiting for the next slot.
 */
export async function enqueueNewlyRated(
  config: Config,
  { store }: Pick<Worker, 'store'>,
  queue: Queue<SyncJob>,
): Promise<void> {
  const missing = await missingRates(store.sql);
  if (missing.size === 0) return;
  const now = new Date();
  const { currency, rates } = await currentPricing(store, config.settings, now);
  const isKnown = (code: string) => code === currency || rates[code] !== undefined;
  for (const { id, schedule } of config.sources) {
    if (!missing.get(id)?.some(isKnown)) continue;
    await queue.add(
      'sync',
      { sourceId: id, slot: latestSlot(schedule, now), isAdditional: true },
      { deduplication: { id: `rated-${id}` } },
    );
  }
}

/**
 * Converts the prices to the configured currency when a worker starts: the next run may be a day away. If that fails, the
 * next run does it.
 */
export async function adoptCurrency(
  config: Config,
  worker: Worker,
  queue: Queue<SyncJob>,
  logger: Logger,
): Promise<void> {
  await worker
    .adoptCurrency()
    .catch((error: unknown) => logger.debug({ err: error }, 'the currency is not adopted yet'));
  await enqueueNewlyRated(config, worker, queue).catch((error: unknown) =>
    logger.debug({ err: error }, 'sources with a new rate wait for their slots'),
  );
}
